"""The pricing problem of column generation: what one node of a type should hold, given what each instance is worth.

Worths are integers, so that the bound made from them is exact. One resource: dynamic programming over its capacity.
Several: CP-SAT. A greedy pass comes first, since any pattern that improves will do until none is found.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gputwin.core.units import WHOLE_GPU_MILLI
from gputwin.optimization.placement.heuristics import Floats
from gputwin.optimization.placement.problem import Ints, Pattern, Problem
from gputwin.optimization.placement.rules import fits

_MOST_CELLS = 30_000_000
_MOST_PATTERNS = 20
_WIDE = 4000
"""Capacity above which a table is dear."""


@dataclass(frozen=True)
class Priced:
    """The best pattern found, and a value that no pattern of the type exceeds."""

    pattern: Pattern
    value: int
    upper: int


def greedy(problem: Problem, node_type: int, worth: Ints, weights: Sequence[Floats]) -> list[Pattern]:
    """Return one pattern per weighting of resources: choices by worth per weighted size, as many as fit of each."""
    capacity = problem.capacities[node_type]
    relative = problem.sizes / np.maximum(capacity, 1)
    candidates = np.flatnonzero((problem.most[node_type] > 0) & (worth > 0))
    found: list[Pattern] = []
    for weight in weights:
        size = relative[candidates] @ weight + 1e-9
        order = candidates[np.argsort(-worth[candidates] / size, kind="stable")]
        found.append(_take(problem, node_type, order))
    return list(dict.fromkeys(found))


def _take(problem: Problem, node_type: int, order: Ints) -> Pattern:
    free = problem.capacities[node_type].copy()
    held: dict[int, int] = {}
    owners: dict[str, int] = {}
    limits: dict[str, int] = {}
    used: dict[int, int] = {}
    plain = not problem.has_shares and not problem.conflicts
    for choice in order.tolist():
        g = int(problem.group_of[choice])
        group = problem.groups[g]
        size = problem.sizes[choice]
        positive = size > 0
        room = int((free[positive] // size[positive]).min()) if positive.any() else int(group.count)
        room = min(room, int(problem.most[node_type, choice]), group.count - used.get(g, 0))
        limit = min(limits.get(group.owner, room + owners.get(group.owner, 0)), group.max_per_node or math.inf)
        room = int(min(room, limit - owners.get(group.owner, 0)))
        while room > 0 and not plain and not fits(problem, node_type, tuple(sorted({**held, choice: room}.items()))):
            room -= 1
        if room > 0:
            held[choice] = room
            used[g] = used.get(g, 0) + room
            owners[group.owner] = owners.get(group.owner, 0) + room
            if group.max_per_node is not None:
                limits[group.owner] = min(limits.get(group.owner, group.max_per_node), group.max_per_node)
            free -= size * room
    return tuple(sorted(held.items()))


class Knapsack:
    """Exact pricing for one node type."""

    def __init__(self, problem: Problem, node_type: int, seed: int = 0) -> None:
        self.problem, self.node_type, self.seed = problem, node_type, seed
        self.model: Any = None
        self.variables: dict[int, Any] = {}
        self.by_table = self._is_plain()

    def _is_plain(self) -> bool:
        """Return whether the knapsack has one resource and no rule but its capacity and limits per choice."""
        problem = self.problem
        if len(problem.resources) != 1 or problem.has_shares or problem.conflicts:
            return False
        alone = all(len(groups) == 1 for groups in problem.applications.values())
        single = len(problem.choices) == len(problem.groups)
        steps = _units(problem.most[self.node_type])
        return alone and single and len(steps) * (int(problem.capacities[self.node_type, 0]) + 1) <= _MOST_CELLS

    def best(self, worth: Ints, seconds: float) -> Priced:
        """Return the pattern of most worth and a bound on it."""
        if self.by_table:
            return _by_table(self.problem, self.node_type, worth, self.problem.most[self.node_type])
        return self._by_solver(worth, seconds)

    def more(self, worth: Ints, first: Pattern, above: float) -> list[Pattern]:
        """Return further patterns worth more than `above`, each of instances that the patterns before left over.

        Where the capacity is wide, sizes are rounded up to a coarser unit: not the best patterns, but soon found.
        """
        found: list[Pattern] = []
        if not self.by_table:
            return found
        left, pattern = self.problem.counts.copy(), first
        unit = -(-int(self.problem.capacities[self.node_type, 0]) // _WIDE)
        for _ in range(_MOST_PATTERNS):
            for c, n in pattern:
                left[c] -= n
            most = np.minimum(self.problem.most[self.node_type], np.maximum(left, 0))
            priced = _by_table(self.problem, self.node_type, worth, most, unit)
            if priced.value <= above:
                break
            pattern = priced.pattern
            found.append(pattern)
        return found

    @property
    def is_wide(self) -> bool:
        """Return whether a table of the capacity is so dear that coarse patterns are tried first."""
        return self.by_table and int(self.problem.capacities[self.node_type, 0]) > _WIDE

    def _build(self) -> None:
        from ortools.sat.python import cp_model

        problem, t = self.problem, self.node_type
        self.model = model = cp_model.CpModel()
        self.variables = {
            int(c): model.new_int_var(0, int(problem.most[t, c]), "") for c in np.flatnonzero(problem.most[t])
        }
        add_node_rules(model, problem, t, self.variables)

    def _by_solver(self, worth: Ints, seconds: float) -> Priced:
        from ortools.sat.python import cp_model

        if self.model is None:
            self._build()
        if not self.variables:
            return Priced((), 0, 0)
        self.model.maximize(sum(int(worth[c]) * v for c, v in self.variables.items()))
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.random_seed = self.seed
        solver.parameters.max_time_in_seconds = max(seconds, 0.05)
        status = solver.solve(self.model)
        upper = math.floor(solver.best_objective_bound + 1e-6) if status != cp_model.UNKNOWN else _most(self, worth)
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return Priced((), 0, upper)
        pattern = tuple((c, n) for c, v in sorted(self.variables.items()) if (n := solver.value(v)))
        value = sum(int(worth[c]) * n for c, n in pattern)
        return Priced(pattern, value, max(upper, value))


def _most(knapsack: Knapsack, worth: Ints) -> int:
    return int((np.maximum(worth, 0) * knapsack.problem.most[knapsack.node_type]).sum())


def add_node_rules(model: Any, problem: Problem, node_type: int, variables: dict[int, Any]) -> None:
    """Add to a CP-SAT model what one node of the type may hold; `variables` are instances per choice."""
    kind = problem.types[node_type]
    for r, capacity in enumerate(kind.capacity):
        terms = [int(problem.sizes[c, r]) * v for c, v in variables.items() if problem.sizes[c, r]]
        if terms:
            model.add(sum(terms) <= capacity)
    for groups in problem.applications.values():
        held = [v for c, v in variables.items() if problem.group_of[c] in groups]
        _limit_application(model, problem, groups, variables, held)
    for g, group in enumerate(problem.groups):
        ways = [v for c, v in variables.items() if problem.group_of[c] == g]
        if len(ways) > 1:
            model.add(sum(ways) <= group.count)
    _forbid_conflicts(model, problem, variables)
    if problem.has_shares:
        _fit_devices(model, problem, node_type, variables)


def _limit_application(
    model: Any, problem: Problem, groups: tuple[int, ...], variables: dict[int, Any], held: list[Any]
) -> None:
    limits = {g: problem.groups[g].max_per_node for g in groups}
    known = {m for m in limits.values() if m is not None}
    if not held or not known or len(held) == 1:
        return
    if len(known) == 1 and None not in limits.values():
        model.add(sum(held) <= known.pop())
        return
    for c, v in variables.items():
        limit = limits.get(int(problem.group_of[c]))
        if limit is not None:
            is_here = model.new_bool_var("")
            model.add(v == 0).only_enforce_if(is_here.negated())
            model.add(sum(held) <= limit).only_enforce_if(is_here)


def _forbid_conflicts(model: Any, problem: Problem, variables: dict[int, Any]) -> None:
    present: dict[str, Any] = {}
    for name in {a for pair in problem.conflicts for a in pair}:
        held = [v for c, v in variables.items() if problem.groups[problem.group_of[c]].owner == name]
        if held:
            present[name] = model.new_bool_var("")
            model.add(sum(held) == 0).only_enforce_if(present[name].negated())
    for pair in problem.conflicts:
        if all(a in present for a in pair):
            model.add_bool_or([present[a].negated() for a in pair])


def _fit_devices(model: Any, problem: Problem, node_type: int, variables: dict[int, Any]) -> None:
    """Instances take single devices: of each at most one share, and no device is taken more than whole."""
    devices = range(problem.types[node_type].gpus)
    loads: list[list[Any]] = [[] for _ in devices]
    for c, v in variables.items():
        group = problem.groups[problem.group_of[c]]
        if not group.gpus:
            continue
        most = int(problem.most[node_type, c])
        parts = [model.new_int_var(0, most * (WHOLE_GPU_MILLI // group.gpu_milli), "") for _ in devices]
        model.add(sum(parts) == group.gpus * v)
        for d in devices:
            loads[d].append(group.gpu_milli * parts[d])
            if group.gpus > 1:
                model.add(parts[d] <= v)
    for d in devices:
        if loads[d]:
            model.add(sum(loads[d]) <= WHOLE_GPU_MILLI)


def _units(most: Ints) -> list[tuple[int, int]]:
    """Return (choice, multiple) of binary-split copies, so that every number of copies up to the most can be made."""
    units = []
    for c in np.flatnonzero(most):
        left, step = int(most[c]), 1
        while left > 0:
            take = min(step, left)
            units.append((int(c), take))
            left -= take
            step *= 2
    return units


def _by_table(problem: Problem, node_type: int, worth: Ints, most: Ints, unit: int = 1) -> Priced:
    """Return the optimum of the bounded knapsack by dynamic programming over the capacity in so large units.

    Sizes are rounded up, so that what is found always fits; it is the optimum for a unit of 1.
    """
    capacity = int(problem.capacities[node_type, 0]) // unit
    units = [(c, k) for c, k in _units(most) if worth[c] > 0]
    single = -(-problem.sizes[:, 0] // unit)
    sizes = np.array([int(single[c]) * k for c, k in units], np.int64)
    values = np.array([int(worth[c]) * k for c, k in units], np.int64)
    best, taken = fill_table(sizes, values, capacity)
    held: dict[int, int] = {}
    at = capacity
    for i in range(len(units) - 1, -1, -1):
        if taken[i, at]:
            c, k = units[i]
            held[c] = held.get(c, 0) + k
            at -= int(single[c]) * k
    value = int(best[capacity])
    return Priced(tuple(sorted(held.items())), value, value)


@njit("Tuple((int64[::1], boolean[:,::1]))(int64[::1], int64[::1], int64)", cache=True)
def fill_table(sizes: Ints, values: Ints, capacity: int) -> tuple[Ints, NDArray[np.bool_]]:
    """Return the most value within each capacity, and [item, capacity] whether the item was taken when its turn came."""
    best, fresh = np.zeros(capacity + 1, np.int64), np.zeros(capacity + 1, np.int64)
    taken = np.zeros((sizes.size, capacity + 1), np.bool_)
    for i in range(sizes.size):
        size, value = sizes[i], values[i]
        if size > capacity:
            continue
        # Two arrays instead of one from the end, so that the loop is vectorised.
        fresh[:size] = best[:size]
        below, here, made, flags = best[: capacity + 1 - size], best[size:], fresh[size:], taken[i, size:]
        for at in range(below.size):
            with_it = below[at] + value
            flags[at] = with_it > here[at]
            made[at] = max(with_it, here[at])
        best, fresh = fresh, best
    return best, taken
