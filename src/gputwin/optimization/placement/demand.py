"""From a trace to a placement problem: who was alive at an hour, and the node types they may be placed on."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from gputwin.core.errors import UserError
from gputwin.core.units import HOUR, MIB_PER_GIB, WHOLE_GPU_MILLI
from gputwin.optimization.placement.problem import InstanceGroup, NodeType, Problem
from gputwin.simulation.cluster import Cluster, NodeGroup
from gputwin.traces.dataset import Trace
from gputwin.traces.describe import time_bounds
from gputwin.traces.lifetimes import observed, with_lives
from gputwin.traces.schema import DEFAULT_ROLE

RESOURCES = ("gpu_milli", "cpu_milli", "memory_mib", "disk_mib", "rdma_percent")
OBJECTIVES = ("nodes", "cost", "unallocated", "demand")
UNITS = {
    "nodes": "nodes",
    "cost": "micro-units of price per hour",
    "unallocated": "parts of demand",
    "demand": "millionths of the demand not placed",
}
_UNLIMITED = 1 << 40
_AMOUNTS = ("cpu_milli", "memory_mib", "disk_mib", "rdma_percent")
_KINDS = (
    *("role", "application", "cpu_milli", "memory_mib", "gpu_count", "gpu_milli", "disk_mib", "rdma_percent"),
    *("gpu_models_allowed", "max_per_node"),
)
"""Columns in which the tasks of a group agree."""

DLRM_NODES = Cluster(
    "dlrm2025-assumed",
    (
        NodeGroup(
            "HN",
            count=1000,
            gpus=8,
            cpu_milli=128_000,
            memory_mib=1024 * MIB_PER_GIB,
            disk_mib=4096 * MIB_PER_GIB,
            rdma_percent=200,
        ),
        NodeGroup(
            "CN",
            count=4000,
            cpu_milli=192_000,
            memory_mib=1024 * MIB_PER_GIB,
            disk_mib=2048 * MIB_PER_GIB,
            rdma_percent=100,
        ),
    ),
)
"""Assumed, since the trace publishes no nodes: the smallest common servers on which every instance of the trace fits."""


def lives(trace: Trace) -> pl.DataFrame:
    """Return the tasks whose life is known with its `begin` and `end`, s; infinite where cut off by the record.

    A task is there from its arrival to its end, waiting or running (`gputwin.traces.lifetimes`).
    """
    if trace.tasks.is_empty():
        raise UserError("the trace has no tasks, so there is nothing to place")
    known = with_lives(trace.tasks, observed(trace.tasks)).filter(~pl.col("is_unknown"))
    begin = pl.when("was_running").then(-math.inf).otherwise("asked_from")
    held = (
        pl.when(pl.col("held_seconds").is_null())
        .then("end_time")
        .otherwise(pl.col("held_from") + pl.col("held_seconds"))
    )
    end = pl.when("is_alive").then(math.inf).otherwise(held).fill_null(math.inf)
    return known.with_columns(begin.alias("begin"), end.alias("end")).filter(pl.col("begin").is_not_null())


def alive(trace: Trace, time: float) -> pl.DataFrame:
    """Return the tasks alive at a time (s): arrived by then, not ended by then."""
    return lives(trace).filter((pl.col("begin") <= time) & (pl.col("end") > time))


def busiest_hour(trace: Trace) -> float:
    """Return the full hour (s) at which most instances are alive, the first of equals."""
    bounds = time_bounds(trace)
    if bounds is None or not all(map(math.isfinite, bounds)):
        raise UserError("no task of the trace has a time, so no hour is the busiest; give one with --at")
    known = lives(trace)
    first, last = math.floor(bounds[0] / HOUR), math.floor(bounds[1] / HOUR)
    hours = np.arange(first, last + 1) * HOUR
    size = known["instances"].to_numpy()
    begin, end = known["begin"].to_numpy(), known["end"].to_numpy()
    came = np.argsort(begin, kind="stable")
    went = np.argsort(end, kind="stable")
    arrived = np.append(0, np.cumsum(size[came]))[np.searchsorted(begin[came], hours, side="right")]
    left = np.append(0, np.cumsum(size[went]))[np.searchsorted(end[went], hours, side="right")]
    return float(hours[int(np.argmax(arrived - left))])


def groups_of(tasks: pl.DataFrame, *, growth: Mapping[str, float] | float = 1.0) -> tuple[InstanceGroup, ...]:
    """Return the tasks as groups of identical instances, in order of name.

    A role that names a node type binds to it (`problem_of`). `growth` multiplies the number of instances, per
    application or in all, rounded up: a forecast over the present.
    """
    kinds = _asked(tasks).group_by(_KINDS).agg(pl.col("instances").sum().alias("count")).sort(_KINDS)
    return tuple(_group_of(row, growth) for row in kinds.to_dicts())


def numbered_groups(tasks: pl.DataFrame) -> tuple[tuple[InstanceGroup, ...], pl.Series]:
    """Return the groups of the tasks as `groups_of` does, and the number of each task's group."""
    frame = _asked(tasks)
    kinds = frame.group_by(_KINDS).agg(pl.col("instances").sum().alias("count")).sort(_KINDS)
    number = {key: i for i, key in enumerate(kinds.select(_KINDS).rows())}
    found = pl.Series([number[key] for key in frame.select(_KINDS).rows()], dtype=pl.Int64)
    return tuple(_group_of(row, 1.0) for row in kinds.to_dicts()), found


