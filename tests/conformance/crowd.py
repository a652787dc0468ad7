"""A crowded cluster: a few hundred jobs of many kinds that want more than a dozen unequal nodes can give."""

from __future__ import annotations

import random
from collections.abc import Sequence

from tests.oracles.cases import Case
from tests.oracles.reference import Ask, Job, Node

NODES = (
    *[Node(4, "A", 32000, 256, 400, 200, 16, rack=f"r{i // 2}", domain="d0") for i in range(4)],
    *[Node(8, "B", 96000, 512, 800, 400, 32, rack=f"r{2 + i // 2}", domain="d0") for i in range(3)],
    *[Node(2, "C", 16000, 64, None, None, None, rack="r4", domain="d1") for _ in range(3)],
    *[Node(0, None, 64000, 256) for _ in range(2)],
)
ANYWHERE = (
    Ask(1, 200, cpu=1000, memory=4),
    Ask(1, 500, cpu=4000, memory=16, gpu_memory=8),
    Ask(1, 1000, cpu=6000, memory=30),
    Ask(1, 1000, cpu=2000, memory=8, models=frozenset({"A", "C"})),
    Ask(2, 1000, cpu=8000, memory=32, rdma=50),
    Ask(2, 500, cpu=4000, memory=8, gpu_memory=16),
    Ask(4, 1000, cpu=16000, memory=64, disk=200),
    Ask(8, 1000, cpu=64000, memory=256, rdma=100, models=frozenset({"B"})),
    Ask(1, 1000, cpu=3000, memory=10, limit=1, application="serving"),
    Ask(1, 500, cpu=3000, memory=10, limit=2, application="training"),
    Ask(cpu=20000, memory=60),
    Ask(cpu=4000, memory=120, disk=100, limit=1, application="database"),
)
IMPOSSIBLE = Ask(3, 1000, models=frozenset({"C"}))


def crowd(seed: int, jobs: int, *, exact: bool = False, groups: int = 2, nodes: Sequence[Node] = NODES) -> Case:
    """Return jobs that come faster than they can be served, none at the same time; `exact`: predictions are true."""
    dice = random.Random(seed)
    made, now = [], 0.0
    for _ in range(jobs):
        now += dice.expovariate(1 / 20)
        duration = dice.lognormvariate(5.5, 1.2)
        predicted = duration if exact or dice.random() < 0.3 else duration * dice.choice([0.1, 0.5, 1.5, 4])
        if dice.random() < 0.02:
            asked = ((IMPOSSIBLE, 1),)
        else:
            kinds = dice.sample(ANYWHERE, groups if dice.random() < 0.15 else 1)
            asked = tuple((kind, 1 if kind.gpus == 8 else dice.choice([1, 1, 1, 2, 3])) for kind in kinds)
        made.append(Job(now, duration, asked, predicted, dice.randint(0, 3)))
    return Case(tuple(nodes), tuple(made))
