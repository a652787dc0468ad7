"""Which tasks fit where: first fit, the largest first, as the autoscalers simulate it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

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
        for _ in range(task.instances):
            take(room, task.needs)
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


def place(tasks: Sequence[Task], rooms: list[tuple[str, Room]]) -> tuple[list[Task], list[Task]]:
    """Return the tasks that fit into `rooms` (type name, free) and those that do not; rooms are filled in place.

    A gang takes room only if all its instances fit.
    """
    placed, left = [], []
    for task in tasks:
        tried = [dict(room) for _, room in rooms] if task.instances > 1 else []
        for _ in range(task.instances):
            found = next((room for name, room in rooms if accepts(task, name) and fits(task.needs, room)), None)
            if found is None:
                break
            take(found, task.needs)
        else:
            placed.append(task)
            continue
        left.append(task)
        for (_, room), before in zip(rooms, tried, strict=False):
            room.clear()
            room.update(before)
    return placed, left


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
    rooms: list[tuple[str, Room]] = []
    placed, left = [], []
    for task in largest_first(tasks, kind.capacity):
        if not accepts(task, kind.name) or not fits(task.needs, kind.capacity):
            left.append(task)
            continue
        # Only a gang can take room and then fail.
        before = [(name, dict(room)) for name, room in rooms] if task.instances > 1 else rooms
        for _ in range(task.instances):
            found = next((room for _, room in rooms if fits(task.needs, room)), None)
            if found is None and len(rooms) < most:
                found = dict(kind.capacity)
                rooms.append((kind.name, found))
            if found is None:
                rooms = before
                left.append(task)
                break
            take(found, task.needs)
        else:
            placed.append(task)
    free = [room.get(name, 0) / amount for _, room in rooms for name, amount in kind.capacity.items() if amount > 0]
    return Packing(len(rooms), tuple(placed), tuple(left), sum(free) / len(free) if free else 0.0)
