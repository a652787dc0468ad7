"""The load check before a replay: does this trace fit this cluster, over time, per GPU model, and which jobs never can.

Offered load is what the tasks would occupy if each started when it was submitted and ran as long as it did. The load
of a set of GPU models counts the tasks that may run on no other model: a mean above 1 there means a queue without end,
whatever the rest of the cluster does. GPUs of no stated model count as any model.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from gputwin.core.errors import UserError
from gputwin.core.units import WHOLE_GPU_MILLI
from gputwin.simulation.cluster import Cluster
from gputwin.simulation.together import gangs_that_never_fit
from gputwin.traces.dataset import Trace
from gputwin.traces.measures import ARRIVAL, RUNTIME

Floats = NDArray[np.float64]
ANY = "any"
_BINS = 400
_RESOURCES = ("gpu_milli", "cpu_milli", "memory_mib", "disk_mib", "rdma_percent")


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


@dataclass(frozen=True)
class LoadCheck:
    """The check's result: loads, the load over time, tasks that can never be placed, and a verdict in words."""

    loads: tuple[Load, ...]
    series: pl.DataFrame
    never_fit: pl.DataFrame
    tasks: int
    tasks_without_duration: int
    verdict: str

    def never_fit_by_reason(self) -> pl.DataFrame:
        """Return the number of tasks that can never be placed and an example, by reason."""
        return (
            self.never_fit.group_by("reason", maintain_order=True)
            .agg(pl.col("tasks").sum(), pl.col("example_job").first())
            .sort("tasks", descending=True, maintain_order=True)
        )

    def to_json(self) -> dict[str, Any]:
        """Return the result as plain data."""
        return {
            "tasks": self.tasks,
            "tasks_without_duration": self.tasks_without_duration,
            "tasks_never_fit": int(self.never_fit["tasks"].sum()),
            "never_fit": self.never_fit_by_reason().to_dicts(),
            "loads": [vars(load) for load in self.loads],
            "verdict": self.verdict,
        }


def check_load(trace: Trace, cluster: Cluster) -> LoadCheck:
    """Return how the trace's demand compares with the cluster's capacity."""
    if trace.tasks.is_empty():
        raise UserError("the trace has no tasks, so there is no load to check")
    nodes = cluster.nodes()
    demand = _demand(trace)
    loads: list[Load] = []
    series: list[pl.DataFrame] = []
    for resource, models, part, capacity in _bound_parts(demand, nodes):
        load, curve = _load_over_time(resource, models, part, capacity, demand)
        loads.append(load)
        series.append(curve)
    never = tasks_that_never_fit(trace.tasks, nodes)
    check = LoadCheck(
        tuple(loads),
        pl.concat(series) if series else pl.DataFrame(),
        never,
        trace.tasks.height,
        trace.tasks.height - demand.height,
        "",
    )
    return LoadCheck(check.loads, check.series, never, check.tasks, check.tasks_without_duration, _verdict(check))


def _demand(trace: Trace) -> pl.DataFrame:
    """Return begin, end and total amounts of each task whose arrival and runtime are known.

    A task alive at the end of the trace occupies its share until then.
    """
    last = trace.tasks.select(
        pl.max_horizontal(
            pl.col("end_time").max(),
            pl.col("start_time").max(),
            pl.col("submit_time").max(),
            (ARRIVAL + RUNTIME).max(),
        )
    ).item()
    size = pl.col("instances").cast(pl.Float64)
    gpu = pl.col("gpu_count").cast(pl.Float64) * pl.col("gpu_milli").fill_null(WHOLE_GPU_MILLI)
    return (
        trace.tasks.with_columns(
            ARRIVAL,
            pl.when(pl.col("is_running")).then(pl.lit(last) - ARRIVAL).otherwise(RUNTIME).alias("_time"),
        )
        .filter(pl.col("arrival_time").is_not_null() & pl.col("_time").is_not_null())
        .select(
            pl.col("arrival_time").alias("begin"),
            (pl.col("arrival_time") + pl.col("_time")).alias("end"),
            pl.col("gpu_models_allowed").fill_null(ANY).alias("models"),
            (gpu * size).fill_null(0).alias("gpu_milli"),
            *((pl.col(r) * size).fill_null(0.0).alias(r) for r in _RESOURCES[1:]),
        )
    )


def _bound_parts(demand: pl.DataFrame, nodes: pl.DataFrame) -> Iterator[tuple[str, str, pl.DataFrame, int]]:
    """Yield (resource, models, the demand bound to them, capacity): all demand first, then each set of models."""
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
    """Return the total of a resource; 0 where a node does not tell, since then it is never short."""
    if resource == "gpu_milli":
        return int(nodes["gpu_count"].sum()) * WHOLE_GPU_MILLI
    return 0 if nodes[resource].null_count() else int(nodes[resource].sum())


def _load_over_time(
    resource: str, models: str, part: pl.DataFrame, capacity: int, demand: pl.DataFrame
) -> tuple[Load, pl.DataFrame]:
    first, last = float(demand["begin"].min()), float(demand["begin"].max())  # type: ignore[arg-type]
    if last <= first:
        last = max(float(demand["end"].max()), first + 1.0)  # type: ignore[arg-type]
    edges = np.linspace(first, last, _BINS + 1)
    begin, end = part["begin"].to_numpy(), part["end"].to_numpy()
    amount = part[resource].to_numpy()
    mean_by_bin = np.diff(integral_of_demand(begin, end, amount, edges)) / np.diff(edges) / capacity
    times, level = demand_steps(begin, end, amount)
    inside = (times >= first) & (times < last)
    widths = np.diff(np.append(times, np.inf)).clip(max=np.maximum(last - times, 0.0))
    over = float(widths[inside & (level > capacity)].sum() / (last - first))
    load = Load(
        resource,
        models,
        capacity,
        mean=float(mean_by_bin.mean()),
        p95=float(np.quantile(mean_by_bin, 0.95)),
        peak=float(level.max(initial=0.0) / capacity),
        time_above_capacity=over,
    )
    curve = pl.DataFrame({"time": edges[:-1], "resource": resource, "models": models, "load": mean_by_bin})
    return load, curve


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


