"""A placement that stands while instances come and go: who is on which node and devices, and what is free there."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np

from gputwin.core.units import WHOLE_GPU_MILLI
from gputwin.optimization.placement.heuristics import Floats
from gputwin.optimization.placement.problem import Ints, Problem

_FIRST_ROWS = 64


@dataclass(frozen=True)
class Home:
    """Where one instance is: its group, its node and the node's devices it holds."""

    group: int
    row: int
    devices: tuple[int, ...]


@dataclass(frozen=True)
class Rule:
    """An online rule: the score of nodes (the highest is taken, ties by the first), and which devices are taken there."""

    name: str
    score: Callable[[Standing, Ints, int], Floats]
    devices: Callable[[Standing, int, int], tuple[int, ...]]


class Standing:
    """Nodes in use and the homes of instances; groups ask for one vector of amounts each.

    Scores are kept per kind of request and recomputed only for nodes that changed. Where groups of one application have
    different per-node limits, the smallest holds for all of them.
    """

    def __init__(self, problem: Problem, rule: Rule, prices: Floats) -> None:
        self.problem, self.rule, self.prices = problem, rule, prices
        wide = max((t.gpus for t in problem.types), default=0)
        self.count = 0
        self.kinds = np.zeros(_FIRST_ROWS, np.int64)
        self.free = np.zeros((_FIRST_ROWS, len(problem.resources)), np.int64)
        self.devices = np.zeros((_FIRST_ROWS, wide), np.int64)
        self.changed = np.zeros(_FIRST_ROWS, np.int64)
        self.on: list[set[int]] = []
        self.homes: dict[int, Home] = {}
        self.used = np.zeros(len(problem.types), np.int64)
        self.taken = np.zeros(len(problem.resources), np.int64)
        self.closed: list[list[int]] = [[] for _ in problem.types]
        self.clock = 0
        self.is_target = np.zeros(_FIRST_ROWS, np.bool_)
        self.barred: set[int] = set()
        self.bulk = (problem.sizes / np.maximum(problem.capacities.max(axis=0), 1)).max(axis=1).tolist()
        self.limits = _limits(problem)
        self.owned = {owner: np.zeros(_FIRST_ROWS, np.int64) for owner in self.limits}
        self.shapes = _shapes(problem, self.limits)
        self.scores: dict[int, Floats] = {}
        self.scored: dict[int, Ints] = {}

    @property
    def nodes(self) -> int:
        """Return the number of nodes in use."""
        return int(self.used.sum())

    def rows(self) -> list[int]:
        """Return the nodes in use."""
        return [row for row, ids in enumerate(self.on) if ids]

    def arrive(self, instance: int, group: int) -> bool:
        """Return whether the instance found a node: one in use, or else a fresh one."""
        row = self.best(group)
        if row is None:
            row = self._fresh(group)
        if row is None:
            return False
        self.put(instance, group, row)
        return True

    def best(self, group: int, *, but: int = -1) -> int | None:
        """Return the node in use with the highest score that has room for an instance of the group; not node `but`."""
        shape = int(self.shapes[group])
        if shape not in self.scores:
            self.scores[shape] = np.full(len(self.kinds), -np.inf)
            self.scored[shape] = np.full(len(self.kinds), -1, np.int64)
        scores, scored = self.scores[shape], self.scored[shape]
        stale = np.flatnonzero(scored[: self.count] < self.changed[: self.count])
        if stale.size:
            scores[stale] = -np.inf
            able = stale[self._can_hold(stale, group)]
            if able.size:
                scores[able] = self.rule.score(self, able, group)
            scored[stale] = self.clock
        if not self.count:
            return None
        kept = scores[but] if but >= 0 else 0.0
        if but >= 0:
            scores[but] = -np.inf
        row = int(np.argmax(scores[: self.count]))
        found = row if scores[row] > -np.inf else None
        if but >= 0:
            scores[but] = kept
        return found

    def bar(self, rows: list[int]) -> None:
        """Let nobody go to these nodes any more, nor to those barred before; without a node: bar none."""
        turned = rows or self.barred
        self.barred = self.barred | set(rows) if rows else set()
        for row in turned:
            self._touch(row)

    def _can_hold(self, rows: Ints, group: int) -> np.ndarray:
        problem, asked = self.problem, self.problem.groups[group]
        fine = (
            self.is_target[rows]
            & (problem.most[self.kinds[rows], group] > 0)
            & (self.free[rows] >= problem.sizes[group]).all(axis=1)
        )
        if asked.gpus:
            fine &= (self.devices[rows] >= asked.gpu_milli).sum(axis=1) >= asked.gpus
        if asked.owner in self.limits:
            fine &= self.owned[asked.owner][rows] < self.limits[asked.owner]
        return np.asarray(fine)

    def has_devices(self, row: int, group: int) -> bool:
        """Return whether the node's devices have room for an instance of the group."""
        asked = self.problem.groups[group]
        return not asked.gpus or int((self.devices[row] >= asked.gpu_milli).sum()) >= asked.gpus

    def _fresh(self, group: int) -> int | None:
        """Return an empty node of the type that is cheapest for what it holds; None where none is left."""
        able = []
        for t, kind in enumerate(self.problem.types):
            if self.problem.most[t, group] and (kind.supply is None or self.used[t] < kind.supply):
                able.append((float(self.prices[t]), t))
        if not able:
            return None
        return self.open(min(able)[1])

    def open(self, t: int) -> int:
        """Return an empty node of a type, one that was in use before where there is one."""
        if self.closed[t]:
            return self.closed[t].pop()
        row = self.count
        if row == len(self.kinds):
            self._grow()
        self.count += 1
        self.kinds[row] = t
        self.free[row] = self.problem.capacities[t]
        self.devices[row, : self.problem.types[t].gpus] = WHOLE_GPU_MILLI
        self.on.append(set())
        return row

    def _grow(self) -> None:
        self.kinds, self.changed, self.is_target = map(_doubled, (self.kinds, self.changed, self.is_target))
        self.free, self.devices = _doubled(self.free), _doubled(self.devices)
        self.owned = {owner: _doubled(counts) for owner, counts in self.owned.items()}
        for shape in self.scores:
            self.scores[shape] = np.concatenate([self.scores[shape], np.full(len(self.scores[shape]), -np.inf)])
            self.scored[shape] = np.concatenate([self.scored[shape], np.full(len(self.scored[shape]), -1, np.int64)])

    def put(self, instance: int, group: int, row: int, devices: tuple[int, ...] | None = None) -> None:
        """Place the instance on a node that has room, on these devices or those its rule takes."""
        if devices is None:
            devices = self.rule.devices(self, row, group) if self.problem.groups[group].gpus else ()
        home = Home(group, row, devices)
        if not self.on[row]:
            self.used[self.kinds[row]] += 1
            if row in self.closed[self.kinds[row]]:
                self.closed[self.kinds[row]].remove(row)
        self.on[row].add(instance)
        self.homes[instance] = home
        self._change(home, 1)

    def take(self, instance: int) -> Home:
        """Return the home the instance had, after it left."""
        home = self.homes.pop(instance)
        self.on[home.row].remove(instance)
        if not self.on[home.row]:
            self.used[self.kinds[home.row]] -= 1
            self.closed[self.kinds[home.row]].append(home.row)
        self._change(home, -1)
        return home

    def _change(self, home: Home, sign: int) -> None:
        asked = self.problem.groups[home.group]
        self.free[home.row] -= sign * self.problem.sizes[home.group]
        self.taken += sign * self.problem.sizes[home.group]
        for device in home.devices:
            self.devices[home.row, device] -= sign * asked.gpu_milli
        if asked.owner in self.limits:
            self.owned[asked.owner][home.row] += sign
        self._touch(home.row)

    def _touch(self, row: int) -> None:
        """Note that the node is to be scored anew; nodes in use that are not barred are targets."""
        self.clock += 1
        self.changed[row] = self.clock
        self.is_target[row] = bool(self.on[row]) and row not in self.barred

    def copy(self) -> Standing:
        """Return the same placement, to go on apart from this one."""
        shared = {id(x): x for x in (self.problem, self.rule, self.prices, self.shapes, self.limits)}
        return deepcopy(self, shared)


def _doubled(array: Any) -> Any:
    return np.concatenate([array, np.zeros_like(array)])


def _limits(problem: Problem) -> dict[str, int]:
    limits: dict[str, int] = {}
    for group in problem.groups:
        if group.max_per_node is not None:
            limits[group.owner] = min(limits.get(group.owner, group.max_per_node), group.max_per_node)
    return limits


def _shapes(problem: Problem, limits: dict[str, int]) -> Ints:
    """Return the kind of request of each group: groups of one kind fit alike and score alike."""
    known: dict[tuple[object, ...], int] = {}
    shapes = []
    for g, group in enumerate(problem.groups):
        owner = group.owner if group.owner in limits else ""
        key = (*problem.sizes[g].tolist(), group.gpus, group.gpu_milli, group.node_types, owner)
        shapes.append(known.setdefault(key, len(known)))
    return np.array(shapes, np.int64)
