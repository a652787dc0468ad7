"""Packings in one pass: first, best and dot-product fit of the largest first, and node by node.

Sizes are compared as a share of the mean node's capacity, weighted by how scarce each resource is (Panigrahy et al.,
"Heuristics for Vector Bin Packing", 2011, sections 3 and 4).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from time import process_time

import numpy as np
from numpy.typing import NDArray

from gputwin.optimization.placement.problem import Ints, Packing, Pattern, Problem, packing_of
from gputwin.optimization.placement.rules import fits

Floats = NDArray[np.float64]


def weights_of(problem: Problem) -> Floats:
    """Return per resource: demand over the capacity of the node types, so that scarce ones count most."""
    share = _relative(problem)
    first = [i for i, (_, k) in enumerate(problem.choices) if k == 0]
    demand = (share[first] * problem.counts[problem.group_of[first]][:, None]).sum(axis=0)
    total = demand.sum()
    return demand / total if total > 0 else np.ones(len(problem.resources))


def _relative(problem: Problem) -> Floats:
    """Return choices × resources: sizes as a share of the mean node that has the resource."""
    there = problem.capacities > 0
    mean = problem.capacities.sum(axis=0) / np.maximum(there.sum(axis=0), 1)
    return np.asarray(problem.sizes / np.maximum(mean, 1.0))


@dataclass
class Nodes:
    """Nodes being filled: what is free on each and what each holds."""

    problem: Problem
    types: list[int] = field(default_factory=list)
    held: list[dict[int, int]] = field(default_factory=list)
    free: Ints = field(default_factory=lambda: np.zeros((0, 0), np.int64))
    opened: Counter[int] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.free = np.zeros((16, len(self.problem.resources)), np.int64)
        self.in_rack: Counter[tuple[str, str]] = Counter()

    def __len__(self) -> int:
        return len(self.types)

    def open(self, node_type: int) -> int | None:
        """Return the row of a fresh node of the type; None where there is none left."""
        supply = self.problem.types[node_type].supply
        if supply is not None and self.opened[node_type] >= supply:
            return None
        row = len(self.types)
        if row == len(self.free):
            self.free = np.vstack([self.free, np.zeros_like(self.free)])
        self.free[row] = self.problem.capacities[node_type]
        self.types.append(node_type)
        self.held.append({})
        self.opened[node_type] += 1
        return row

    def can_hold(self, row: int, choice: int) -> bool:
        """Return whether one more instance may go there, all rules counted."""
        problem, t = self.problem, self.types[row]
        if not problem.most[t, choice] or (self.free[row] < problem.sizes[choice]).any():
            return False
        if not self.has_rack_room(t, choice):
            return False
        if not self._has_rules(choice) and not problem.has_shares:
            return True
        held = dict(self.held[row])
        held[choice] = held.get(choice, 0) + 1
        return fits(problem, t, tuple(sorted(held.items())))

    def has_rack_room(self, node_type: int, choice: int) -> bool:
        """Return whether the rack of the type may hold one more instance of the application."""
        rack = self.problem.types[node_type].rack
        if rack is None or not self.problem.rack_limits:
            return True
        owner = self.problem.groups[self.problem.group_of[choice]].owner
        return self.in_rack[owner, rack] < self.problem.rack_limits[owner, rack]

    def _has_rules(self, choice: int) -> bool:
        group = self.problem.groups[self.problem.group_of[choice]]
        if self.problem.conflicts:
            return True
        return any(self.problem.groups[g].max_per_node is not None for g in self.problem.applications[group.owner])

    def put(self, row: int, choice: int) -> None:
        """Place one instance."""
        self._change(row, choice, 1)

    def take(self, row: int, choice: int) -> None:
        """Remove one instance."""
        self._change(row, choice, -1)

    def _change(self, row: int, choice: int, n: int) -> None:
        self.free[row] -= self.problem.sizes[choice] * n
        held = self.held[row]
        held[choice] = held.get(choice, 0) + n
        if not held[choice]:
            del held[choice]
        rack = self.problem.types[self.types[row]].rack
        if rack is not None:
            self.in_rack[self.problem.groups[self.problem.group_of[choice]].owner, rack] += n

    def patterns(self) -> list[tuple[int, Pattern]]:
        """Return (type, pattern) of each node."""
        return [(t, tuple(sorted(held.items()))) for t, held in zip(self.types, self.held, strict=True)]

    def packing(self) -> Packing:
        """Return the packing so far."""
        return packing_of(self.problem, self.patterns())


Score = Callable[[Floats, Floats], Floats]
"""(free shares of nodes, size of the instance) -> scores; the highest is taken, ties by the first."""


def _first(free: Floats, size: Floats) -> Floats:
    return -np.arange(len(free), dtype=float)


def _best(free: Floats, size: Floats) -> Floats:
    return np.asarray(-(free - size).sum(axis=1))


def _dot(free: Floats, size: Floats) -> Floats:
    return np.asarray((free * size).sum(axis=1) / np.maximum((free * free).sum(axis=1), 1e-12))


SCORES: dict[str, Score] = {"first-fit": _first, "best-fit": _best, "dot-product": _dot}
_STEADY = ("first-fit", "best-fit")
"""Rules under which a node that got an instance is the first choice of the next one that asks for the same."""


def decreasing(problem: Problem, rule: str = "best-fit", *, deadline: float = math.inf) -> Packing:
    """Return the packing that puts the largest instances first, each where the rule's score is highest.

    At `deadline` (process CPU seconds) it stops, and what is left is missing.
    """
    return fill(problem, Nodes(problem), problem.counts, rule, deadline=deadline).packing()


def fill(problem: Problem, nodes: Nodes, counts: Ints, rule: str = "best-fit", *, deadline: float = math.inf) -> Nodes:
    """Return the nodes after as many of these instances as fit were placed, new nodes opened where needed."""
    weights, relative = weights_of(problem), _relative(problem)
    mean = np.maximum(problem.capacities.max(axis=0), 1).astype(float)
    largest = [
        max((float(relative[c] @ weights) for c in _choices(problem, g)), default=0.0) for g in range(len(counts))
    ]
    for g in sorted(range(len(counts)), key=lambda g: (-largest[g], g)):
        left, first = int(counts[g]), 0
        while left > 0:
            if process_time() > deadline:
                return nodes
            left -= _into_open(problem, nodes, g, left, rule, first, weights, mean)
            if left:
                # Who found no room on the nodes that were open will find none there: only fresh nodes are looked at.
                first = len(nodes)
                if not _into_new(problem, nodes, g, weights):
                    break
                left -= 1
    return nodes


def _choices(problem: Problem, group: int) -> list[int]:
    return np.flatnonzero(problem.group_of == group).tolist()


def _into_open(
    problem: Problem, nodes: Nodes, group: int, count: int, rule: str, first: int, weights: Floats, mean: Floats
) -> int:
    """Return how many of `count` instances went to open nodes from row `first` on.

    Under first and best fit the node that got one stays the first choice until it is full, so one order serves all.
    """
    placed = 0
    for choice in _choices(problem, group):
        size = problem.sizes[choice]
        able = first + np.flatnonzero((nodes.free[first : len(nodes)] >= size).all(axis=1))
        while placed < count and able.size:
            values = SCORES[rule](nodes.free[able] / mean * weights, size / mean * weights)
            refused = []
            for row in able[np.argsort(-values, kind="stable")].tolist():
                before = placed
                while placed < count and nodes.can_hold(row, choice):
                    nodes.put(row, choice)
                    placed += 1
                    if rule not in _STEADY:
                        break
                if placed == count or (placed > before and rule not in _STEADY):
                    break
                refused.append(row)
            able = np.setdiff1d(able, refused, assume_unique=True)
    return placed


def _into_new(problem: Problem, nodes: Nodes, group: int, weights: Floats) -> bool:
    """Return whether the instance went to a fresh node: of the type that is cheapest for what it could hold."""
    best: tuple[float, int, int] | None = None
    prices = node_prices(problem, weights)
    for choice in _choices(problem, group):
        for t, kind in enumerate(problem.types):
            supply = kind.supply
            has_supply = supply is None or nodes.opened[t] < supply
            if problem.most[t, choice] and has_supply and nodes.has_rack_room(t, choice):
                best_so_far = (float(prices[t]), t, choice)
                best = best_so_far if best is None else min(best, best_so_far)
    if best is None:
        return False
    _, t, choice = best
    row = nodes.open(t)
    if row is None or not nodes.can_hold(row, choice):
        return False
    nodes.put(row, choice)
    return True


def node_prices(problem: Problem, weights: Floats) -> Floats:
    """Return each type's cost per weighted capacity."""
    largest = np.maximum(problem.capacities.max(axis=0), 1).astype(float)
    costs = np.array([t.cost for t in problem.types], float)
    return np.asarray(costs / np.maximum(problem.capacities / largest @ weights, 1e-9))
