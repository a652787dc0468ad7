"""Which tasks fit where: first fit, the largest first, as the autoscalers simulate it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gputwin.autoscaling.pools.interface import Node, NodeType, Task

Room = dict[str, int]


def fits(needs: Mapping[str, int], room: Mapping[str, int]) -> bool:
    """Return whether `room` has everything that `needs` asks for."""
    return all(amount <= room.get(name, 0) for name, amount in needs.items() if amount > 0)


def accepts(task: Task, type_name: str) -> bool:
    """Return whether the task may run on nodes of this type."""
    return not task.types or type_name in task.types


def take(room: Room, needs: Mapping[str, int]) -> None:
    """Take `needs` off `room`, in place."""
    for name, amount in needs.items():
        room[name] = room.get(name, 0) - amount


def room_on(node: Node, kind: NodeType) -> Room:
    """Return what is free on a node."""
    room = dict(kind.capacity)
    for task in node.tasks:
        for name, amount in task.needs.items():
            room[name] = room.get(name, 0) - amount * task.instances
    return room


def largest_first(tasks: Iterable[Task], against: Mapping[str, int]) -> list[Task]:
    """Return tasks by falling dominant share of `against`; ties by name."""

    def size(task: Task) -> float:
        shares = (amount / max(against.get(name, 0), 1) for name, amount in task.needs.items())
        return max(shares, default=0.0)

    return sorted(tasks, key=lambda task: (-size(task), task.name))


def total_capacity(types: Iterable[NodeType]) -> dict[str, int]:
    """Return the largest capacity of each resource among types."""
    most: dict[str, int] = {}
    for kind in types:
        for name, amount in kind.capacity.items():
            most[name] = max(most.get(name, 0), amount)
    return most


def place(
    tasks: Sequence[Task], rooms: list[tuple[str, Room]], *, partly: bool = False
) -> tuple[list[Task], list[Task]]:
    """Return the tasks that fit into `rooms` (type name, free) and those that do not; rooms are filled in place.

    First fit: each instance goes to the first room that has what it needs. A gang takes room only if all its instances
    fit; `partly`: it takes what there is, and is left with the instances it still lacks room for.
    """
    names = sorted({name for task in tasks for name, amount in task.needs.items() if amount > 0})
    free = np.array([[room.get(name, 0) for name in names] for _, room in rooms], np.int64).reshape(
        len(rooms), len(names)
    )
    types = np.array([name for name, _ in rooms])
    placed: list[Task] = []
    left: list[Task] = []
    refused: dict[tuple[object, ...], int] = {}
    taken: list[tuple[Task, NDArray[np.int64], NDArray[np.int64]]] = []
    for task in tasks:
        key = (tuple(sorted(task.needs.items())), task.types)
        # Room only shrinks: what did not fit once does not fit later.
        if refused.get(key, task.instances + 1) <= task.instances:
            left.append(task)
            continue
        counts = _instances_that_fit(task, names, free)
        if task.types:
            counts *= np.isin(types, task.types)
        upto = np.cumsum(counts)
        most = int(upto[-1]) if upto.size else 0
        if most < task.instances:
            refused[key] = 1 if partly else task.instances
            left.append(replace(task, instances=task.instances - most) if partly and most else task)
            if not partly or not most:
                continue
        else:
            last = int(np.searchsorted(upto, task.instances))
            counts[last] -= upto[last] - task.instances
            counts[last + 1 :] = 0
            placed.append(task)
        rows = np.flatnonzero(counts)
        free[rows] -= counts[rows, None] * _needs(task, names)
        taken.append((task, rows, counts[rows]))
    for task, rows, counts in taken:
        for row, count in zip(rows.tolist(), counts.tolist(), strict=True):
            take(rooms[row][1], {name: amount * count for name, amount in task.needs.items()})
    return placed, left


def _needs(task: Task, names: Sequence[str]) -> NDArray[np.int64]:
    return np.array([task.needs.get(name, 0) for name in names], np.int64)


def _instances_that_fit(task: Task, names: Sequence[str], free: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many instances of the task each row of `free` has room for, at most all of them."""
    needs = _needs(task, names)
    asked = needs > 0
    counts = np.full(free.shape[0], task.instances, np.int64)
    if asked.any():
        counts = np.minimum(counts, (free[:, asked] // needs[asked]).min(axis=1, initial=task.instances))
    return np.maximum(counts, 0)


@dataclass(frozen=True, slots=True)
class Packing:
    """New nodes of one type, what they carry, and what is left over."""

    nodes: int
    placed: tuple[Task, ...]
    left: tuple[Task, ...]
    wasted: float
    """Mean share of the new nodes' capacity that stays free."""


def pack_new(tasks: Sequence[Task], kind: NodeType, most: int) -> Packing:
    """Return how many new nodes of one type the tasks need (first fit, the largest first), at most `most`."""
    names = sorted({*kind.capacity, *(name for task in tasks for name, amount in task.needs.items() if amount > 0)})
    empty = np.array([[kind.capacity.get(name, 0) for name in names]], np.int64)
    free = np.zeros((0, len(names)), np.int64)
    placed, left = [], []
    for task in largest_first(tasks, kind.capacity):
        each = int(_instances_that_fit(task, names, empty)[0]) if accepts(task, kind.name) else 0
        if each == 0:
            left.append(task)
            continue
        counts = _instances_that_fit(task, names, free)
        upto = np.minimum(np.cumsum(counts), task.instances)
        counts = np.diff(upto, prepend=0)
        rest = task.instances - int(counts.sum())
        new = -(-rest // each)
        if free.shape[0] + new > most:
            left.append(task)
            continue
        free = np.concatenate([free, np.repeat(empty, new, axis=0)])
        counts = np.concatenate([counts, np.minimum(each, rest - each * np.arange(new, dtype=np.int64))])
        free -= counts[:, None] * _needs(task, names)
        placed.append(task)
    has = empty[0] > 0
    wasted = float((free[:, has] / empty[0, has]).mean()) if free.shape[0] and has.any() else 0.0
    return Packing(free.shape[0], tuple(placed), tuple(left), wasted)
