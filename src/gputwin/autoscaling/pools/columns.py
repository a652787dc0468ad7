"""Tasks and rooms of a pool as columns of whole numbers, for the compiled searches of `first_fit`."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gputwin.autoscaling.pools.interface import Node, NodeColumns, NodeType, PoolObservation, Rooms, Task

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Axes:
    """The resources (columns) and node types of a pool, in a fixed order."""

    kinds: tuple[NodeType, ...]

    @functools.cached_property
    def names(self) -> tuple[str, ...]:
        """Return the resources that any type has, by name."""
        return tuple(sorted({name for kind in self.kinds for name in kind.capacity}))

    @functools.cached_property
    def types(self) -> tuple[str, ...]:
        """Return the names of the types."""
        return tuple(kind.name for kind in self.kinds)

    @functools.cached_property
    def row(self) -> dict[str, int]:
        """Return the place of each type."""
        return {name: k for k, name in enumerate(self.types)}

    @functools.cached_property
    def capacities(self) -> Ints:
        """Return a row of capacities per type."""
        return _table([kind.capacity for kind in self.kinds], self.names)

    def rooms_on(self, nodes: Sequence[Node]) -> Rooms:
        """Return what is free on each node: its capacity less what its tasks need."""
        types = np.array([self.row[node.type] for node in nodes], np.int64)
        free = self.capacities[types].reshape(len(nodes), len(self.names))
        for row, node in zip(free, nodes, strict=True):
            for task in node.tasks:
                row -= np.array([task.needs.get(name, 0) for name in self.names], np.int64) * task.instances
        return Rooms(self.names, self.types, types, free)

    def rooms_of(self, observation: PoolObservation, rows: Ints) -> Rooms:
        """Return what is free on some of an observation's nodes, given by their places; to be filled."""
        known = observation.rooms
        if known is None or known.names != self.names or known.type_names != self.types:
            return self.rooms_on([observation.nodes[i] for i in rows.tolist()])
        return known.of(rows)

    def known(self, columns: NodeColumns) -> Ints:
        """Return the places of the nodes whose type is one of these."""
        is_known = np.array([name in self.row for name in columns.type_names], np.bool_)
        return np.flatnonzero(is_known[columns.types])


def columns_of(observation: PoolObservation) -> NodeColumns:
    """Return an observation's nodes as columns."""
    if observation.columns is not None:
        return observation.columns
    nodes = observation.nodes
    type_names, types = _coded([node.type for node in nodes])
    group_names, groups = _coded([node.group for node in nodes])
    return NodeColumns(
        type_names,
        types,
        group_names,
        groups,
        np.array([node.is_ready for node in nodes], np.bool_),
        np.array([node.is_leaving for node in nodes], np.bool_),
        np.array([node.is_pinned for node in nodes], np.bool_),
    )


def _coded(names: Sequence[str]) -> tuple[tuple[str, ...], Ints]:
    place = {name: k for k, name in enumerate(dict.fromkeys(names))}
    return tuple(place), np.array([place[name] for name in names], np.int64)


@dataclass(frozen=True)
class Wants:
    """Tasks as columns: needs by resource, instances that start together, and which types each accepts."""

    axes: Axes
    tasks: tuple[Task, ...]
    needs: Ints
    instances: Ints
    able: Bools

    @functools.cached_property
    def _rank(self) -> Ints:
        return np.unique([task.name for task in self.tasks], return_inverse=True)[1].astype(np.int64)

    def lacking(self, instances: Ints) -> Wants:
        """Return the tasks of which so many instances are left, without those of which none is."""
        rows = np.flatnonzero(instances)
        left = [
            self.tasks[i] if n == self.tasks[i].instances else replace(self.tasks[i], instances=n)
            for i, n in zip(rows.tolist(), instances[rows].tolist(), strict=True)
        ]
        return Wants(self.axes, tuple(left), self.needs[rows], instances[rows], self.able[rows])

    def largest_first(self, against: Ints) -> Ints:
        """Return the tasks' places by falling dominant share of `against`; ties by name."""
        shares = (self.needs / np.maximum(against, 1)).max(axis=1, initial=0.0)
        return np.lexsort((self._rank, -shares)) if len(self.tasks) else np.zeros(0, np.int64)


def wants_of(tasks: Sequence[Task], axes: Axes) -> Wants:
    """Return the tasks as columns. What needs a resource that no type has is accepted by none."""
    able = np.ones((len(tasks), len(axes.types)), np.bool_)
    known = frozenset(axes.names)
    for i, task in enumerate(tasks):
        if task.types:
            able[i] = [name in task.types for name in axes.types]
        if any(amount > 0 and name not in known for name, amount in task.needs.items()):
            able[i] = False
    needs = _table([task.needs for task in tasks], axes.names)
    return Wants(axes, tuple(tasks), needs, np.array([task.instances for task in tasks], np.int64), able)


def _table(rows: Sequence[object], names: Sequence[str]) -> Ints:
    found = [[row.get(name, 0) for name in names] for row in rows]  # type: ignore[attr-defined]
    return np.array(found, np.int64).reshape(len(rows), len(names))
