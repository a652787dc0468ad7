"""Every pattern that a packing below a given objective can use, so that an integer program over them is exact.

A packing with objective at most K uses only patterns whose reduced cost is within K minus the bound (Baldacci,
Christofides and Mingozzi, 2008). Only patterns to which nothing can be added are listed: a packing may cover more
instances than there are, and the surplus is taken out.
"""

from __future__ import annotations

import numpy as np

from gputwin.optimization.placement.columns import Proof
from gputwin.optimization.placement.master import Column
from gputwin.optimization.placement.problem import Ints, Pattern, Problem
from gputwin.optimization.placement.rules import fits

_MOST_CELLS = 4_000_000


def columns_within(
    problem: Problem, proof: Proof, objective: int, most: int, steps: int = 60_000
) -> list[Column] | None:
    """Return all columns that a packing of at most this objective can use; None where there are more than `most`."""
    if not proof.worth:
        return None
    found: list[Column] = []
    for t in range(len(problem.types)):
        search = _Search(problem, t, proof.worth[t], proof.least_worth(t, objective), most - len(found), steps)
        patterns = search.run()
        if patterns is None:
            return None
        found += [(t, p) for p in patterns]
    return found


class _Search:
    """Depth first over choices, the largest first; a branch ends where the rest cannot be worth enough."""

    def __init__(self, problem: Problem, node_type: int, worth: Ints, least: int, most: int, steps: int) -> None:
        self.problem, self.node_type, self.most, self.steps = problem, node_type, most, steps
        self.least = least
        relative = problem.sizes / np.maximum(problem.capacities[node_type], 1)
        usable = np.flatnonzero(problem.most[node_type])
        # Where a rack's price makes an instance worth less than nothing, a node may do better without it.
        self.order = usable[np.argsort(-relative[usable].max(axis=1), kind="stable")]
        self.worth = [int(w) for w in worth[self.order]]
        self.sizes = problem.sizes[self.order]
        self.limit = [int(n) for n in problem.most[node_type][self.order]]
        self.plain = not (problem.has_shares or problem.conflicts or problem.rack_limits or _has_shared_limits(problem))
        self.maximal = not problem.rack_limits
        self.table = self._table()
        self.ratios = self._ratios()
        self.found: list[Pattern] = []

    def _table(self) -> Ints | None:
        """Return [choice, capacity]: the most worth of this choice and those after it; one resource only."""
        capacity = int(self.problem.capacities[self.node_type, 0])
        if len(self.problem.resources) != 1 or (len(self.order) + 1) * (capacity + 1) > _MOST_CELLS:
            return None
        table = np.zeros((len(self.order) + 1, capacity + 1), np.int64)
        for j in range(len(self.order) - 1, -1, -1):
            table[j] = table[j + 1]
            size, worth = int(self.sizes[j, 0]), self.worth[j]
            for n in range(1, self.limit[j] + 1):
                if size * n <= capacity:
                    reach = table[j + 1][: capacity + 1 - size * n] + worth * n
                    table[j][size * n :] = np.maximum(table[j][size * n :], reach)
        return table

    def _ratios(self) -> list[list[tuple[int, float]]]:
        """Return per choice: (resource, best worth per unit among this choice and those after it)."""
        best = np.zeros(len(self.problem.resources))
        result: list[list[tuple[int, float]]] = [[]] * (len(self.order) + 1)
        for j in range(len(self.order) - 1, -1, -1):
            worth = max(self.worth[j], 0)
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = np.where(self.sizes[j] > 0, worth / self.sizes[j], np.inf if worth else 0.0)
            best = np.maximum(best, ratio)
            result[j] = [(r, float(v)) for r, v in enumerate(best) if np.isfinite(v)]
        return result

    def run(self) -> list[Pattern] | None:
        """Return all patterns; None where there are too many or it takes too long."""
        free = [int(c) for c in self.problem.capacities[self.node_type]]
        return self.found if self._go(0, free, 0, []) else None

    def _rest(self, at: int, free: list[int]) -> float:
        if self.table is not None:
            return int(self.table[at, free[0]])
        if at == len(self.order):
            return 0
        return min((free[r] * v for r, v in self.ratios[at]), default=np.inf) + 1e-3

    def _go(self, at: int, free: list[int], worth: int, held: list[tuple[int, int]]) -> bool:
        self.steps -= 1
        if self.steps < 0:
            return False
        if worth + self._rest(at, free) < self.least:
            return True
        if at == len(self.order):
            return self._keep(free, held)
        size = self.sizes[at].tolist()
        room = min([self.limit[at], *(f // s for f, s in zip(free, size, strict=True) if s)])
        for n in range(room, -1, -1):
            fresh = [f - s * n for f, s in zip(free, size, strict=True)] if n else free
            if n:
                held.append((at, n))
            is_fine = not n or self.plain or fits(self.problem, self.node_type, self._pattern(held))
            if is_fine and not self._go(at + 1, fresh, worth + self.worth[at] * n, held):
                return False
            if n:
                held.pop()
        return True

    def _pattern(self, held: list[tuple[int, int]]) -> Pattern:
        return tuple(sorted((int(self.order[j]), n) for j, n in held))

    def _keep(self, free: list[int], held: list[tuple[int, int]]) -> bool:
        if not held or (self.maximal and self._can_grow(free, dict(held))):
            return True
        self.found.append(self._pattern(held))
        return len(self.found) <= self.most

    def _can_grow(self, free: list[int], held: dict[int, int]) -> bool:
        for j, size in enumerate(self.sizes):
            n = held.get(j, 0)
            if n < self.limit[j] and all(s <= f for s, f in zip(size.tolist(), free, strict=True)):
                grown = self._pattern(list({**held, j: n + 1}.items()))
                if self.plain or fits(self.problem, self.node_type, grown):
                    return True
        return False


def _has_shared_limits(problem: Problem) -> bool:
    """Return whether a per-node limit counts instances of several choices together."""
    for groups in problem.applications.values():
        several = len(groups) > 1 or any(len(problem.groups[g].requests) > 1 for g in groups)
        if several and any(problem.groups[g].max_per_node is not None for g in groups):
            return True
    # Ways to run share their group's number of instances.
    return len(problem.choices) > len(problem.groups)
