"""The best schedule of a handful of jobs on a small cluster, in hindsight: what online policies are measured against.

Maximises Σ weight × completed by the horizon − wait penalty × weight × wait − spread penalty × nodes beyond the fewest −
fairness penalty × (largest − smallest share of GPU time per tenant), under capacity of every node, whole gangs, GPU
models and per-node limits. A job runs once, without interruption.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class SmallJob:
    """One gang: `instances` of `gpus` GPUs each for `duration` (whole steps) from `submit` on."""

    name: str
    submit: int
    duration: int
    instances: int = 1
    gpus: int = 1
    weight: int = 1
    tenant: str = ""
    nodes: frozenset[int] | None = None
    """Nodes it may run on; None: all."""
    max_per_node: int | None = None


@dataclass(frozen=True)
class Goal:
    """What counts: weights of the terms of the objective, all whole numbers."""

    completed: int = 0
    wait: int = 1
    spread: int = 0
    unfairness: int = 0
    horizon: int | None = None
    """Time by which a job must end to count as completed."""


@dataclass(frozen=True)
class BestSchedule:
    """Start of each job (None: not run), nodes of its instances, the objective, and a bound none can exceed."""

    starts: tuple[int | None, ...]
    nodes: tuple[tuple[int, ...], ...]
    objective: int
    bound: int

    @property
    def is_optimal(self) -> bool:
        """Return whether no schedule is better."""
        return self.objective >= self.bound


def best_schedule(
    jobs: Sequence[SmallJob],
    node_gpus: Sequence[int],
    goal: Goal | None = None,
    *,
    seconds: float = 10.0,
    seed: int = 0,
) -> BestSchedule:
    """Return the schedule with the largest objective found within so many seconds, and an upper bound."""
    from ortools.sat.python import cp_model

    goal = goal or Goal()
    model = cp_model.CpModel()
    horizon = max((j.submit for j in jobs), default=0) + sum(j.duration for j in jobs)
    starts, present, placed = [], [], []
    by_node: list[list[tuple[Any, Any]]] = [[] for _ in node_gpus]
    terms: list[Any] = []
    for job in jobs:
        start = model.new_int_var(job.submit, horizon, "")
        runs = model.new_bool_var("")
        if not goal.completed:
            model.add(runs == 1)
        counts = _place(model, job, node_gpus, start, runs, by_node)
        starts.append(start)
        present.append(runs)
        placed.append(counts)
        terms += _terms(model, job, goal, start, runs, counts, node_gpus, horizon)
    for n, users in enumerate(by_node):
        if users:
            model.add_cumulative([u for u, _ in users], [d for _, d in users], node_gpus[n])
    if goal.unfairness:
        terms.append(-goal.unfairness * _unfairness(model, jobs, present))
    model.maximize(sum(terms))
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = seconds
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = seed
    status = solver.solve(model)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return BestSchedule((None,) * len(jobs), ((),) * len(jobs), -(2**53), 2**53)
    chosen = tuple(solver.value(s) if solver.value(p) else None for s, p in zip(starts, present, strict=True))
    nodes = tuple(
        tuple(n for n, v in counts.items() for _ in range(solver.value(v))) if at is not None else ()
        for counts, at in zip(placed, chosen, strict=True)
    )
    return BestSchedule(chosen, nodes, round(solver.objective_value), math.floor(solver.best_objective_bound + 1e-6))


def _place(
    model: Any, job: SmallJob, node_gpus: Sequence[int], start: Any, runs: Any, by_node: list[list[tuple[Any, Any]]]
) -> dict[int, Any]:
    """Return instances per node, after adding the gang's use of each node over time."""
    counts: dict[int, Any] = {}
    for n, gpus in enumerate(node_gpus):
        most = min(job.instances, gpus // job.gpus if job.gpus else job.instances, job.max_per_node or job.instances)
        if most and (job.nodes is None or n in job.nodes):
            counts[n] = model.new_int_var(0, most, "")
            span = model.new_interval_var(start, job.duration, start + job.duration, "")
            by_node[n].append((span, counts[n] * job.gpus))
    model.add(sum(counts.values()) == job.instances * runs)
    return counts


def _terms(
    model: Any,
    job: SmallJob,
    goal: Goal,
    start: Any,
    runs: Any,
    counts: dict[int, Any],
    node_gpus: Sequence[int],
    horizon: int,
) -> list[Any]:
    terms: list[Any] = []
    if goal.completed:
        in_time = model.new_bool_var("")
        model.add_implication(in_time, runs)
        if goal.horizon is not None:
            model.add(start + job.duration <= goal.horizon).only_enforce_if(in_time)
        terms.append(goal.completed * job.weight * in_time)
    if goal.wait:
        wait = model.new_int_var(0, horizon, "")
        model.add(wait == start - job.submit).only_enforce_if(runs)
        terms.append(-goal.wait * job.weight * wait)
    if goal.spread:
        largest = max((node_gpus[n] // max(job.gpus, 1) for n in counts), default=1)
        used = []
        for count in counts.values():
            is_used = model.new_bool_var("")
            model.add(count == 0).only_enforce_if(is_used.negated())
            used.append(is_used)
        terms.append(-goal.spread * (sum(used) - -(-job.instances // max(largest, 1))))
    return terms


def _unfairness(model: Any, jobs: Sequence[SmallJob], present: Sequence[Any]) -> Any:
    """Return the difference between the largest and smallest completed share (in percent) of a tenant's GPU time."""
    tenants = sorted({j.tenant for j in jobs})
    shares = []
    for tenant in tenants:
        own = [(j.instances * j.gpus * j.duration, p) for j, p in zip(jobs, present, strict=True) if j.tenant == tenant]
        total = sum(w for w, _ in own)
        share = model.new_int_var(0, 100, "")
        model.add_division_equality(share, sum(100 * w * p for w, p in own), max(total, 1))
        shares.append(share)
    high, low = model.new_int_var(0, 100, ""), model.new_int_var(0, 100, "")
    model.add_max_equality(high, shares)
    model.add_min_equality(low, shares)
    return high - low
