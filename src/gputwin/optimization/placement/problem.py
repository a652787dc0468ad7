"""A placement problem as data: groups of identical instances, node types, and what a placement of them is.

Instances of one application that ask for the same are interchangeable, so a placement is a list of *patterns* (what one
node of a type holds) with the number of nodes that hold it. All amounts and costs are integers, so that bounds are exact.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputwin.core.errors import UserError
from gputwin.core.units import WHOLE_GPU_MILLI

Ints = NDArray[np.int64]
Pattern = tuple[tuple[int, int], ...]
"""What one node holds: (choice, instances) pairs in order of choice, where a choice is a row of `Problem.choices`."""


@dataclass(frozen=True)
class InstanceGroup:
    """Identical instances of one application. `requests` has one vector of amounts per way to run (mostly one)."""

    name: str
    requests: tuple[tuple[int, ...], ...]
    count: int
    application: str = ""
    """Whose per-node and per-rack limits it counts towards; its own name where empty."""
    max_per_node: int | None = None
    """Most instances of the application on a node that holds one of these."""
    node_types: frozenset[str] | None = None
    """Names of the node types it may run on; None: all."""
    missing_cost: int | None = None
    """Objective per instance that is not placed; None: all must be placed."""
    gpus: int = 0
    gpu_milli: int = WHOLE_GPU_MILLI
    """Share of each of its GPUs; below 1000 the instances must fit on single devices together."""

    @property
    def owner(self) -> str:
        """Return the application whose limits it counts towards."""
        return self.application or self.name


@dataclass(frozen=True)
class NodeType:
    """Identical nodes that may be used: what one holds and costs, and how many there are (None: any number)."""

    name: str
    capacity: tuple[int, ...]
    cost: int = 1
    supply: int | None = None
    gpus: int = 0
    rack: str | None = None


@dataclass(frozen=True)
class Problem:
    """What to place, on what, and under which rules besides capacity and per-node limits."""

    resources: tuple[str, ...]
    groups: tuple[InstanceGroup, ...]
    types: tuple[NodeType, ...]
    conflicts: frozenset[frozenset[str]] = frozenset()
    """Pairs of applications that must not share a node (anti-affinity)."""
    rack_share: float | None = None
    """Largest share of an application's instances in one rack."""
    unit: str = "nodes"
    """What the objective counts."""

    def __post_init__(self) -> None:
        wide = len(self.resources)
        for group in self.groups:
            if not group.requests or any(len(r) != wide or min(r, default=0) < 0 for r in group.requests):
                raise UserError(
                    f"'{group.name}' must ask for {wide} amounts of zero or more: {', '.join(self.resources)}"
                )
            if group.count < 0:
                raise UserError(f"'{group.name}' has {group.count} instances; give 0 or more")
        for kind in self.types:
            if len(kind.capacity) != wide:
                raise UserError(f"node type '{kind.name}' must have {wide} capacities: {', '.join(self.resources)}")
        if len({t.name for t in self.types}) != len(self.types):
            raise UserError("node types must have different names")

    @cached_property
    def choices(self) -> tuple[tuple[int, int], ...]:
        """Return (group, way to run) of each choice."""
        return tuple((g, k) for g, group in enumerate(self.groups) for k in range(len(group.requests)))

    @cached_property
    def sizes(self) -> Ints:
        """Return choices × resources: what one instance takes."""
        rows = [self.groups[g].requests[k] for g, k in self.choices]
        return np.array(rows, np.int64).reshape(len(rows), len(self.resources))

    @cached_property
    def group_of(self) -> Ints:
        """Return the group of each choice."""
        return np.array([g for g, _ in self.choices], np.int64)

    @cached_property
    def counts(self) -> Ints:
        """Return the number of instances of each group."""
        return np.array([g.count for g in self.groups], np.int64)

    @cached_property
    def capacities(self) -> Ints:
        """Return types × resources: what one node holds."""
        rows = [t.capacity for t in self.types]
        return np.array(rows, np.int64).reshape(len(rows), len(self.resources))

    @cached_property
    def applications(self) -> dict[str, tuple[int, ...]]:
        """Return the groups of each application."""
        found: dict[str, list[int]] = {}
        for i, group in enumerate(self.groups):
            found.setdefault(group.owner, []).append(i)
        return {name: tuple(groups) for name, groups in found.items()}

    @cached_property
    def has_shares(self) -> bool:
        """Return whether shares of a GPU must fit on single devices."""
        return any(g.gpus and g.gpu_milli < WHOLE_GPU_MILLI for g in self.groups)

    @cached_property
    def rack_limits(self) -> dict[tuple[str, str], int]:
        """Return the most instances of each application in each rack, where that is limited."""
        if self.rack_share is None:
            return {}
        racks = sorted({t.rack for t in self.types if t.rack is not None})
        total = {a: int(self.counts[list(groups)].sum()) for a, groups in self.applications.items()}
        return {(a, rack): max(int(n * self.rack_share), 1) for a, n in total.items() for rack in racks}

    @cached_property
    def most(self) -> Ints:
        """Return types × choices: the most instances one empty node holds, 0 where it may not run there."""
        most = np.zeros((len(self.types), len(self.choices)), np.int64)
        for t, kind in enumerate(self.types):
            for c, (g, _) in enumerate(self.choices):
                most[t, c] = self._alone(kind, self.groups[g], self.sizes[c])
        return most

    def _alone(self, kind: NodeType, group: InstanceGroup, size: Ints) -> int:
        if group.node_types is not None and kind.name not in group.node_types:
            return 0
        room = group.count
        if group.max_per_node is not None:
            room = min(room, group.max_per_node)
        for amount, capacity in zip(size.tolist(), kind.capacity, strict=True):
            if amount:
                room = min(room, capacity // amount)
        if group.gpus and self.has_shares:
            per_device = WHOLE_GPU_MILLI // group.gpu_milli
            room = min(room, kind.gpus * per_device // group.gpus) if kind.gpus >= group.gpus else 0
        return room


@dataclass(frozen=True)
class Use:
    """So many nodes of one type that hold the same."""

    node_type: int
    pattern: Pattern
    nodes: int


@dataclass(frozen=True)
class Packing:
    """A placement: nodes by pattern, and how many instances of each group are not placed."""

    uses: tuple[Use, ...]
    missing: tuple[int, ...]

    @property
    def nodes(self) -> int:
        """Return the number of nodes in use."""
        return sum(use.nodes for use in self.uses)

    def nodes_by_type(self, problem: Problem) -> dict[str, int]:
        """Return the nodes in use of each type."""
        used = Counter({t.name: 0 for t in problem.types})
        for use in self.uses:
            used[problem.types[use.node_type].name] += use.nodes
        return dict(used)

    def objective(self, problem: Problem) -> int:
        """Return the cost of nodes and of what is not placed."""
        nodes = sum(problem.types[u.node_type].cost * u.nodes for u in self.uses)
        return nodes + sum((g.missing_cost or 0) * m for g, m in zip(problem.groups, self.missing, strict=True))

    def is_complete(self, problem: Problem) -> bool:
        """Return whether everything that must be placed is."""
        return not any(m for g, m in zip(problem.groups, self.missing, strict=True) if g.missing_cost is None)

    def used(self, problem: Problem) -> Ints:
        """Return types × resources: what the placed instances take in all."""
        taken = np.zeros_like(problem.capacities)
        for use in self.uses:
            for choice, n in use.pattern:
                taken[use.node_type] += problem.sizes[choice] * (n * use.nodes)
        return taken


def packing_of(problem: Problem, nodes: Iterable[tuple[int, Pattern]]) -> Packing:
    """Return the packing of single nodes, each (type, pattern); empty nodes are not in use, surplus is taken out."""
    left = problem.counts.copy()
    kept: Counter[tuple[int, Pattern]] = Counter()
    for t, pattern in nodes:
        held = []
        for choice, n in pattern:
            group = problem.group_of[choice]
            n = min(n, int(left[group]))
            if n:
                left[group] -= n
                held.append((choice, n))
        if held:
            kept[t, tuple(held)] += 1
    uses = tuple(Use(t, pattern, n) for (t, pattern), n in sorted(kept.items()))
    return Packing(uses, tuple(left.tolist()))


@dataclass(frozen=True)
class Attempt:
    """What one method found and how long it took: objective None where it found nothing complete."""

    method: str
    objective: int | None
    bound: int | None
    cpu_seconds: float


@dataclass(frozen=True)
class PlacementResult:
    """The best packing, a bound no packing can be below, and what each method found."""

    problem: Problem
    packing: Packing | None
    bound: int
    attempts: tuple[Attempt, ...] = ()
    infeasible: tuple[str, ...] = ()
    """Why there is no placement, and what would make one possible; empty where there is one."""

    @property
    def objective(self) -> int | None:
        """Return the objective of the packing."""
        return None if self.packing is None else self.packing.objective(self.problem)

    @property
    def is_optimal(self) -> bool:
        """Return whether the packing is proven to be optimal."""
        return self.objective is not None and self.objective <= self.bound

    @property
    def gap(self) -> float | None:
        """Return how far the objective is above the bound, as a share of the bound."""
        if self.objective is None or self.is_optimal:
            return None if self.objective is None else 0.0
        return (self.objective - self.bound) / self.bound if self.bound > 0 else float("inf")

    def to_json(self) -> dict[str, Any]:
        """Return the result as plain data."""
        problem, packing = self.problem, self.packing
        return {
            "unit": problem.unit,
            "instances": int(problem.counts.sum()),
            "groups": len(problem.groups),
            "objective": self.objective,
            "lower_bound": self.bound,
            "gap": self.gap,
            "is_optimal": self.is_optimal,
            "nodes": None if packing is None else packing.nodes,
            "nodes_by_type": {} if packing is None else packing.nodes_by_type(problem),
            "missing": {
                g.name: m for g, m in zip(problem.groups, packing.missing if packing else (), strict=False) if m
            },
            "allocation": {} if packing is None else allocation(problem, packing),
            "attempts": [vars(a) for a in self.attempts],
            "infeasible": list(self.infeasible),
        }


def allocation(problem: Problem, packing: Packing) -> dict[str, dict[str, float]]:
    """Return the share of each resource that is taken on the nodes in use, by type."""
    nodes, used = packing.nodes_by_type(problem), packing.used(problem)
    shares: dict[str, dict[str, float]] = {}
    for t, kind in enumerate(problem.types):
        if nodes[kind.name]:
            whole = problem.capacities[t] * nodes[kind.name]
            shares[kind.name] = {
                r: float(u / w) for r, u, w in zip(problem.resources, used[t], whole, strict=True) if w > 0
            }
    return shares
