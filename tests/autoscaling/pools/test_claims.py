"""New nodes of any type: the compiled search buys what a plain search, instance by instance, buys."""

from __future__ import annotations

import random

import numpy as np
import pytest

from gputwin.autoscaling.pools.fitting import accepts, fits, largest_first, total_capacity
from gputwin.autoscaling.pools.interface import NodeType, PoolObservation, Task
from gputwin.autoscaling.pools.karpenter import Karpenter


def plain_claims(pool: Karpenter, tasks: list[Task]) -> tuple[list[tuple[str, list[str]]], list[str]]:
    claims: list[tuple[list[NodeType], dict[str, int], list[str]]] = []
    unplaced = []
    for task in largest_first(tasks, total_capacity(pool.types)):
        able = [
            kind
            for kind in pool.types
            if kind.name not in pool.unavailable and accepts(task, kind.name) and fits(task.needs, kind.capacity)
        ]
        if not able:
            unplaced.append(task.name)
            continue
        for _ in range(task.instances):
            for i, (kinds, needs, carried) in enumerate(claims):
                more = {name: needs.get(name, 0) + task.needs.get(name, 0) for name in {*needs, *task.needs}}
                still = [kind for kind in kinds if kind in able and fits(more, kind.capacity)]
                if still:
                    claims[i] = (still, more, [*carried, task.name])
                    break
            else:
                claims.append((able, dict(task.needs), [task.name]))
    bought = [(min(kinds, key=lambda k: (k.price_per_hour, k.name)).name, names) for kinds, _, names in claims]
    return bought, unplaced


@pytest.mark.parametrize("seed", range(100))
def test_buys_the_nodes_that_a_plain_search_buys(seed: int) -> None:
    dice = random.Random(seed)
    types = tuple(
        NodeType(f"k{i}", dice.choice([1.0, 2.0, 2.0, 5.0]), {"cpu": dice.randint(1, 9), "gpu": dice.randint(0, 4)})
        for i in range(dice.randint(1, 4))
    )
    needs = [{"cpu": 1}, {"cpu": 2, "gpu": 1}, {"gpu": 3}, {"disk": 1}, {}]
    tasks = [
        Task(f"t{i}", dice.choice(needs), types=dice.choice([(), (), ("k0",)]), instances=dice.choice([1, 1, 2, 7]))
        for i in range(dice.randint(0, 9))
    ]
    pool = Karpenter(types, unavailable=dice.choice([(), ("k1",)]))
    bought, unplaced = plain_claims(pool, tasks)
    launches, refused = pool.provision(PoolObservation(0.0, (), tuple(tasks)), np.zeros(0, np.int64), 0)
    assert [launch.type for launch in launches] == [name for name, _ in bought]
    assert set(refused) == set(unplaced)
