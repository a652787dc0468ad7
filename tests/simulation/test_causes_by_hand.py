"""Why jobs wait, worked by hand: every cause can be reached, causes change with the cluster, and they sum to the wait."""

from __future__ import annotations

import pytest

from tests.oracles.cases import Case
from tests.oracles.reference import Ask, Job, Node
from tests.simulation.by_hand import gang, gpus, job

ONE, TWO = gpus(1), gpus(2)
RULES = ["strict", "greedy", "easy"]


def waits(nodes: tuple[Node, ...], *jobs: Job, order: str = "fifo", backfill: str = "strict") -> list[dict[str, float]]:
    """Return what each job waited for, s, once it is sure that the parts sum to the wait."""
    outcomes = Case(nodes, jobs).by_engine(order, backfill)
    for one, outcome in zip(jobs, outcomes, strict=True):
        assert sum(outcome.waited.values()) == outcome.start - one.submit
    return [dict(outcome.waited) for outcome in outcomes]


# --- Each cause, with one job in the way until 10 and one that comes at 2 and waits 8 s. ---


@pytest.mark.parametrize("backfill", RULES)
@pytest.mark.parametrize(
    ("cause", "nodes", "first", "second"),
    [
        ("gpu_shortage", (Node(2),), (ONE, 1), (TWO, 1)),
        ("gpu_shortage", (Node(1),), (gpus(1, 500), 1), (gpus(1, 800), 1)),
        # One GPU is free, but of the other model.
        (
            "gpu_model",
            (Node(1, "A"), Node(1, "B")),
            (gpus(1, models=frozenset("A")), 1),
            (gpus(1, models=frozenset("A")), 1),
        ),
        ("cpu_or_memory", (Node(2, cpu=4000),), (gpus(1, cpu=3000), 1), (gpus(1, cpu=2000), 1)),
        ("cpu_or_memory", (Node(2, memory=64),), (gpus(1, memory=48), 1), (gpus(1, memory=32), 1)),
        ("cpu_or_memory", (Node(2, disk=100),), (gpus(1, disk=60), 1), (gpus(1, disk=60), 1)),
        ("cpu_or_memory", (Node(0, cpu=4000),), (Ask(cpu=3000), 1), (Ask(cpu=2000), 1)),
        # Two GPUs are free, one on each node.
        ("fragmentation", (Node(2), Node(2)), (gpus(1, limit=1, application="x"), 2), (TWO, 1)),
        # 600 milli are free, 300 on each device.
        ("fragmentation", (Node(2),), (gpus(1, 700), 2), (gpus(1, 500), 1)),
        # Four cores are free, two on each node; no GPU is asked for.
        (
            "fragmentation",
            (Node(0, cpu=4000), Node(0, cpu=4000)),
            (Ask(cpu=2000, limit=1, application="x"), 2),
            (Ask(cpu=3000), 1),
        ),
        # GPU memory is short on the device that has the share.
        ("fragmentation", (Node(1, gpu_memory=16),), (gpus(1, 500, gpu_memory=12), 1), (gpus(1, 500, gpu_memory=8), 1)),
        ("max_per_node", (Node(2),), (gpus(1, limit=1, application="x"), 1), (gpus(1, limit=1, application="x"), 1)),
        ("rdma", (Node(2, rdma=100),), (gpus(1, rdma=100), 1), (gpus(1, rdma=50), 1)),
    ],
)
def test_each_cause_can_be_reached(cause, nodes, first, second, backfill):
    assert waits(nodes, gang(0, 10, first), gang(2, 1, second), backfill=backfill) == [{}, {cause: 8}]


def test_strict_others_wait_behind_the_first_and_then_for_the_cluster():
    # Z holds one of two GPUs until 10; A needs both, 1–10; B is behind A from 2 to 10, then A holds both until 15.
    assert waits((Node(2),), job(0, 10, ONE), job(1, 5, TWO), job(2, 3, ONE)) == [
        {},
        {"gpu_shortage": 9},
        {"behind_other_job": 8, "gpu_shortage": 5},
    ]


