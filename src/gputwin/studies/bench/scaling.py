"""What the serving simulator and one scaling decision cost, in CPU time, beside the most each may take."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputwin.autoscaling.decisions.hpa.spec import MetricTarget
from gputwin.autoscaling.decisions.interface import Autoscaler, LoadForecast, Observation
from gputwin.autoscaling.decisions.registry import RULES, make_rule
from gputwin.autoscaling.decisions.rules.hpa import Hpa
from gputwin.autoscaling.serving.run import Setting, serve
from gputwin.autoscaling.serving.system import Engine, Load, Slots
from gputwin.autoscaling.serving.workload import ENGINES
from gputwin.core.rng import stream
from gputwin.studies.bench.rounds import ROUNDS, round_milliseconds

_DAY = 86_400.0
_MOST_US = 20.0
_INNER = ("velocity", "cooldown", "backoff", "bounds")


@dataclass(frozen=True)
class ServingRun:
    """A number of requests over a span (s), as service times or as tokens of an LLM engine, and the most CPU seconds."""

    name: str
    requests: int
    span_seconds: float
    has_tokens: bool
    most_cpu_seconds: float


SERVING = {
    run.name: run
    for run in (
        ServingRun("serving, a week of 100,000 requests a day", 700_000, 7 * _DAY, False, 10.0),
        ServingRun("serving, one million requests in a week", 1_000_000, 7 * _DAY, False, 60.0),
        ServingRun("serving, one million requests of tokens in a day", 1_000_000, _DAY, True, 60.0),
    )
}
DECIDE = "decide"
SCALING = (*SERVING, DECIDE, *ROUNDS)
"""All benchmarks of autoscaling, and of a planner's rounds, by name."""


@dataclass(frozen=True)
class ScalingMeasurement:
    """CPU time of one serving run (s), of one decision by a rule (µs) or of one round (ms), and the most it may take."""

    name: str
    count: int
    """Requests, decisions, or active jobs."""
    value: float
    unit: str
    most: float
    p95_response_seconds: float | None = None


def measure_scaling(
    names: Sequence[str], count: int | None, seed: int, progress: Callable[[str], None]
) -> tuple[ScalingMeasurement, ...]:
    """Return the measurements of the benchmarks named; `count` replaces the number of requests or decisions."""
    found: list[ScalingMeasurement] = []
    for name in names:
        progress(name)
        if name in ROUNDS:
            jobs, most = ROUNDS[name]
            used = round_milliseconds(count or jobs, seed)
            found.append(ScalingMeasurement(name, count or jobs, used, "CPU ms", most))
            continue
        found += decisions(count or 20_000) if name == DECIDE else [_serving(SERVING[name], count, seed)]
    return tuple(found)


def _serving(run: ServingRun, count: int | None, seed: int) -> ScalingMeasurement:
    """Return what serving the requests costs, every latency kept, with an HPA that decides every 15 s.

    The loops are compiled before the clock starts.
    """
    requests = count or run.requests
    rng, arrival = stream(seed, "sizes"), _daily(requests, run.span_seconds, seed)
    if run.has_tokens:
        system: Slots | Engine = ENGINES["llama-3.1-8b"]
        asked, answered = rng.integers(50, 1500, requests), rng.integers(10, 300, requests)
        load, target = Load(arrival, input_tokens=asked, output_tokens=answered), 64.0
    else:
        system = Slots()
        load, target = Load(arrival, service=rng.exponential(10.0, requests)), 0.8
    rule = Hpa(1, 100, (MetricTarget("External", "concurrency", target, "AverageValue"),))
    serve(load.between(0.0, 600.0), Setting(system, 600.0, 15.0, 60.0, replicas=10), rule)
    before = time.process_time()
    done = serve(load, Setting(system, run.span_seconds, 15.0, 60.0, replicas=10), rule)
    used = time.process_time() - before
    p95 = float(np.quantile(done.response_seconds(), 0.95))
    return ScalingMeasurement(run.name, requests, used, "CPU s", run.most_cpu_seconds, p95)


def _daily(count: int, span: float, seed: int) -> NDArray[np.float64]:
    """Return arrivals whose rate rises and falls by half within a day."""
    rng = stream(seed, "benchmark")
    times = rng.uniform(0, span, 2 * count + 100)
    kept = times[rng.random(times.size) < 0.5 + 0.25 * np.sin(times / _DAY * 2 * np.pi)]
    return np.sort(rng.choice(kept, count, replace=kept.size < count))


def decisions(count: int) -> list[ScalingMeasurement]:
    """Return what one decision of each rule costs, µs: the best of five passes over the same observations."""
    seen = [_observation(i) for i in range(count)]
    found = []
    for kind in RULES:
        best = math.inf
        for _ in range(5):
            autoscaler: Autoscaler[Any] = Autoscaler(make_rule(kind.name, **_settings(kind.name)))
            start = time.process_time()
            for observation in seen:
                autoscaler.decide(observation)
            best = min(best, (time.process_time() - start) / len(seen) * 1e6)
        found.append(ScalingMeasurement(f"{DECIDE}: {kind.name}", count, best, "CPU µs", _MOST_US))
    return found


def _observation(i: int) -> Observation:
    load = 20.0 + 15.0 * math.sin(i / 200)
    rates = (load, load * 1.1, load * 1.2)
    return Observation(
        15.0 * i,
        30,
        30,
        metrics={"cpu": load / 30, "gpu": load / 30},
        queue_length=load / 2,
        in_flight=load,
        arrival_rate_per_s=load,
        service_time_s=1.0,
        forecast=LoadForecast(15.0 * i, 300.0, {0.5: rates, 0.95: tuple(1.3 * rate for rate in rates)}),
    )


def _settings(name: str) -> dict[str, Any]:
    if name in _INNER:
        return {"inner": make_rule("threshold")}
    return {"maximum": 100} if name == "hpa" else {}
