"""From a trace to requests that can be simulated: recorded durations, tokens for an LLM engine, or rates of clients."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from gputwin.autoscaling.serving.system import Engine, Load, Slots
from gputwin.autoscaling.serving.world import NOBODY, Floats, Integers
from gputwin.core.errors import UserError
from gputwin.core.rng import stream
from gputwin.core.units import short_duration
from gputwin.traces.dataset import Trace

ENGINES = {
    "llama-3.1-8b": Engine(0.0125, 3.9e-5, 5.8e-5, 6.0e-8, 2.0e-10, cache_tokens=500_000),
}
"""Step times that `calibrate` finds for a public vLLM run (Llama 3.1 8B on one RTX PRO 6000, batches up to 128)."""
JITTER_SECONDS = 30.0
MOST_REQUESTS = 20_000_000
_MOST_CV = 10.0


@dataclass(frozen=True)
class Service:
    """Requests, the kind of replica that serves them, and what had to be assumed."""

    load: Load
    system: Slots | Engine
    span: float
    notes: tuple[str, ...]
    without_effect: tuple[str, ...] = ()
    """Arguments of `service_of` that do nothing for requests of this kind."""


def service_of(
    trace: Trace,
    *,
    engine: str = "llama-3.1-8b",
    service_seconds: float = 10.0,
    service_cv: float = 1.0,
    slots: int = 1,
    load_factor: float = 1.0,
    adapters: bool = True,
    seed: int = 0,
) -> Service:
    """Return what a trace of requests, or of request rates, asks of a serving system."""
    if not 0 < load_factor < math.inf:
        raise UserError(f"the load must be above 0, not {load_factor:g}")
    if slots < 1:
        raise UserError(f"a replica serves at least one request at once, not {slots}")
    if not 0 < service_seconds < math.inf or not 0 <= service_cv < math.inf:
        raise UserError(
            f"a service time needs a mean above 0 s and a coefficient of variation of at least 0, not {service_seconds:g} s "
            f"and {service_cv:g}"
        )
    known = trace.requests.filter(pl.col("submit_time").is_not_null()).sort("submit_time", maintain_order=True)
    if known.is_empty():
        return _from_rates(trace, service_seconds, service_cv, slots, load_factor, seed)
    if len(known) * load_factor > MOST_REQUESTS:
        raise UserError(
            f"the load makes {len(known) * load_factor:,.0f} requests, more than {MOST_REQUESTS:,}; take a smaller --load"
        )
    if known["duration_seconds"].is_not_null().any():
        made = _from_durations(trace, known, slots, adapters, seed)
    elif known["output_tokens"].is_not_null().any():
        made = _from_tokens(known, engine)
    else:
        made = _drawn(known, service_seconds, service_cv, slots, seed)
    return made if load_factor == 1.0 else _scaled(made, load_factor, seed)


def _from_durations(trace: Trace, known: pl.DataFrame, slots: int, adapters: bool, seed: int) -> Service:
    timed = known.filter(pl.col("duration_seconds").is_not_null())
    notes = [f"service times are the recorded durations of {timed.height:,} requests"]
    if timed.height < known.height:
        notes.append(f"{known.height - timed.height:,} requests without a duration are left out")
    load = Load(_times(timed), service=timed["duration_seconds"].to_numpy(), tenant=_tenants(timed))
    idle: tuple[str, ...] = ("engine", "service", "service_cv")
    base = _samples(trace, "base_model_load_ms")
    loads_models = bool(base.size) and bool(timed["model"].is_not_null().any())
    if not loads_models:
        idle = (*idle, "adapters")
    if adapters and loads_models:
        load = _with_models(load, timed, base, _samples(trace, "lora_load_ms"), seed)
        notes.append(
            "a replica holds one base model and one set of adapters; load times are drawn from the trace's own and come "
            "on top of the recorded durations, and a user's adapters for a model are taken as one set"
        )
    return Service(load, Slots(slots), _span(load), tuple(notes), idle)


def _with_models(load: Load, timed: pl.DataFrame, base: Floats, lora: Floats, seed: int) -> Load:
    rng = stream(seed, "model loads")
    count = timed["adapters"].fill_null(0).to_numpy()
    sets = pl.concat_str(timed["user"].fill_null(""), timed["model"].fill_null(""), timed["adapters"], separator="|")
    code = pl.select(sets).to_series().rank("dense").fill_null(0).cast(pl.Int64).to_numpy()
    model = timed["model"].rank("dense").cast(pl.Int64).fill_null(NOBODY).to_numpy()
    adapter_load = rng.choice(lora, len(load)) * np.maximum(count, 1) if lora.size else np.zeros(len(load))
    return replace(
        load,
        model=model,
        adapter=np.where(count > 0, code, NOBODY),
        model_load=rng.choice(base, len(load)),
        adapter_load=adapter_load,
    )


def _from_tokens(known: pl.DataFrame, engine: str) -> Service:
    if engine not in ENGINES:
        raise UserError(f"no engine '{engine}'; known: {', '.join(ENGINES)}")
    with_tokens = known.filter(pl.col("input_tokens").is_not_null() & pl.col("output_tokens").is_not_null())
    load = Load(
        _times(with_tokens),
        input_tokens=with_tokens["input_tokens"].to_numpy(),
        output_tokens=with_tokens["output_tokens"].to_numpy(),
        tenant=_tenants(with_tokens),
    )
    notes = [f"tokens are served by the step times of {engine}; prompts share no prefixes"]
    idle = ("service", "service_cv", "slots", "adapters")
    return Service(load, ENGINES[engine], _span(load), tuple(notes), idle)


def _drawn(known: pl.DataFrame, mean: float, cv: float, slots: int, seed: int) -> Service:
    load = Load(_times(known), service=_service_times(len(known), mean, cv, seed), tenant=_tenants(known))
    return Service(load, Slots(slots), _span(load), (_assumed(mean, cv),), ("engine", "adapters"))


def _assumed(mean: float, cv: float) -> str:
    return f"the trace has no service times; lognormal ones of mean {short_duration(mean)} and CV {cv:g} are assumed"


def _service_times(count: int, mean: float, cv: float, seed: int) -> Floats:
    spread = math.log1p(cv**2)
    return stream(seed, "service times").lognormal(math.log(mean) - spread / 2, math.sqrt(spread), count)


def _from_rates(trace: Trace, mean: float, cv: float, slots: int, factor: float, seed: int) -> Service:
    """Return requests drawn from client rates: gamma gaps with each client's variation, window by window.

    Of a thinned process of independent gaps, CV² is 1 + share × (CV² − 1).
    """
    wide = (
        trace.series.filter(pl.col("metric").is_in(["request_rate_per_s", "interarrival_cv"]))
        .pivot("metric", index=["entity", "time"], values="value", aggregate_function="first")
        .sort("entity", "time")
    )
    if "request_rate_per_s" not in wide.columns:
        raise UserError("the trace has neither requests with times nor request rates; autoscale needs one of them")
    rate = wide["request_rate_per_s"].fill_null(0.0).to_numpy() * factor
    variation = wide["interarrival_cv"].fill_null(1.0).to_numpy() if "interarrival_cv" in wide.columns else None
    variation = np.ones(len(rate)) if variation is None else np.clip(variation, 0.05, _MOST_CV)
    variation = np.sqrt(np.maximum(1 + min(factor, 1.0) * (variation**2 - 1), 0.05))
    start = wide["time"].to_numpy()
    steps = np.unique(np.diff(np.unique(start)))
    window = float(steps[0]) if steps.size else 600.0
    expected = float((rate * window).sum())
    if expected > MOST_REQUESTS:
        raise UserError(
            f"the rates make {expected:,.0f} requests; take a share with --load, as in --load {1e6 / expected:.1g}"
        )
    rng = stream(seed, "arrivals")
    drawn: list[Floats] = []
    for begin, per_second, cv_here in zip(start, rate, variation, strict=True):
        if per_second > 0:
            drawn.append(begin + _gaps(rng, per_second, cv_here, window))
    arrival = np.sort(np.concatenate(drawn)) if drawn else np.zeros(0)
    if not len(arrival):
        raise UserError("the trace's request rates are all zero")
    arrival -= start.min()
    load = Load(arrival, service=_service_times(len(arrival), mean, cv, seed))
    notes = (
        f"{len(arrival):,} requests are drawn from the rates of {wide['entity'].n_unique():,} clients"
        + (f" at {factor:g} of their load" if factor != 1 else ""),
        _assumed(mean, cv),
    )
    return Service(load, Slots(slots), float(start.max() - start.min() + window), notes, ("engine", "adapters"))


def _gaps(rng: np.random.Generator, rate: float, cv: float, window: float) -> Floats:
    """Return arrival times within a window from gamma gaps that began before it."""
    shape = 1 / cv**2
    scale = 1 / (rate * shape)
    count = int(rate * window * 1.2 + 6 * cv * math.sqrt(rate * window) + 10)
    times = np.cumsum(rng.gamma(shape, scale, count)) - rng.random() / rate
    return times[(times >= 0) & (times < window)]


def _scaled(made: Service, factor: float, seed: int) -> Service:
    """Return the service with more or fewer requests: each one copied or kept by chance, copies moved a little in time."""
    rng = stream(seed, "load")
    copies = np.floor(factor + rng.random(len(made.load))).astype(np.int64)
    which: Integers = np.repeat(np.arange(len(made.load)), copies)
    first = np.concatenate([[True], which[1:] != which[:-1]]) if len(which) else np.zeros(0, dtype=bool)
    moved = made.load.arrival[which] + np.where(first, 0.0, rng.uniform(-JITTER_SECONDS, JITTER_SECONDS, len(which)))
    moved = np.clip(moved, 0.0, made.span)
    order = np.argsort(moved, kind="stable")
    which = which[order]
    parts: dict[str, Any] = {k: v[which] for k, v in vars(made.load).items() if isinstance(v, np.ndarray)}
    tenant = tuple(made.load.tenant[i] for i in which) if made.load.tenant else ()
    load = Load(**{**parts, "arrival": moved[order], "tenant": tenant})
    note = f"load × {factor:g}: {len(made.load):,} requests became {len(load):,}, copies within "
    note += short_duration(JITTER_SECONDS)
    return replace(made, load=load, notes=(*made.notes, note))


def _times(frame: pl.DataFrame) -> Floats:
    times = frame["submit_time"].to_numpy()
    return np.asarray(times - times[0]) if len(times) else times


def _span(load: Load) -> float:
    return float(load.arrival[-1]) + 1.0 if len(load) else 0.0


def _tenants(frame: pl.DataFrame) -> tuple[str, ...]:
    for column in ("user", "application"):
        if frame[column].is_not_null().any():
            return tuple(frame[column].fill_null("unknown").to_list())
    return ()


def _samples(trace: Trace, metric: str) -> Floats:
    values = trace.series.filter((pl.col("metric") == metric) & (pl.col("value") > 0))["value"]
    return values.to_numpy() / 1000.0
