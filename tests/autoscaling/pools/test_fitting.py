"""Fitting of tasks into rooms and onto new nodes is first fit, instance by instance, as a plain search does it."""

from __future__ import annotations

import random

import pytest

from gputwin.autoscaling.pools.fitting import accepts, fits, largest_first, pack_new, place, take
from gputwin.autoscaling.pools.interface import NodeType, Task


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
    other = [(name, dict(room)) for name, room in rooms]
    assert place(tasks, rooms) == plain_place(tasks, other)
    assert [{k: v for k, v in r.items() if v} for _, r in rooms] == [
        {k: v for k, v in r.items() if v} for _, r in other
    ]


@pytest.mark.parametrize("seed", range(300))
def test_packs_new_nodes_as_a_plain_search_does(seed):
    dice = random.Random(seed)
    tasks, kind = some_tasks(dice), NodeType("a", 1.0, {"cpu": dice.randint(0, 6), "gpu": dice.randint(0, 4)})
    most = dice.randint(0, 6)
    packed = pack_new(tasks, kind, most)
    assert (packed.nodes, list(packed.placed)) == plain_pack(tasks, kind, most)
