"""The resource-constrained project scheduling problem: activities with precedence on renewable resources.

The model is the standard one of interval variables and cumulative constraints, solved by CP-SAT; the critical path and
each resource's total work give a first bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from time import process_time
from typing import Any


@dataclass(frozen=True)
class Project:
    """Activities: how long each lasts, what it takes while it runs, and who follows it."""

    durations: tuple[int, ...]
    demands: tuple[tuple[int, ...], ...]
    capacities: tuple[int, ...]
    successors: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Schedule:
    """Start of each activity, the makespan, and a makespan no schedule can be below."""

    starts: tuple[int, ...]
    makespan: int
    bound: int
    cpu_seconds: float

    @property
    def is_optimal(self) -> bool:
        """Return whether the makespan is proven to be least."""
        return self.makespan <= self.bound


def least_makespan(project: Project, *, seconds: float = 10.0, seed: int = 0) -> Schedule:
    """Return a schedule of least makespan, as far as it is found within so many seconds."""
    from ortools.sat.python import cp_model

    began = process_time()
    first = serial_schedule(project)
    horizon = max((s + d for s, d in zip(first, project.durations, strict=True)), default=0)
    least = work_bound(project)
    if horizon <= least:
        return Schedule(tuple(first), horizon, least, process_time() - began)
    model = cp_model.CpModel()
    starts = [model.new_int_var(0, horizon - d, "") for d in project.durations]
    ends: list[Any] = [s + d for s, d in zip(starts, project.durations, strict=True)]
    spans = [model.new_fixed_size_interval_var(s, d, "") for s, d in zip(starts, project.durations, strict=True)]
    for i, after in enumerate(project.successors):
        for j in after:
            model.add(starts[j] >= ends[i])
    for r, capacity in enumerate(project.capacities):
        users = [i for i, demand in enumerate(project.demands) if demand[r] and project.durations[i]]
        if users:
            model.add_cumulative([spans[i] for i in users], [project.demands[i][r] for i in users], capacity)
    makespan = model.new_int_var(least, horizon, "")
    for end in ends:
        model.add(makespan >= end)
    model.minimize(makespan)
    for variable, value in zip(starts, first, strict=True):
        model.add_hint(variable, value)
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = seconds
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = seed
    status = solver.solve(model)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return Schedule(tuple(first), horizon, least, process_time() - began)
    bound = max(least, math.ceil(solver.best_objective_bound - 1e-6))
    found = tuple(solver.value(s) for s in starts)
    return Schedule(found, round(solver.objective_value), bound, process_time() - began)


def serial_schedule(project: Project) -> list[int]:
    """Return starts by the serial scheme: each activity as early as it can, those with the longest tail first."""
    tails = _tails(project)
    before: list[list[int]] = [[] for _ in project.durations]
    for i, after in enumerate(project.successors):
        for j in after:
            before[j].append(i)
    horizon = sum(project.durations) + 1
    used = [[0] * horizon for _ in project.capacities]
    starts: dict[int, int] = {}
    while len(starts) < len(project.durations):
        ready = [i for i in range(len(before)) if i not in starts and all(b in starts for b in before[i])]
        i = max(ready, key=lambda i: (tails[i], -i))
        at = max((starts[b] + project.durations[b] for b in before[i]), default=0)
        while not _has_room(project, used, i, at):
            at += 1
        starts[i] = at
        for r, amount in enumerate(project.demands[i]):
            for t in range(at, at + project.durations[i]):
                used[r][t] += amount
    return [starts[i] for i in range(len(before))]


def _has_room(project: Project, used: list[list[int]], activity: int, at: int) -> bool:
    return all(
        used[r][t] + amount <= project.capacities[r]
        for r, amount in enumerate(project.demands[activity])
        for t in range(at, at + project.durations[activity])
    )


def _tails(project: Project) -> list[int]:
    """Return the longest path from each activity's start to the end."""
    tails: dict[int, int] = {}

    def tail(i: int) -> int:
        if i not in tails:
            tails[i] = project.durations[i] + max((tail(j) for j in project.successors[i]), default=0)
        return tails[i]

    return [tail(i) for i in range(len(project.durations))]


def work_bound(project: Project) -> int:
    """Return the longer of the critical path and each resource's work over its capacity."""
    path = max(_tails(project), default=0)
    for r, capacity in enumerate(project.capacities):
        work = sum(d * demand[r] for d, demand in zip(project.durations, project.demands, strict=True))
        if work:
            path = max(path, -(-work // capacity))
    return path
