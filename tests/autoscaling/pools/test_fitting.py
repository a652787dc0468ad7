"""Fitting of tasks into rooms and onto new nodes is first fit, instance by instance, as a plain search does it."""

from __future__ import annotations

import random

import pytest

from gputwin.autoscaling.pools.columns import Axes, wants_of
from gputwin.autoscaling.pools.fitting import accepts, fits, largest_first, pack_new, place, take
from gputwin.autoscaling.pools.interface import Node, NodeType, Task


def plain_place(tasks, rooms):
    placed, left = [], []
    for task in tasks:
        before = [dict(room) for _, room in rooms]
        for _ in range(task.instances):
            found = next((room for name, room in rooms if accepts(task, name) and fits(task.needs, room)), None)
            if found is None:
                left.append(task)
                for (_, room), old in zip(rooms, before, strict=True):
                    room.clear()
                    room.update(old)
                break
            take(found, task.needs)
        else:
            placed.append(task)
    return placed, left


def plain_pack(tasks, kind, most):
    rooms, placed = [], []
    for task in largest_first(tasks, kind.capacity):
        tried = [dict(room) for room in rooms]
        for _ in range(task.instances):
            found = next((room for room in tried if fits(task.needs, room)), None)
            if found is None and len(tried) < most:
                found = dict(kind.capacity)
                tried.append(found)
            if found is None or not fits(task.needs, found) or not accepts(task, kind.name):
                break
            take(found, task.needs)
        else:
            rooms, placed = tried, [*placed, task]
    return len(rooms), placed


def some_tasks(dice):
    kinds = [{"cpu": 1}, {"cpu": 2, "gpu": 1}, {"gpu": 2}, {"cpu": 0, "gpu": 3}, {}]
    return [
        Task(f"t{i}", dice.choice(kinds), types=dice.choice([(), (), ("a",)]), instances=dice.choice([1, 1, 2, 5]))
        for i in range(dice.randint(0, 8))
    ]


@pytest.mark.parametrize("seed", range(300))
def test_places_as_a_plain_search_does(seed):
    dice = random.Random(seed)
    tasks = some_tasks(dice)
    rooms = [
        (dice.choice("ab"), {"cpu": dice.randint(0, 6), "gpu": dice.randint(0, 4)}) for _ in range(dice.randint(0, 4))
    ]
    axes = Axes(tuple(NodeType(name, 1.0, {"cpu": 6, "gpu": 4}) for name in "ab"))
    nodes = [
        Node(f"n{i}", name, (Task("jobs", {"cpu": 6 - room["cpu"], "gpu": 4 - room["gpu"]}),))
        for i, (name, room) in enumerate(rooms)
    ]
    columns = axes.rooms_on(nodes)
    assert place(tasks, columns, axes) == plain_place(tasks, rooms)
    assert columns.free.tolist() == [[room["cpu"], room["gpu"]] for _, room in rooms]


@pytest.mark.parametrize("seed", range(300))
def test_packs_new_nodes_as_a_plain_search_does(seed):
    dice = random.Random(seed)
    tasks, kind = some_tasks(dice), NodeType("a", 1.0, {"cpu": dice.randint(0, 6), "gpu": dice.randint(0, 4)})
    most = dice.randint(0, 6)
    packed = pack_new(wants_of(tasks, Axes((kind,))), kind, most)
    assert (packed.nodes, list(packed.placed)) == plain_pack(tasks, kind, most)
