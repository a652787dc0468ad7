"""The most GPU allocation on given nodes when all arrivals are known: a packing, and a bound none can exceed.

Online rules place pods as they come; this packs the same pods knowing all of them, so the difference is what the online
rule leaves on the table. The packing puts the largest GPU requests first, each on the node and devices it fits tightest,
and moves single tasks to let in those that found no room; the bound is a linear program that pools the nodes of one kind.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from gputwin.core.units import WHOLE_GPU_MILLI
from gputwin.optimization.placement.ejection import Requests, make_room
from gputwin.optimization.placement.fleet import AMOUNTS, Fleet
from gputwin.optimization.placement.problem import Ints


@dataclass(frozen=True)
class Clairvoyant:
    """Allocated GPU milli, the bound, capacity and demand, and which node each task went to (−1: none)."""

    allocated: int
    bound: int
    capacity: int
    demand: int
    nodes: Ints
    devices: tuple[tuple[int, ...], ...]

    @property
    def allocation(self) -> float:
        """Return the share of GPU capacity that is allocated."""
        return self.allocated / self.capacity

    @property
    def bound_allocation(self) -> float:
        """Return the share that no placement can exceed."""
        return self.bound / self.capacity


def pack_most(tasks: pl.DataFrame, nodes: pl.DataFrame) -> Clairvoyant:
    """Return a packing of single-instance tasks that allocates as much GPU as it can, and the bound."""
    gpus = tasks["gpu_count"].fill_null(0).to_numpy().astype(np.int64)
    milli = np.where(gpus > 0, tasks["gpu_milli"].fill_null(WHOLE_GPU_MILLI).to_numpy(), 0).astype(np.int64)
    amounts = np.column_stack([tasks[c].fill_null(0).to_numpy() for c in AMOUNTS]).astype(np.int64)
    allowed = _allowed(tasks, nodes)
    kinds = nodes.select(pl.struct("gpu_model", "gpu_count", *AMOUNTS).rank("dense").cast(pl.Int64) - 1).to_series()
    pools = kinds.to_numpy()
    bound, homes = _pooled(gpus, milli, amounts, allowed, Fleet.of(nodes), pools)
    takes = gpus * milli
    several = -np.where(gpus > 1, gpus, 0)
    # Many whole GPUs first, pods without a GPU last; between them large shares, or the hungriest for CPU.
    orders = (
        np.lexsort((-amounts[:, 0], -milli, several, gpus == 0)),
        np.lexsort((-milli, -amounts[:, 0], several, gpus == 0)),
        np.lexsort((-milli, -(amounts[:, 0] // np.maximum(takes, 1)), several, gpus == 0)),
    )
    capacity = int(nodes["gpu_count"].sum()) * WHOLE_GPU_MILLI
    # Gangs first and the rest as they came; then each of the orders, on the kinds of nodes that the linear program gives
    # the tasks to and on any. Tasks that came mixed fill nodes evenly in all resources, which sorted ones may not.
    starts = [(np.lexsort((np.arange(len(gpus)), several)), np.full_like(homes, -1))]
    starts += [(order, given) for order in orders for given in (homes, np.full_like(homes, -1))]
    best: Clairvoyant | None = None
    left: tuple[Fleet, Ints, list[tuple[int, ...]]] | None = None
    for order, given in starts:
        fleet = Fleet.of(nodes)
        placed, held = _pack(order, gpus, milli, amounts, allowed, pools, given, fleet)
        total = int(takes[placed >= 0].sum())
        if best is None or total > best.allocated:
            best = Clairvoyant(total, max(bound, total), capacity, int(takes.sum()), placed, tuple(held))
            left = (fleet, placed, held)
        if best.allocated >= best.bound:
            return best
    assert best is not None
    assert left is not None
    fleet, placed, held = left
    make_room(Requests(gpus, milli, amounts, allowed), placed, held, fleet)
    total = int(takes[placed >= 0].sum())
    return Clairvoyant(total, max(bound, total), capacity, int(takes.sum()), placed, tuple(held))


def _pack(
    order: Ints, gpus: Ints, milli: Ints, amounts: Ints, allowed: list[Any], pools: Ints, homes: Ints, fleet: Fleet
) -> tuple[Ints, list[tuple[int, ...]]]:
    """Return node and devices of each task: first on nodes of its own kind, then, who is left, on any."""
    placed = np.full(len(gpus), -1, np.int64)
    held: list[tuple[int, ...]] = [()] * len(gpus)
    for is_homeless in (False, True):
        for task in order.tolist():
            if placed[task] < 0 and (is_homeless or homes[task] >= 0):
                able = allowed[task]
                if not is_homeless:
                    own = pools == homes[task]
                    able = own if able is None else able & own
                row = fleet.best(amounts[task], int(gpus[task]), int(milli[task]), able)
                if row is not None:
                    held[task] = fleet.put(row, amounts[task], int(gpus[task]), int(milli[task]))
                    placed[task] = row
    return placed, held


def _allowed(tasks: pl.DataFrame, nodes: pl.DataFrame) -> list[Any]:
    """Return per task the nodes its GPU models allow, as flags; None: all."""
    models = nodes["gpu_model"].fill_null("").to_numpy()
    known: dict[str, Any] = {}
    result: list[Any] = []
    for text in tasks["gpu_models_allowed"]:
        if not text:
            result.append(None)
            continue
        if text not in known:
            known[text] = np.isin(models, [*text.split("|"), ""])
        result.append(known[text])
    return result


def _pooled(gpus: Ints, milli: Ints, amounts: Ints, allowed: list[Any], fleet: Fleet, pools: Ints) -> tuple[int, Ints]:
    """Return the optimum of the linear program that pools nodes of one kind, and the kind each task is given to.

    A task may only go to kinds of which one empty node holds it. The value is rounded up: no placement exceeds it.
    """
    from ortools.linear_solver import pywraplp

    count = int(pools.max()) + 1
    first = [int(np.flatnonzero(pools == p)[0]) for p in range(count)]
    shapes: dict[tuple[Any, ...], list[int]] = {}
    for i in np.flatnonzero(gpus).tolist():
        flags = tuple(
            bool((allowed[i] is None or allowed[i][n]) and _holds(fleet, n, amounts[i], int(gpus[i]), int(milli[i])))
            for n in first
        )
        key = (int(gpus[i] * milli[i]), *amounts[i].tolist(), flags)
        shapes.setdefault(key, []).append(i)
    solver: Any = pywraplp.Solver.CreateSolver("GLOP")
    goal = solver.Objective()
    goal.SetMaximization()
    slack = solver.NumVar(0.0, 1.0, "")
    rows = []
    for p in range(count):
        own = pools == p
        limits = [int(fleet.devices[own].sum()), *fleet.free[own].sum(axis=0).tolist()]
        rows.append([solver.Constraint(0.0, float(limit)) for limit in limits])
        for constraint, limit in zip(rows[-1][1:], limits[1:], strict=True):
            constraint.SetCoefficient(slack, float(limit))
    shares: dict[tuple[Any, ...], dict[int, Any]] = {}
    for key, members in shapes.items():
        *takes, flags = key
        row = solver.Constraint(0.0, float(len(members)))
        shares[key] = {}
        for p in np.flatnonzero(flags).tolist():
            variable = solver.NumVar(0.0, float(len(members)), "")
            goal.SetCoefficient(variable, float(takes[0]))
            row.SetCoefficient(variable, 1.0)
            for constraint, amount in zip(rows[p], takes, strict=True):
                constraint.SetCoefficient(variable, float(amount))
            shares[key][p] = variable
    solver.Solve()
    bound = int(np.ceil(goal.Value() - 1e-3))
    # Among equals, the one that leaves every kind the largest share of CPU and memory: whole tasks need some room.
    least = solver.Constraint(goal.Value() * (1 - 1e-9) - 1.0, solver.infinity())
    for key, variables in shares.items():
        for variable in variables.values():
            least.SetCoefficient(variable, float(key[0]))
    goal.Clear()
    goal.SetCoefficient(slack, 1.0)
    goal.SetMaximization()
    solver.Solve()
    homes = np.full(len(gpus), -1, np.int64)
    for key, members in shapes.items():
        left = list(members)
        for p, variable in shares[key].items():
            for _ in range(min(int(variable.solution_value() + 1e-6), len(left))):
                homes[left.pop()] = p
    return bound, homes


def _holds(fleet: Fleet, node: int, amounts: Ints, gpus: int, milli: int) -> bool:
    return bool((fleet.free[node] >= amounts).all() and (fleet.devices[node] >= milli).sum() >= gpus)
