"""Offered load: what the tasks would occupy if each started when it was submitted and ran as long as it was seen to.

Lives and the window follow `gputwin.traces.lifetimes`: what ran when the record began is there from its beginning on.
The load of a set of GPU models counts the tasks that may run on no other model: a mean above 1 there means a queue
without end, whatever the rest of the cluster does. GPUs of no stated model count as any model. Tasks of which nobody
knows when they ran are left out; loads "at most" count them for as long as they can have been there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from gputwin.core.units import WHOLE_GPU_MILLI, format_duration
from gputwin.simulation.cluster import Cluster
from gputwin.traces.dataset import Trace
from gputwin.traces.lifetimes import Window, observed, overlap, with_lives

Floats = NDArray[np.float64]
ANY = "any"
_BINS = 400
_RESOURCES = ("gpu_milli", "cpu_milli", "memory_mib", "disk_mib", "rdma_percent")
_WORDS = {"gpu_milli": "GPUs", "cpu_milli": "CPU cores"}


@dataclass(frozen=True)
class Load:
    """Offered load of one resource, for tasks bound to `models`, as a share of those models' capacity."""

    resource: str
    models: str
    capacity: int
    mean: float
    p95: float
    peak: float
    time_above_capacity: float
    mean_at_most: float
    """With tasks of unknown life, each for as long as it can have been there."""
    peak_at_most: float


@dataclass(frozen=True)
class Loads:
    """Offered loads over the window and their curves (`time` s, `resource`, `models`, `load`)."""

    window: Window
    loads: tuple[Load, ...]
    series: pl.DataFrame
    tasks_unknown: int
    """Tasks left out: nobody knows when they ran or would have."""


def offered_loads(tasks: pl.DataFrame, nodes: pl.DataFrame) -> Loads:
    """Return the load that the tasks offer to these nodes."""
    window = observed(tasks)
    demand = _demand(tasks, window)
    found = [
        _load_over_time(resource, models, part, capacity, window)
        for resource, models, part, capacity in _bound_parts(demand, nodes)
    ]
    series = pl.concat([curve for _, curve in found]) if found else pl.DataFrame()
    return Loads(window, tuple(load for load, _ in found), series, int((~demand["is_known"]).sum()))


def overload(trace: Trace, cluster: Cluster, growth: float = 1.0) -> tuple[str, ...]:
    """Return a warning for each resource and set of GPU models of which more is offered than there is over the window.

    `growth` multiplies the demand: the same tasks arrive so many times as fast.
    """
    if trace.tasks.is_empty():
        return ()
    window = observed(trace.tasks)
    demand = _demand(trace.tasks, window)
    if growth != 1:
        demand, window = _faster(demand, window, growth)
    means = [
        (resource, models, _mean_load(part.filter("is_known"), resource, capacity, window))
        for resource, models, part, capacity in _bound_parts(demand, cluster.nodes())
    ]
    return tuple(
        f"overloaded: the work offered is {mean:.2f} times the {_words(resource, models)} of {cluster.name} over "
        f"{format_duration(window.seconds)}, so waits grow with the length of the trace"
        for resource, models, mean in sorted(means, key=lambda x: (x[1] != ANY, -x[2]))
        if mean > 1
    )


def _faster(demand: pl.DataFrame, window: Window, growth: float) -> tuple[pl.DataFrame, Window]:
    """Return the demand and the window where tasks arrive `growth` times as fast, for as long as ever each."""
    begin = window.first + (pl.col("begin") - window.first) / growth
    moved = demand.with_columns(begin.alias("begin"), (begin + pl.col("end") - pl.col("begin")).alias("end"))
    ends = {name: window.first + (getattr(window, name) - window.first) / growth for name in ("last", "begin", "until")}
    return moved, replace(window, **ends)


def said(load: Load) -> str:
    """Return what is loaded, in words: "GPUs of model T4 or P100"."""
    return _words(load.resource, load.models)


def _words(resource: str, models: str) -> str:
    what = _WORDS.get(resource, resource.split("_")[0])
    return what if models == ANY else f"{what} of model {models.replace('|', ' or ')}"


def _demand(tasks: pl.DataFrame, window: Window) -> pl.DataFrame:
    """Return begin and end (s) and total amounts of each task; where its life `is_known` not, the longest it can be."""
    size = pl.col("instances").cast(pl.Float64)
    gpu = pl.col("gpu_count").cast(pl.Float64) * pl.col("gpu_milli").fill_null(WHOLE_GPU_MILLI)
    known = pl.col("held_seconds").is_not_null()
    begin = pl.col("asked_from").fill_null(window.first)
    end = pl.when(known).then(begin + pl.col("held_seconds"))
    longest = pl.max_horizontal(begin, pl.col("end_time").fill_null(window.last))
    return with_lives(tasks, window).select(
        known.alias("is_known"),
        begin.alias("begin"),
        pl.coalesce(end, longest).alias("end"),
        pl.col("gpu_models_allowed").fill_null(ANY).alias("models"),
        (gpu * size).fill_null(0).alias("gpu_milli"),
        *((pl.col(r) * size).fill_null(0.0).alias(r) for r in _RESOURCES[1:]),
    )


