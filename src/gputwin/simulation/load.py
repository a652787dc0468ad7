"""The load check before a replay: does this trace fit this cluster, over time, per GPU model, and which jobs never can.

Offered load is defined in `gputwin.simulation.offered`. Where tasks of unknown life could turn the answer, there is none.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from gputwin.core.display import Shown
from gputwin.core.errors import UserError
from gputwin.core.units import WHOLE_GPU_MILLI, percent
from gputwin.simulation.cluster import Cluster
from gputwin.simulation.offered import Load, offered_loads, said
from gputwin.simulation.together import gangs_that_never_fit
from gputwin.traces.dataset import Trace
from gputwin.traces.lifetimes import Window


@dataclass(frozen=True, repr=False)
class LoadCheck(Shown):
    """The check's result: loads, the load over time, tasks that can never be placed, and a verdict in words."""

    loads: tuple[Load, ...]
    series: pl.DataFrame
    never_fit: pl.DataFrame
    tasks: int
    tasks_without_duration: int
    window: Window
    verdict: str = ""

    def _title(self) -> str:
        return f"Load check of {self.tasks:,} tasks"

    def _lines(self) -> list[str]:
        return [self.verdict, *(f"{x.resource} {x.models}: load {x.mean:.3f}, peak {x.peak:.3f}" for x in self.loads)]

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
            "window_seconds": self.window.seconds,
            "never_fit": self.never_fit_by_reason().to_dicts(),
            "loads": [vars(load) for load in self.loads],
            "verdict": self.verdict,
            "notes": list(self.window.notes()),
        }


def check_load(trace: Trace, cluster: Cluster) -> LoadCheck:
    """Return how the trace's demand compares with the cluster's capacity."""
    if trace.tasks.is_empty():
        raise UserError("the trace has no tasks, so there is no load to check")
    nodes = cluster.nodes()
    found = offered_loads(trace.tasks, nodes)
    never = tasks_that_never_fit(trace.tasks, nodes)
    check = LoadCheck(found.loads, found.series, never, trace.tasks.height, found.tasks_unknown, found.window)
    return replace(check, verdict=_verdict(check))


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


_WORDS = {"cpu_milli": "CPU", "memory_mib": "memory", "disk_mib": "disk", "rdma_percent": "RDMA"}


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
            return f"needs more {_WORDS[resource]} than any node with enough GPUs has"
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
    """Return a few sentences that answer: does it fit."""
    sentences = []
    if not check.loads:
        return "No task has both a known duration and a request, so no load can be computed."
    worst = max(check.loads, key=lambda x: (x.mean >= 1, x.time_above_capacity, x.mean))
    doubt = max(check.loads, key=lambda x: (x.mean_at_most, x.peak_at_most))
    crowded = max(check.loads, key=lambda x: x.peak_at_most)
    unknown = f"{check.tasks_without_duration:,} tasks of which it is not known when they ran"
    if worst.mean >= 1:
        sentences.append(
            f"The trace does not fit: it offers {worst.mean:.2f} times the {said(worst)} there are on average, "
            "so the queue grows without end."
        )
    elif doubt.mean_at_most >= 1:
        sentences.append(
            f"No verdict: without {unknown} the trace asks for {percent(doubt.mean)} of {said(doubt)} on average, with them "
            f"for up to {percent(doubt.mean_at_most)}."
        )
    elif worst.time_above_capacity > 0:
        sentences.append(
            f"The trace fits on average ({percent(worst.mean)} of {said(worst)}) but asks for more than there are "
            f"{percent(worst.time_above_capacity, 1)} of the time: expect queues then."
        )
    elif crowded.peak_at_most > 1:
        sentences.append(
            f"The trace fits on average ({percent(crowded.mean)} of {said(crowded)}, up to "
            f"{percent(crowded.mean_at_most)} with "
            f"{unknown}); whether it ever asks for more than there are depends on these."
        )
    else:
        sentences.append(
            f"The trace fits with room: at most {percent(crowded.peak_at_most, 1)} of {said(crowded)} is ever asked for."
        )
    never = int(check.never_fit["tasks"].sum())
    if never:
        sentences.append(f"{never:,} of {check.tasks:,} tasks can never be placed, even on the empty cluster.")
    if check.tasks_without_duration:
        is_one = check.tasks_without_duration == 1
        which = f"{check.tasks_without_duration:,} {'task' if is_one else 'tasks'} without a known duration"
        sentences.append(f"{which} {'is' if is_one else 'are'} left out of the load.")
    return " ".join(sentences)