def _asked(tasks: pl.DataFrame) -> pl.DataFrame:
    """Return the tasks with what they ask for in whole numbers, nothing missing."""
    whole = pl.lit(WHOLE_GPU_MILLI)
    asks = (pl.col("gpu_count").fill_null(0) > 0) & (pl.col("gpu_milli").fill_null(WHOLE_GPU_MILLI) > 0)
    return tasks.with_columns(
        *(pl.col(c).cast(pl.Int64).fill_null(0) for c in _AMOUNTS),
        pl.when(asks).then(pl.col("gpu_count")).otherwise(0).cast(pl.Int64).alias("gpu_count"),
        pl.when(asks).then(pl.col("gpu_milli").fill_null(whole)).otherwise(0).cast(pl.Int64).alias("gpu_milli"),
        pl.coalesce("application", "job_id").alias("application"),
        pl.col("role").fill_null(""),
    )


def _group_of(row: Mapping[str, Any], growth: Mapping[str, float] | float) -> InstanceGroup:
    owner = row["application"] if row["role"] in ("", DEFAULT_ROLE) else f"{row['application']} {row['role']}"
    factor = growth if isinstance(growth, float | int) else growth.get(row["application"], 1.0)
    gpus, milli = row["gpu_count"], row["gpu_milli"]
    asked = f"{gpus * milli / WHOLE_GPU_MILLI:g} GPU, {row['cpu_milli'] / 1000:g} CPU"
    return InstanceGroup(
        f"{owner} ({asked}, {row['memory_mib'] // MIB_PER_GIB} GiB, {row['disk_mib'] // MIB_PER_GIB} GiB disk)",
        ((gpus * milli, *(row[c] for c in _AMOUNTS)),),
        math.ceil(row["count"] * factor - 1e-9),
        application=owner,
        max_per_node=row["max_per_node"],
        node_types=None if not row["gpu_models_allowed"] else frozenset(row["gpu_models_allowed"].split("|")),
        gpus=gpus,
        gpu_milli=milli or WHOLE_GPU_MILLI,
    )


