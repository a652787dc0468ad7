"""Which tasks fit where: first fit, the largest first, as the autoscalers simulate it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gputwin.autoscaling.pools.columns import Axes, Ints, Wants, wants_of
from gputwin.autoscaling.pools.first_fit import fill, pack
from gputwin.autoscaling.pools.interface import Node, NodeType, Rooms, Task

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


def place(tasks: Sequence[Task], rooms: Rooms, axes: Axes, *, partly: bool = False) -> tuple[list[Task], list[Task]]:
    """Return the tasks that fit into `rooms` and those that do not; rooms are filled in place.

    First fit: each instance goes to the first room that has what it needs. A gang takes room only if all its instances
    fit; `partly`: it takes what there is, and is left with the instances it still lacks room for.
    """
    wants = wants_of(tasks, axes)
    lacking = _lacking(wants, rooms, partly)
    placed = [task for task, lacks in zip(tasks, lacking.tolist(), strict=True) if not lacks]
    return placed, list(wants.lacking(lacking).tasks)


def place_wants(wants: Wants, rooms: Rooms, *, partly: bool = False) -> Wants:
    """Return the tasks that do not fit into `rooms`, as `place` does."""
    return wants.lacking(_lacking(wants, rooms, partly))


def _lacking(wants: Wants, rooms: Rooms, partly: bool) -> Ints:
    return fill(wants.needs, wants.instances, wants.able, rooms.types, rooms.free, partly)


@dataclass(frozen=True, slots=True)
class Packing:
    """New nodes of one type, what they carry, and what is left over."""

    nodes: int
    placed: tuple[Task, ...]
    left: tuple[Task, ...]
    wasted: float
    """Mean share of the new nodes' capacity that stays free."""


def pack_new(wants: Wants, kind: NodeType, most: int) -> Packing:
    """Return how many new nodes of one type the tasks need (first fit, the largest first), at most `most`."""
    k = wants.axes.row[kind.name]
    capacity = wants.axes.capacities[k]
    order = wants.largest_first(capacity)
    placed, free = pack(order, wants.needs, wants.instances, np.ascontiguousarray(wants.able[:, k]), capacity, most)
    has = capacity > 0
    wasted = float((free[:, has] / capacity[has]).mean()) if free.shape[0] and has.any() else 0.0
    taken = tuple(wants.tasks[i] for i in order.tolist() if placed[i])
    return Packing(free.shape[0], taken, tuple(wants.tasks[i] for i in order.tolist() if not placed[i]), wasted)