def tasks_that_never_fit(tasks: pl.DataFrame, nodes: pl.DataFrame) -> pl.DataFrame:
    """Return shapes that an empty cluster cannot hold: tasks, an example, and the first reason that applies."""
    shape = [
        "instances",
        "cpu_milli",
        "memory_mib",
        "gpu_count",
        "gpu_milli",
        "gpu_memory_mib",
        "disk_mib",
        "rdma_percent",
        "gpu_models_allowed",
        "max_per_node",
    ]
    shapes = tasks.group_by(shape, maintain_order=True).agg(
        pl.len().alias("tasks"), pl.col("job_id").first().alias("example_job")
    )
    kinds = (
        nodes.group_by(
            "gpu_model",
            "gpu_count",
            "gpu_memory_mib",
            "cpu_milli",
            "memory_mib",
            "disk_mib",
            "rdma_percent",
            maintain_order=True,
        )
        .agg(pl.len().alias("count"))
        .to_dicts()
    )
    rows = []
    for row in shapes.to_dicts():
        reason = _why_never(row, kinds)
        if reason:
            rows.append({"reason": reason, **{k: row[k] for k in ("tasks", "example_job", *shape)}})
    schema: dict[str, Any] = {
        "reason": pl.String,
        "tasks": pl.UInt32,
        "example_job": pl.String,
        **{s: tasks.schema[s] for s in shape},
    }
    rows += [dict.fromkeys(shape) | row for row in gangs_that_never_fit(tasks, nodes)]
    return pl.DataFrame(rows, schema=schema).sort("tasks", descending=True, maintain_order=True)


def _why_never(task: dict[str, Any], kinds: list[dict[str, Any]]) -> str | None:
    gpus, milli = task["gpu_count"] or 0, task["gpu_milli"] or WHOLE_GPU_MILLI
    models = set(task["gpu_models_allowed"].split("|")) if task["gpu_models_allowed"] else None
    allowed = [k for k in kinds if models is None or (k["gpu_count"] and k["gpu_model"] in {None, *models})]
    if not allowed:
        return "no node has a GPU model it allows"
    if gpus > max(k["gpu_count"] for k in allowed):
        return f"needs {gpus} GPUs on one node"
    for resource in ("cpu_milli", "memory_mib", "disk_mib", "rdma_percent"):
        most = max((math.inf if k[resource] is None else k[resource]) for k in allowed if k["gpu_count"] >= gpus)
        if (task[resource] or 0) > most:
            return f"needs more {resource} than any node with enough GPUs has"
    room = sum(k["count"] * _instances_per_node(task, k, gpus, milli) for k in allowed)
    if room == 0:
        return "no one node has enough of everything it asks for"
    if room < task["instances"]:
        return f"the gang of {task['instances']} is larger than the {room} the empty cluster holds"
    return None


def _instances_per_node(task: dict[str, Any], node: dict[str, Any], gpus: int, milli: int) -> int:
    room = float("inf")
    if gpus:
        per_device = WHOLE_GPU_MILLI // milli
        if task["gpu_memory_mib"] and node["gpu_memory_mib"] is not None:
            per_device = min(per_device, node["gpu_memory_mib"] // task["gpu_memory_mib"])
        slots = node["gpu_count"] * per_device
        # Instances of several devices need distinct ones, so a node with fewer devices holds none.
        room = slots // gpus if node["gpu_count"] >= gpus else 0
    for resource in ("cpu_milli", "memory_mib", "disk_mib", "rdma_percent"):
        if task[resource] and node[resource] is not None:
            room = min(room, node[resource] // task[resource])
    if task["max_per_node"] is not None:
        room = min(room, task["max_per_node"])
    return int(min(room, task["instances"]))


def _verdict(check: LoadCheck) -> str:
    """Return one or two sentences that answer: does it fit."""
    sentences = []
    if not check.loads:
        return "No task has both a known duration and a request, so no load can be computed."
    worst = max(check.loads, key=lambda load: (load.mean >= 1, load.time_above_capacity, load.mean))
    what = "GPUs" if worst.resource == "gpu_milli" else worst.resource.split("_")[0]
    where = what if worst.models == ANY else f"{what} of model {worst.models.replace('|', ' or ')}"
    if worst.mean >= 1:
        sentences.append(
            f"The trace does not fit: it offers {worst.mean:.2f} times the {where} there are on average, "
            "so the queue grows without end."
        )
    elif worst.time_above_capacity > 0:
        sentences.append(
            f"The trace fits on average ({worst.mean:.0%} of {where}) but asks for more than there are "
            f"{worst.time_above_capacity:.1%} of the time: expect queues then."
        )
    else:
        sentences.append(f"The trace fits with room: at most {worst.peak:.0%} of {where} is ever asked for.")
    never = int(check.never_fit["tasks"].sum())
    if never:
        sentences.append(f"{never:,} of {check.tasks:,} tasks can never be placed, even on the empty cluster.")
    if check.tasks_without_duration:
        sentences.append(f"{check.tasks_without_duration:,} tasks without a known duration are left out of the load.")
    return " ".join(sentences)
