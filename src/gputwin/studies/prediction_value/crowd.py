"""A cluster made for the jobs of a trace, on which they queue but which they do not overload."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import polars as pl

from gputwin.core.units import WHOLE_GPU_MILLI
from gputwin.simulation.cluster import Cluster, NodeGroup
from gputwin.simulation.load import check_load
from gputwin.traces.dataset import Trace, TraceMeta
from gputwin.traces.measures import ARRIVAL, RUNTIME

LOAD = 0.9
"""Offered load aimed at: the GPUs asked for on average over time, as a share of those there are."""
GPUS_PER_NODE = 8
_NEAR = 0.01
_ROUNDS = 30
_MOST_FASTER = 1e6


@dataclass(frozen=True)
class Crowd:
    """Jobs, the cluster made for them, how many times as fast as in their trace they come, and the load they offer."""

    trace: Trace
    cluster: Cluster
    faster: float
    load: float


def crowd_of(trace: Trace) -> Crowd | None:
    """Return the jobs of a trace that ended, on a cluster to which they offer a load of 0.9, as `gputwin check` counts.

    The nodes have eight GPUs of no stated model. There are as many as the load needs, or the widest job; where that
    leaves them idle, arrivals are drawn together. None where no job asks for GPUs, or where all jobs at once would not
    fill the cluster that the widest one needs.
    """
    tasks = _ended(trace.tasks)
    if tasks.is_empty() or not tasks["gpu_count"].max():
        return None
    size = max(GPUS_PER_NODE, int(tasks["gpu_count"].max()))  # type: ignore[arg-type]
    widest = _nodes_of_widest(tasks, size)
    asked = _load(tasks, _cluster(widest, size)) * widest
    cluster = _cluster(max(math.ceil(asked / LOAD), widest), size)
    faster, found = 1.0, _load(tasks, cluster)
    for _ in range(_ROUNDS):
        if abs(found - LOAD) <= _NEAR:
            return Crowd(_trace(trace, _drawn_together(tasks, faster)), cluster, faster, found)
        # Jobs that come twice as fast offer about twice the load, less what then lies beyond the last arrival.
        faster *= LOAD / found
        if not 0 < faster <= _MOST_FASTER:
            return None
        found = _load(_drawn_together(tasks, faster), cluster)
    return None


def _ended(tasks: pl.DataFrame) -> pl.DataFrame:
    """Return the tasks of jobs of which every task has a known arrival and runtime."""
    known = ARRIVAL.is_not_null() & RUNTIME.is_not_null()
    return tasks.filter(known.all().over("job_id"))


def _nodes_of_widest(tasks: pl.DataFrame, size: int) -> int:
    """Return how many nodes of `size` GPUs the widest job needs for itself."""
    shares = WHOLE_GPU_MILLI // pl.col("gpu_milli").fill_null(WHOLE_GPU_MILLI).clip(1, WHOLE_GPU_MILLI)
    count = pl.col("gpu_count").fill_null(0)
    per_node = size * shares // count.clip(1)
    nodes = pl.when(count > 0).then((pl.col("instances") / per_node).ceil()).otherwise(0)
    return max(int(tasks.group_by("job_id").agg(nodes.sum().alias("nodes"))["nodes"].max()), 1)  # type: ignore[arg-type]


def _drawn_together(tasks: pl.DataFrame, faster: float) -> pl.DataFrame:
    """Return the tasks as they are submitted when they come so many times as fast, each for as long as it ran."""
    first = tasks.select(ARRIVAL.min()).item()
    return tasks.with_columns(
        (first + (ARRIVAL - first) / faster).alias("submit_time"),
        RUNTIME.alias("duration_seconds"),
        pl.lit(None, pl.Float64).alias("start_time"),
        pl.lit(None, pl.Float64).alias("end_time"),
        pl.lit(False).alias("is_running"),
        pl.lit(False).alias("was_running"),
    )


def _cluster(nodes: int, size: int) -> Cluster:
    return Cluster(f"{nodes} × {size} GPUs", (NodeGroup("node", nodes, size),))


def _trace(trace: Trace, tasks: pl.DataFrame) -> Trace:
    return Trace.from_frames({"tasks": tasks}, replace(TraceMeta(trace.meta.source), zone=trace.meta.zone))


def _load(tasks: pl.DataFrame, cluster: Cluster) -> float:
    """Return the largest mean load that the tasks offer, of any resource and GPU model."""
    trace = Trace(TraceMeta("crowd", tables={"tasks": tasks.height}), {"tasks": tasks})
    return max((load.mean for load in check_load(trace, cluster).loads), default=0.0)
