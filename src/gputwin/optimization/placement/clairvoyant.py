"""The most GPU allocation on given nodes when all arrivals are known: a packing, and a bound none can exceed.

Online rules place pods as they come; this packs the same pods knowing all of them, so the difference is what the online
rule leaves on the table. The packing puts the largest GPU requests first, each on the node and devices it fits tightest;
the bound is a linear program that pools the nodes of one kind.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from gputwin.core.units import WHOLE_GPU_MILLI
from gputwin.optimization.placement.problem import Ints

_AMOUNTS = ("cpu_milli", "memory_mib")
_PLENTY = 1 << 50


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
    amounts = np.column_stack([tasks[c].fill_null(0).to_numpy() for c in _AMOUNTS]).astype(np.int64)
    allowed = _allowed(tasks, nodes)
    free = np.column_stack([nodes[c].cast(pl.Int64).fill_null(_PLENTY).to_numpy() for c in _AMOUNTS]).astype(np.int64)
    count = nodes["gpu_count"].to_numpy()
    devices = np.where(np.arange(count.max()) < count[:, None], WHOLE_GPU_MILLI, 0).astype(np.int64)
    bound = _bound(gpus * milli, amounts, allowed, nodes)
    placed = np.full(len(gpus), -1, np.int64)
    held: list[tuple[int, ...]] = [()] * len(gpus)
    # Bound to few models first, then many whole GPUs, then large shares, then the hungriest for CPU.
    order = np.lexsort((-amounts[:, 0], -milli, -gpus * milli, [a is None for a in allowed]))
    for task in order.tolist():
        row = _tightest(free, devices, amounts[task], int(gpus[task]), int(milli[task]), allowed[task])
        if row is None:
            continue
        chosen = _devices(devices[row], int(gpus[task]), int(milli[task]))
        devices[row, list(chosen)] -= milli[task]
        free[row] -= amounts[task]
        placed[task], held[task] = row, chosen
    total = int((gpus * milli)[placed >= 0].sum())
    capacity = int(count.sum()) * WHOLE_GPU_MILLI
    return Clairvoyant(total, max(bound, total), capacity, int((gpus * milli).sum()), placed, tuple(held))


def _allowed(tasks: pl.DataFrame, nodes: pl.DataFrame) -> list[Any]:
    """Return per task the nodes its GPU models allow, as flags; None: all."""
    models = nodes["gpu_model"].fill_null("").to_numpy()
    known: dict[str, Any] = {}
    result = []
    for text in tasks["gpu_models_allowed"]:
        if not text:
            result.append(None)
            continue
        if text not in known:
            known[text] = np.isin(models, [*text.split("|"), ""])
        result.append(known[text])
    return result


def _tightest(free: Ints, devices: Ints, amounts: Ints, gpus: int, milli: int, allowed: Any) -> int | None:
    able = (free >= amounts).all(axis=1)
    if allowed is not None:
        able &= allowed
    if gpus:
        able &= (devices >= milli).sum(axis=1) >= gpus
    rows = np.flatnonzero(able)
    if not rows.size:
        return None
    if gpus and milli < WHOLE_GPU_MILLI:
        left = np.where(devices[rows] >= milli, devices[rows], 2 * WHOLE_GPU_MILLI).min(axis=1) * 1000
        score = left + devices[rows].sum(axis=1)
    else:
        score = devices[rows].sum(axis=1)
        if not gpus:
            # Pods without a GPU go where none is left, and then where CPU is plenty for each GPU.
            score = score * 1e6 - free[rows, 0]
    # Among equals the node whose CPU per free GPU is nearest to what the task takes.
    ratio = np.abs(free[rows, 0] / np.maximum(devices[rows].sum(axis=1), 1) - amounts[0] / max(gpus * milli, 1))
    return int(rows[np.lexsort((rows, ratio, score))[0]])


def _devices(devices: Ints, gpus: int, milli: int) -> tuple[int, ...]:
    able = [int(d) for d in np.argsort(devices, kind="stable") if devices[d] >= milli]
    return tuple(able[:gpus]) if gpus else ()


def _bound(gpu: Ints, amounts: Ints, allowed: list[Any], nodes: pl.DataFrame) -> int:
    """Return the optimum of the linear program that pools nodes of one GPU model, rounded up to whole milli."""
    from ortools.linear_solver import pywraplp

    models = nodes["gpu_model"].fill_null("")
    pools = models.unique().sort().to_list()
    shapes: dict[tuple[int, int, int, tuple[bool, ...]], int] = {}
    for i in range(len(gpu)):
        if gpu[i]:
            flags = tuple(True for _ in pools) if allowed[i] is None else _pools(allowed[i], models, pools)
            key = (int(gpu[i]), int(amounts[i, 0]), int(amounts[i, 1]), flags)
            shapes[key] = shapes.get(key, 0) + 1
    solver: Any = pywraplp.Solver.CreateSolver("GLOP")
    goal = solver.Objective()
    goal.SetMaximization()
    rows = []
    for pool in pools:
        own = nodes.filter(models == pool)
        limits = [int(own["gpu_count"].sum()) * WHOLE_GPU_MILLI]
        limits += [int(own[c].cast(pl.Int64).fill_null(_PLENTY).sum()) for c in _AMOUNTS]
        rows.append([solver.Constraint(0.0, float(limit)) for limit in limits])
    for (take, cpu, memory, flags), count in shapes.items():
        row = solver.Constraint(0.0, float(count))
        for p, is_allowed in enumerate(flags):
            if is_allowed:
                variable = solver.NumVar(0.0, float(count), "")
                goal.SetCoefficient(variable, float(take))
                row.SetCoefficient(variable, 1.0)
                for constraint, amount in zip(rows[p], (take, cpu, memory), strict=True):
                    constraint.SetCoefficient(variable, float(amount))
    solver.Solve()
    return int(np.ceil(goal.Value() - 1e-3))


def _pools(flags: Any, models: pl.Series, pools: list[str]) -> tuple[bool, ...]:
    able = set(models.filter(pl.Series(flags)).to_list())
    return tuple(p in able for p in pools)