def problem_of(
    groups: tuple[InstanceGroup, ...],
    cluster: Cluster,
    *,
    objective: str = "nodes",
    is_supply_limited: bool = True,
    spread: int | None = None,
    apart: Sequence[tuple[str, str]] = (),
    rack_share: float | None = None,
) -> Problem:
    """Return the problem of placing the groups on the cluster's node types.

    `objective` is nodes, cost (price per hour), unallocated (capacity bought beyond what is asked for, each resource
    as a share of the demand for it) or demand (the most of it on the nodes there are, each resource as a share of the
    demand for it). Groups bound to GPU models or, where a node type has the name of the last word of an application (its
    role), to that role keep to them. `spread` puts every application on at least so many nodes, `apart` are pairs of
    applications that share no node, `rack_share` is the largest share of an application in one rack.
    """
    if objective not in OBJECTIVES:
        raise UserError(f"unknown objective '{objective}'; known: {', '.join(OBJECTIVES)}")
    names = {g.name for g in cluster.groups}
    bound = []
    for group in groups:
        role = group.owner.rpartition(" ")[2]
        types = group.node_types
        if types is not None:
            types = frozenset(g.name for g in cluster.groups if g.gpus and g.gpu_model in {None, *types})
        elif role in names and role != group.owner:
            types = frozenset({role})
        limit = group.max_per_node
        if spread is not None and group.count:
            most = max(group.count // spread, 1)
            limit = most if limit is None else min(limit, most)
        bound.append(replace(group, node_types=types, max_per_node=limit))
    demand = np.array([g.requests[0] for g in groups], float).T @ np.array([g.count for g in groups], float)
    if objective == "demand":
        bound = [replace(g, missing_cost=_worth(g, demand)) for g in bound]
    is_limited = is_supply_limited or objective == "demand"
    kinds = tuple(_type_of(g, objective, demand, is_limited) for g in cluster.groups)
    if rack_share is not None and not 0 < rack_share <= 1:
        raise UserError(f"the largest share per rack must lie above 0 and up to 1, not {rack_share:g}")
    if rack_share is not None and not all(k.rack for k in kinds):
        raise UserError("a share per rack needs a rack for every node group; give `rack` in the cluster spec")
    conflicts = _conflicts(groups, apart)
    return Problem(RESOURCES, tuple(bound), kinds, conflicts, rack_share, UNITS[objective])


def _worth(group: InstanceGroup, demand: np.ndarray) -> int:
    """Return what one instance is of all that is asked for: the mean over resources of its share, in millionths."""
    shares = [a / d for a, d in zip(group.requests[0], demand, strict=True) if d > 0]
    return max(round(1_000_000 * float(np.mean(shares))) if shares else 0, 1)


def _conflicts(groups: tuple[InstanceGroup, ...], apart: Sequence[tuple[str, str]]) -> frozenset[frozenset[str]]:
    """Return the pairs of owners that share no node: an application's name stands for all of its roles."""
    owners = {g.owner for g in groups}
    found = set()
    for pair in apart:
        sides = [{o for o in owners if o == name or o.rpartition(" ")[0] == name} for name in pair]
        for name, side in zip(pair, sides, strict=True):
            if not side:
                raise UserError(f"no application '{name}' is to be placed, so nothing can be kept apart from it")
        found |= {frozenset({a, b}) for a in sides[0] for b in sides[1] if a != b}
    return frozenset(found)


def _type_of(group: NodeGroup, objective: str, demand: np.ndarray, is_supply_limited: bool) -> NodeType:
    amounts = (group.cpu_milli, group.memory_mib, group.disk_mib, group.rdma_percent)
    known = (group.gpus * WHOLE_GPU_MILLI, *amounts)
    capacity = tuple(_UNLIMITED if a is None else a for a in known)
    cost = 0 if objective == "demand" else 1
    if objective == "cost":
        if group.price_per_hour is None:
            raise UserError(f"node type '{group.name}' has no price_per_hour; give one in the cluster spec")
        cost = round(group.price_per_hour * 1_000_000)
    elif objective == "unallocated":
        shares = [a / d for a, d in zip(known, demand, strict=True) if a is not None and d > 0]
        cost = max(round(1_000_000 * sum(shares)), 1)
    return NodeType(group.name, capacity, cost, group.count if is_supply_limited else None, group.gpus, group.rack)
