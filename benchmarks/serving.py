"""What simulating a serving system costs, with every request's latency and a decision each 15 s.

    python -m benchmarks.serving

A week of 100,000 requests a day under the HPA, one million requests, and the same million as tokens of an LLM engine. The
loops are compiled before the clock starts. Fails if a run takes longer than its limit in CPU seconds.
"""

from __future__ import annotations

import sys
import time

import numpy as np

from gputwin.autoscaling.decisions.hpa.spec import MetricTarget
from gputwin.autoscaling.decisions.rules.hpa import Hpa
from gputwin.autoscaling.serving.run import Setting, serve
from gputwin.autoscaling.serving.system import Engine, Load, Slots
from gputwin.autoscaling.serving.workload import ENGINES
from gputwin.core.rng import stream

WEEK = 7 * 86_400.0
RUNS = (
    ("a week of 100,000 requests a day", 700_000, WEEK, False, 10.0),
    ("one million requests in a week", 1_000_000, WEEK, False, 60.0),
    ("one million requests of tokens in a day", 1_000_000, 86_400.0, True, 60.0),
)


def daily(count: int, span: float) -> np.ndarray:
    """Return arrivals whose rate rises and falls by half within a day."""
    rng = stream(0, "benchmark")
    times = rng.uniform(0, span, 2 * count)
    kept = times[rng.random(2 * count) < 0.5 + 0.25 * np.sin(times / 86_400.0 * 2 * np.pi)]
    return np.sort(rng.choice(kept, count, replace=kept.size < count))


def measure(count: int, span: float, has_tokens: bool) -> tuple[float, float]:
    rng = stream(0, "sizes")
    arrival = daily(count, span)
    if has_tokens:
        system: Slots | Engine = ENGINES["llama-3.1-8b"]
        sizes = {"input_tokens": rng.integers(50, 1500, count), "output_tokens": rng.integers(10, 300, count)}
        load, target = Load(arrival, **sizes), 64.0
    else:
        system = Slots()
        load, target = Load(arrival, service=rng.exponential(10.0, count)), 0.8
    rule = Hpa(1, 100, (MetricTarget("External", "concurrency", target, "AverageValue"),))
    setting = Setting(system, span, 15.0, 60.0, replicas=10)
    serve(load.between(0.0, 600.0), Setting(system, 600.0, 15.0, 60.0, replicas=10), rule)
    before = time.process_time()
    run = serve(load, setting, rule)
    used = time.process_time() - before
    return used, float(np.quantile(run.response_seconds(), 0.95))


def main() -> int:
    is_slow = False
    for name, count, span, has_tokens, limit in RUNS:
        used, p95 = measure(count, span, has_tokens)
        is_slow |= used > limit
        print(f"{name}: {used:.1f} CPU s (limit {limit:g}), p95 response {p95:.2f} s")
    return int(is_slow)


if __name__ == "__main__":
    sys.exit(main())
