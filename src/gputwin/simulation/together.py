"""Jobs of several roles that an empty cluster cannot hold together, though it can hold each role by itself."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import polars as pl

from gputwin.core.units import WHOLE_GPU_MILLI

_AMOUNTS = ("cpu_milli", "memory_mib", "disk_mib", "rdma_percent")
_ASKED = (*_AMOUNTS, "gpu_count", "gpu_milli", "gpu_memory_mib", "gpu_models_allowed", "max_per_node")
REASON = "the roles of its job do not fit on the cluster together"
MOST_TRIALS = 5000
"""After so many trial placements of one instance the search gives up, and nothing is said about the job."""

Row = dict[str, Any]


@dataclass
class _Node:
    """A node of one kind, and what is free on it."""

    kind: Row
    free: dict[str, float]
    shares: list[int]
    gpu_memory: list[float]
    living: Counter[str]

    @classmethod
    def empty(cls, kind: Row) -> _Node:
        free = {a: math.inf if kind[a] is None else kind[a] for a in _AMOUNTS}
        memory = math.inf if kind["gpu_memory_mib"] is None else kind["gpu_memory_mib"]
        gpus = kind["gpu_count"]
        return cls(kind, free, [WHOLE_GPU_MILLI] * gpus, [memory] * gpus, Counter())

    def choices(self, role: Row) -> list[tuple[int, ...]]:
        """Return the sets of devices one more instance could take; of sets alike, one."""
        if any((role[a] or 0) > self.free[a] for a in _AMOUNTS):
            return []
        if role["max_per_node"] is not None and self.living[role["application"]] >= role["max_per_node"]:
            return []
        count, milli = _gpus(role)
        if count == 0:
            return [()]
        models = role["gpu_models_allowed"]
        if models and self.kind["gpu_model"] not in {None, *models.split("|")}:
            return []
        memory = role["gpu_memory_mib"] or 0
        fitting = [d for d, free in enumerate(self.shares) if free >= milli and self.gpu_memory[d] >= memory]
        if milli == WHOLE_GPU_MILLI:
            return [tuple(fitting[:count])] if len(fitting) >= count else []
        alike = {
            tuple(sorted((self.shares[d], self.gpu_memory[d]) for d in chosen)): chosen
            for chosen in combinations(fitting, count)
        }
        return list(alike.values())

    def take(self, role: Row, devices: Sequence[int], sign: int = 1) -> None:
        for a in _AMOUNTS:
            self.free[a] -= sign * (role[a] or 0)
        for d in devices:
            self.shares[d] -= sign * _gpus(role)[1]
            self.gpu_memory[d] -= sign * (role["gpu_memory_mib"] or 0)
        if role["max_per_node"] is not None:
            self.living[role["application"]] += sign


def _gpus(role: Row) -> tuple[int, int]:
    milli = WHOLE_GPU_MILLI if role["gpu_milli"] is None else role["gpu_milli"]
    return (role["gpu_count"] or 0 if milli else 0), milli


def gangs_that_never_fit(tasks: pl.DataFrame, nodes: pl.DataFrame) -> list[Row]:
    """Return for each kind of gang that does not fit together: reason, number of tasks, an example job."""
    roles = tasks.filter(pl.len().over("job_id") > 1)
    if roles.is_empty():
        return []
    kinds = nodes.group_by("gpu_model", "gpu_count", "gpu_memory_mib", *_AMOUNTS, maintain_order=True).agg(
        pl.len().alias("count")
    )
    # Of an application's name only matters which roles of the job share it.
    application = pl.coalesce("application", "job_id").rank("dense").over("job_id").cast(pl.String)
    gangs = (
        roles.with_columns(pl.when(pl.col("max_per_node").is_not_null()).then(application).alias("application"))
        .select("job_id", pl.struct("instances", "application", *_ASKED).alias("role"))
        .group_by("job_id", maintain_order=True)
        .agg(pl.col("role").sort())
        .group_by("role", maintain_order=True)
        .agg(pl.len().alias("jobs"), pl.col("job_id").first())
    )
    found = []
    for gang in gangs.to_dicts():
        if not _fits(gang["role"], kinds.to_dicts()):
            found.append({"reason": REASON, "tasks": gang["jobs"] * len(gang["role"]), "example_job": gang["job_id"]})
    return found


def _fits(roles: list[Row], kinds: list[Row]) -> bool:
    """Return whether all roles find a place; True where one of them does not fit by itself, or the search gives up."""
    rooms = [[_room(role, kind) for kind in kinds] for role in roles]
    for role, room in zip(roles, rooms, strict=True):
        if sum(r * kind["count"] for r, kind in zip(room, kinds, strict=True)) < role["instances"]:
            return True
    hardest = sorted(
        range(len(roles)), key=lambda g: sum(k["count"] for k, r in zip(kinds, rooms[g], strict=True) if r)
    )
    if _fit_apart([(roles[g], rooms[g]) for g in hardest], kinds):
        return True
    asked = [roles[g] for g in hardest for _ in range(roles[g]["instances"])]
    return _Search(kinds).place(asked)


def _room(role: Row, kind: Row) -> int:
    """Return how many instances of a role an empty node of a kind can hold."""
    node, room = _Node.empty(kind), 0
    while room < role["instances"]:
        choices = node.choices(role)
        if not choices:
            break
        node.take(role, max(choices, key=lambda chosen: sum(node.shares[d] for d in chosen)))
        room += 1
    return room


def _fit_apart(roles: list[tuple[Row, list[int]]], kinds: list[Row]) -> bool:
    """Return whether there are enough nodes for each role to have its own: so it is on all but the smallest clusters."""
    left = [kind["count"] for kind in kinds]
    for role, rooms in roles:
        needed = role["instances"]
        for k, room in enumerate(rooms):
            if room and needed > 0:
                used = min(left[k], math.ceil(needed / room))
                left[k] -= used
                needed -= used * room
        if needed > 0:
            return False
    return True


class _Search:
    """Tries all ways to place instances on nodes in use, and on one more of each kind."""

    def __init__(self, kinds: list[Row]) -> None:
        self.nodes: list[_Node] = []
        self.fresh = [(kind, kind["count"]) for kind in kinds]
        self.used = Counter[int]()
        self.trials = 0

    def place(self, asked: list[Row]) -> bool:
        """Return whether all instances find a place, or so many trials were made that nothing can be said."""
        if not asked:
            return True
        role, others = asked[0], asked[1:]
        new = [(k, _Node.empty(kind)) for k, (kind, count) in enumerate(self.fresh) if self.used[k] < count]
        for k, node in [*((-1, node) for node in self.nodes), *new]:
            for devices in node.choices(role):
                self.trials += 1
                if self.trials > MOST_TRIALS:
                    return True
                node.take(role, devices)
                if k >= 0:
                    self.nodes.append(node)
                    self.used[k] += 1
                placed = self.place(others)
                node.take(role, devices, -1)
                if k >= 0:
                    self.nodes.pop()
                    self.used[k] -= 1
                if placed:
                    return True
        return False