def test_strict_a_job_that_loses_the_first_place_keeps_what_it_waited_there():
    # A is first in line from 0 to 10, when the shorter B comes and goes first at 20; then A is first until B ends at 25.
    found = waits((Node(1),), job(0, 20, ONE), job(0, 30, ONE), job(10, 5, ONE), order="sjf")
    assert found == [{}, {"gpu_shortage": 15, "behind_other_job": 10}, {"gpu_shortage": 10}]


def test_greedy_nobody_waits_behind_another():
    # B starts at 2 and ends at 5; A waits for GPUs from 1 to 10 all the same.
    found = waits((Node(2),), job(0, 10, ONE), job(1, 5, TWO), job(2, 3, ONE), backfill="greedy")
    assert found == [{}, {"gpu_shortage": 9}, {}]


def test_easy_who_fits_but_would_delay_the_first_waits_behind_it():
    # A is promised 10. C (20 s) finds a GPU free from 4 on but must not take it; A holds both from 10 to 15.
    found = waits((Node(2),), job(0, 10, ONE), job(1, 5, TWO), job(4, 20, ONE), backfill="easy")
    assert found == [{}, {"gpu_shortage": 9}, {"behind_other_job": 6, "gpu_shortage": 5}]


@pytest.mark.parametrize("backfill", RULES)
def test_the_cause_changes_when_others_end(backfill):
    # Only model A will do. Until 4 no GPU is free at all (from 1: 3 s), then B's is, but A's only at 10 (6 s).
    a, b = gpus(1, models=frozenset("A")), gpus(1, models=frozenset("B"))
    found = waits((Node(1, "A"), Node(1, "B")), job(0, 10, a), job(0, 4, b), job(1, 1, a), backfill=backfill)
    assert found[2] == {"gpu_shortage": 3, "gpu_model": 6}


@pytest.mark.parametrize("backfill", ["greedy", "easy"])
def test_the_cause_changes_when_others_start(backfill):
    # One GPU is free on each of two nodes, two on one node are asked for: fragmentation from 1 to 3. Then somebody takes
    # one of them until 9: GPUs are short for 6 s; from 9 to 10 there are two again, still apart: 2 + 1 s.
    spread = gpus(1, limit=1, application="x")
    found = waits((Node(2), Node(2)), job(0, 10, spread, 2), job(1, 1, TWO), job(3, 6, ONE), backfill=backfill)
    assert found[1] == {"fragmentation": 3, "gpu_shortage": 6}


def test_groups_that_fit_only_apart_are_fragmented():
    # One GPU is free from 0: each of the two groups would fit alone. The other is free at 10.
    found = waits((Node(2),), job(0, 10, ONE), gang(2, 1, (ONE, 1), (gpus(1, 800), 1)))
    assert found[1] == {"fragmentation": 8}


def test_a_job_that_never_starts_waits_for_nothing():
    outcomes = Case((Node(1),), (job(0, 5, TWO), job(0, 5, ONE), job(1, 5, ONE))).by_engine("fifo", "loss")
    assert [outcome.fate for outcome in outcomes] == ["never fits", "finished", "lost"]
    assert [dict(outcome.waited) for outcome in outcomes] == [{}, {}, {}]


def test_looking_for_causes_changes_no_schedule():
    # W's small group would leave least on node 0 (10 - 4 cores against 12 - 4), where its large group then had no room,
    # and there is no disk on node 1. The large group fits on fewer nodes, so it goes first, and W starts at once.
    small, large = Ask(cpu=4000), Ask(cpu=8000, disk=80)
    z, x = job(0, 10, Ask(cpu=6000, disk=10)), job(2, 3, Ask(cpu=5000, memory=10))
    nodes = Node(0, cpu=16000, memory=0, disk=100), Node(0, cpu=12000, memory=10, disk=0)
    case = Case(nodes, (z, gang(1, 5, (small, 1), (large, 1)), x))
    for attribute in (True, False):
        run = case.run("fifo", "greedy", "best-fit", attribute=attribute)
        assert run.world.queue.jobs["start"].tolist() == [0, 1, 2]
