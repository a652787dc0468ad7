"""Gangs of several roles: one that fits is placed, whatever the placement; exhaustive search says which fit."""

from __future__ import annotations

import random
from itertools import combinations

import pytest

from tests.oracles.cases import Case
from tests.oracles.reference import PLACEMENTS, WHOLE, Ask, Job, Machine, Node, hardest_first

ASKS = (
    *[Ask(cpu=cpu, memory=memory) for cpu in (1, 2, 3, 5, 8) for memory in (0, 4)],
    *[Ask(gpus, WHOLE, cpu=cpu) for gpus in (1, 2, 3) for cpu in (0, 2, 4)],
    *[Ask(1, milli, cpu=cpu, gpu_memory=gb) for milli in (250, 300, 500, 600) for cpu in (0, 1) for gb in (0, 6)],
    Ask(2, 500, cpu=1),
    Ask(2, 300),
    Ask(1, WHOLE, models=frozenset({"A"})),
    Ask(1, 500, models=frozenset({"B"}), cpu=1),
    Ask(1, WHOLE, cpu=1, limit=1, application="x"),
    Ask(cpu=2, limit=1, application="x"),
    Ask(cpu=1, limit=2, application="y"),
    Ask(cpu=1, rdma=50),
)
EPISODES = 50


def fits(machines: list[Machine], asked: list[Ask], tried: set[object]) -> bool:
    """Return whether all instances find a node and devices, in some way: all are tried."""
    if not asked:
        return True
    state = tuple(
        (*m.free.values(), *m.share, *m.gpu_memory, *(m.applications[a] for a in ("x", "y"))) for m in machines
    )
    if (len(asked), state) in tried:
        return False
    tried.add((len(asked), state))
    ask, *others = asked
    for machine in machines:
        if machine.holds(ask):
            for devices in combinations(machine.fitting(ask), ask.gpus):
                machine.take(ask, devices)
                found = fits(machines, others, tried)
                machine.take(ask, devices, -1)
                if found:
                    return True
    return False


def episodes(dice: random.Random) -> Case:
    """Return a tiny cluster on which, again and again, single instances come first, then a gang, and all leave."""
    nodes = tuple(
        Node(
            dice.randint(0, 3),
            dice.choice(["A", "B"]),
            dice.choice([4, 6, 8, 10]),
            dice.choice([8, 16, None]),
            None,
            dice.choice([50, 100, None]),
            dice.choice([8, 16]),
        )
        for _ in range(dice.randint(2, 4))
    )
    jobs = []
    for episode in range(EPISODES):
        for _ in range(dice.randint(0, 4)):
            jobs.append(Job(100.0 * episode, 50.0, ((dice.choice(ASKS), 1),), 50.0))
        roles = [(ask, dice.choice([1, 1, 2, 3])) for ask in dice.sample(ASKS, dice.choice([2, 3]))]
        jobs.append(Job(100.0 * episode + 1.0, 10.0, tuple(roles), 10.0))
    return Case(nodes, tuple(jobs))


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_a_gang_that_fits_is_never_refused(placement: str) -> None:
    """At least 500 gangs that fit beside what else runs, for each of ten placements."""
    placed = refused = number = 0
    while placed < 500:
        case = episodes(random.Random(f"{placement} {number}"))
        outcomes = case.by_engine("fifo", "loss", placement)
        machines = [Machine(node) for node in case.nodes]
        for job, outcome in zip(case.jobs, outcomes, strict=True):
            started = outcome.fate == "finished"
            if job.submit % 100.0 == 1.0:
                asked = [ask for ask, size in job.groups for _ in range(size)]
                assert started == fits(machines, asked, set()), (placement, number, job)
                placed += started
                refused += not started
                # All leave before the next come.
                machines = [Machine(node) for node in case.nodes]
            elif started:
                for spot in outcome.spots:
                    machines[spot.node].take(spot.ask, spot.devices)
        number += 1
    assert refused > 100


@pytest.mark.parametrize("backfill", ["strict", "greedy", "easy", "conservative", "loss"])
@pytest.mark.parametrize("placement", PLACEMENTS)
def test_the_role_that_fits_on_one_node_only_gets_it(backfill: str, placement: str) -> None:
    """Nodes of 8 and 4 cores; a parameter server of 3 cores and a worker of 8."""
    roles = ((Ask(cpu=3000), 1), (Ask(cpu=8000), 1))
    case = Case((Node(0, cpu=8000), Node(0, cpu=4000)), (Job(0.0, 5.0, roles, 5.0),))
    outcome = case.by_engine("fifo", backfill, placement)[0]
    assert (outcome.fate, outcome.start) == ("finished", 0.0)
    assert [(spot.ask.cpu, spot.node) for spot in outcome.spots] == [(8000, 0), (3000, 1)]


def test_roles_that_would_take_each_others_place_go_back() -> None:
    """Free are 0.6 and 0.5 of two GPUs. Each 0.3 would go to the fullest GPU that fits, and 0.25 would fit once only."""
    leaves = Job(0.0, 0.5, ((Ask(1, 500), 1),), 0.5)
    fillers = (Job(0.0, 50.0, ((Ask(1, 500), 1),), 50.0), leaves, Job(0.0, 50.0, ((Ask(1, 400), 1),), 50.0))
    gang = Job(1.0, 5.0, ((Ask(1, 300, cpu=1), 1), (Ask(1, 300), 1), (Ask(1, 250), 2)), 5.0)
    outcomes = Case((Node(2),), (*fillers, gang)).by_engine("fifo", "greedy", "best-fit")
    assert [outcome.spots[0].devices for outcome in outcomes[:3]] == [(0,), (0,), (1,)]
    assert [spot.devices for spot in outcomes[3].spots] == [(1,), (1,), (0,), (0,)]


def test_a_waiting_gang_starts_as_soon_as_it_fits() -> None:
    """Under greedy skip and EASY nothing but a release can make room, so nobody fits long before being tried."""
    for seed in range(150):
        case = episodes(random.Random(f"waits {seed}"))
        jobs = tuple(Job(0.0 if j.submit % 100.0 == 0.0 else 1.0, 5.0, j.groups, 5.0) for j in case.jobs[:12])
        crowded = Case(case.nodes, tuple(sorted(jobs, key=lambda j: j.submit)))
        for backfill in ("greedy", "easy"):
            engine, plain = crowded.by_engine("fifo", backfill), crowded.by_reference("fifo", backfill, "first-fit")
            assert [str(o.start) for o in engine] == [str(float(o.start)) for o in plain], (seed, backfill)


def test_the_order_of_roles_is_the_documented_one() -> None:
    nodes = (Node(8, "A", 96000, 512), Node(4, "B", 64000, 256), Node(0, None, 16000, 64))
    scarce, large, small = Ask(1, WHOLE, models=frozenset({"A"})), Ask(2, cpu=8000), Ask(1, cpu=8000)
    anywhere, more = Ask(cpu=1000), Ask(cpu=2000)
    given = ((anywhere, 1), (small, 1), (more, 1), (large, 1), (scarce, 1))
    assert [ask for ask, _ in hardest_first(given, nodes)] == [scarce, large, small, more, anywhere]
    spots = Case(nodes, (Job(0.0, 1.0, given, 1.0),)).by_engine("fifo", "strict", "first-fit")[0].spots
    assert [spot.ask for spot in spots] == [scarce, large, small, more, anywhere]