def _bound_parts(demand: pl.DataFrame, nodes: pl.DataFrame) -> Iterator[tuple[str, str, pl.DataFrame, int]]:
    """Yield (resource, models, the demand bound to them, capacity): all demand first, then each set of models."""
    if not demand["is_known"].any():
        return
    for resource in _RESOURCES:
        capacity = _capacity(nodes, resource)
        if capacity and demand[resource].sum() > 0:
            yield resource, ANY, demand, capacity
    wanted = {models: set(models.split("|")) for models in demand["models"].unique().sort() if models != ANY}
    for models, names in wanted.items():
        within = [m for m, other in wanted.items() if other <= names]
        part = demand.filter(pl.col("models").is_in(within))
        capacity = _capacity(nodes.filter(pl.col("gpu_model").is_in(list(names)).fill_null(True)), "gpu_milli")
        if capacity:
            yield "gpu_milli", models, part, capacity


def _capacity(nodes: pl.DataFrame, resource: str) -> int:
    """Return the total of a resource; 0 where a node does not say, since then it is never short."""
    if resource == "gpu_milli":
        return int(nodes["gpu_count"].sum()) * WHOLE_GPU_MILLI
    return 0 if nodes[resource].null_count() else int(nodes[resource].sum())


def _load_over_time(
    resource: str, models: str, part: pl.DataFrame, capacity: int, window: Window
) -> tuple[Load, pl.DataFrame]:
    edges = np.linspace(window.begin, window.until, _BINS + 1)
    is_known = part["is_known"].to_numpy()
    begin, end, amount = (part[c].to_numpy() for c in ("begin", "end", resource))
    known = begin[is_known], end[is_known], amount[is_known]
    by_bin = np.diff(integral_of_demand(*known, edges)) / np.diff(edges) / capacity
    # What is left of a difference of large sums is not an amount.
    by_bin = np.where(np.abs(by_bin) < 1e-12, 0.0, by_bin)
    mean, peak, over = _in_window(*known, capacity, window)
    most = (mean, peak) if is_known.all() else _in_window(begin, end, amount, capacity, window)
    load = Load(
        resource,
        models,
        capacity,
        mean=mean,
        p95=float(np.quantile(by_bin, 0.95)),
        peak=peak,
        time_above_capacity=over,
        mean_at_most=most[0],
        peak_at_most=most[1],
    )
    curve = pl.DataFrame({"time": edges[:-1], "resource": resource, "models": models, "load": by_bin})
    return load, curve


def _in_window(begin: Floats, end: Floats, amount: Floats, capacity: int, window: Window) -> tuple[float, float, float]:
    """Return mean and peak load in the window, and the share of time in which it is above 1."""
    first, last = window.begin, window.until
    times, level = demand_steps(np.maximum(begin, first), np.maximum(end, first), amount)
    # The last arrivals come at the window's very end: they belong to the peak, though not to the mean.
    inside = times <= last
    times, level = times[inside], level[inside]
    widths = np.diff(np.append(times, last))
    mean = _mean(begin, end, amount, window) / capacity
    above = float(widths[level > capacity].sum() / (last - first))
    return mean, float(level.max(initial=0.0) / capacity), above


def _mean_load(part: pl.DataFrame, resource: str, capacity: int, window: Window) -> float:
    """Return the mean load in the window."""
    begin, end, amount = (part[c].to_numpy() for c in ("begin", "end", resource))
    return _mean(begin, end, amount, window) / capacity


def _mean(begin: Floats, end: Floats, amount: Floats, window: Window) -> float:
    """Return the mean demand in the window."""
    return float(overlap(begin, end, window.begin, window.until) @ amount) / (window.until - window.begin)


def integral_of_demand(begin: Floats, end: Floats, amount: Floats, at: Floats) -> Floats:
    """Return the integral of demand up to each time of `at`: Σ amount × time each task was alive by then."""

    def ramp(starts: Floats) -> Floats:
        order = np.argsort(starts, kind="stable")
        total = np.concatenate([[0.0], np.cumsum(amount[order])])
        moment = np.concatenate([[0.0], np.cumsum(amount[order] * starts[order])])
        k = np.searchsorted(starts[order], at, side="right")
        return np.asarray(total[k] * at - moment[k])

    return ramp(begin) - ramp(end)


def demand_steps(begin: Floats, end: Floats, amount: Floats) -> tuple[Floats, Floats]:
    """Return the times at which demand changes and the demand from each on; ends come before begins at one time."""
    times = np.concatenate([end, begin])
    change = np.concatenate([-amount, amount])
    order = np.argsort(times, kind="stable")
    times, level = times[order], np.cumsum(change[order])
    last_of_time = np.append(times[1:] != times[:-1], True) if times.size else np.zeros(0, bool)
    return times[last_of_time], level[last_of_time]
