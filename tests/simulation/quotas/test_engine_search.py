"""The engine's search for victims is that of the plain functions: on random trees, quotas, policies and workloads."""

from __future__ import annotations

import random

import pytest

from gputwin.simulation.quotas.classical import classical_victims
from gputwin.simulation.quotas.fair import FINAL_SHARE, INITIAL_SHARE, fair_victims
from gputwin.simulation.quotas.tree import FlavorResource, PreemptionPolicy, Quota, QuotaNode, QuotaTree, build_tree
from gputwin.simulation.quotas.workloads import Workload
from tests.simulation.quotas.compiled import found_by_engine

GPU, SPOT, CPU = (FlavorResource(*name.split("/")) for name in ("own/gpu", "spot/gpu", "own/cpu"))
CASES = 400
"""Of each kind of search."""


def random_tree(dice: random.Random) -> QuotaTree:
    cohorts = [
        QuotaNode(f"cohort-{c}", dice.choice([None, *[f"cohort-{p}" for p in range(c)]]) if c else None,
                  _quotas(dice, 0.3), dice.choice([0.0, 1.0, 1.0, 2.0]), False)
        for c in range(dice.randint(1, 3))
    ]  # fmt: skip
    queues = [
        QuotaNode(f"queue-{q}", dice.choice([*[c.name for c in cohorts], cohorts[0].name]), _quotas(dice, 1.0),
                  dice.choice([0.0, 1.0, 1.0, 2.0]), True, _policy(dice))
        for q in range(dice.randint(2, 5))
    ]  # fmt: skip
    return build_tree([*cohorts, *queues], extra=[GPU, SPOT, CPU])


def _quotas(dice: random.Random, likely: float) -> dict[FlavorResource, Quota]:
    limit = [float("inf"), float("inf"), 0.0, 1.0, 3.0]
    return {
        fr: Quota(float(dice.randint(0, 4)), dice.choice(limit), dice.choice(limit))
        for fr in (GPU, SPOT, CPU)
        if dice.random() < likely
    }


def _policy(dice: random.Random) -> PreemptionPolicy:
    within = dice.choice(["Never", "LowerPriority", "LowerOrNewerEqualPriority"])
    reclaim = dice.choice(["Never", "LowerPriority", "Any", "Any"])
    return PreemptionPolicy(within, reclaim, dice.random() < 0.4, dice.choice([None, 0, 1]))


def random_contention(dice: random.Random) -> tuple[QuotaTree, list[Workload], Workload]:
    tree = random_tree(dice)
    names = [node.name for node in tree.nodes if node.is_queue]

    def workload(k: int) -> Workload:
        held = {fr: float(dice.randint(1, 3)) for fr in dice.sample([GPU, SPOT, CPU], dice.randint(1, 2))}
        times = float(dice.randint(0, 3)), float(dice.randint(0, 3))
        return Workload(f"w{k:02d}", dice.choice(names), held, dice.randint(0, 2), *times, dice.random() < 0.1)

    return tree, [workload(k) for k in range(dice.randint(1, 9))], workload(99)


@pytest.mark.parametrize("strategies", [(), (FINAL_SHARE, INITIAL_SHARE), (FINAL_SHARE,), (INITIAL_SHARE,)])
def test_engine_and_plain_functions_take_the_same_victims_in_the_same_order(strategies: tuple[str, ...]) -> None:
    preempting = 0
    for seed in range(CASES):
        tree, admitted, incoming = random_contention(random.Random(seed))
        if strategies:
            plain = fair_victims(tree, admitted, incoming, strategies)
            engine = found_by_engine(tree, admitted, incoming, fair=True, strategies=strategies)
        else:
            plain = classical_victims(tree, admitted, incoming)
            engine = found_by_engine(tree, admitted, incoming, fair=False)
        assert engine == plain, f"random_contention({seed})"
        preempting += bool(plain)
    assert preempting > CASES // 20
