"""Quotas with guarantees in the engine: who borrows gives back, in schedules worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gputwin.core.errors import UserError
from gputwin.simulation.interruptions import Checkpoints
from gputwin.simulation.rules import Changes, Scheduler, check_rules
from gputwin.simulation.run import Run, run
from gputwin.simulation.tenants import Fairness, Terms
from tests.oracles.cases import Case
from tests.oracles.reference import Job, Node
from tests.simulation.by_hand import gpus, job
from tests.simulation.test_change_by_hand import lived

FOUR_GPUS = (Node(4),)
COSTS = Checkpoints(save_seconds=1.0, restart_seconds=2.0)


def of(tenant: int, *jobs: Job) -> list[Job]:
    return [replace(j, tenant=tenant) for j in jobs]


def played(
    jobs: list[Job],
    terms: dict[int, Terms] | None = None,
    nodes: tuple[Node, ...] = FOUR_GPUS,
    checkpoints: Checkpoints = COSTS,
    order: str = "fifo",
    **parameters: float,
) -> Run:
    case = Case(nodes, tuple(sorted(jobs, key=lambda j: j.submit)))
    workload, cluster, typical = case.engine_input
    fairness = Fairness(
        "quota", {"reclaim": 1.0, **parameters}, {f"tenant-{t}": given for t, given in (terms or {}).items()}
    )
    scheduler = Scheduler(order, "greedy", fairness=fairness)
    return run(workload, cluster, scheduler, typical=typical, changes=Changes(checkpoints=checkpoints))


def ends(done: Run) -> list[float]:
    return np.asarray(done.world.queue.jobs["end"]).tolist()


def test_a_tenant_below_its_guarantee_takes_back_what_others_borrow() -> None:
    """Four GPUs, two for each. Tenant 0 borrows two; at 4 tenant 1 takes them back, from the jobs listed last.

    They have 6 s left and pay 1 s for the save and 2 s for the restart when GPUs are free again at 9.
    """
    jobs = of(0, *[job(0, 10, gpus(1))] * 4) + of(1, *[job(4, 5, gpus(1))] * 2)
    done = played(jobs)
    assert ends(done) == [10, 10, 18, 18, 9, 9]
    assert lived(done)[:2] == [(3, 0, 4, "preempted"), (2, 0, 4, "preempted")]
    lives = done.world.lives.records
    assert lives["overheads"].tolist() == [0, 0, 3, 3, 0, 0]
    assert lives["lost"].tolist() == [0] * 6


def test_the_job_that_took_the_place_is_on_record() -> None:
    done = played(of(0, *[job(0, 10, gpus(1))] * 4) + of(1, *[job(4, 5, gpus(1))] * 2))
    assert done.world.lives.segments["by"][:2].tolist() == [4, 5]


def test_a_tenant_at_its_guarantee_takes_nothing_back() -> None:
    """Tenant 1's third job exceeds its guarantee of two: it waits until the two before it have ended at 9."""
    done = played(of(0, *[job(0, 10, gpus(1))] * 4) + of(1, *[job(4, 5, gpus(1))] * 3))
    assert done.world.lives.records["stops"].tolist() == [0, 0, 1, 1, 0, 0, 0]
    # Then its tenant holds nothing, so that it goes before the two that had to yield.
    assert done.world.queue.jobs["start"].tolist() == [0, 0, 9, 10, 4, 4, 9]


def test_who_borrows_most_gives_back_first() -> None:
    """Nine GPUs, three each. Tenant 1 holds 4, tenant 2 holds 5: 2 gives back one, then both hold 4 and 1 does, then 2."""
    jobs = of(1, *[job(0, 10, gpus(1))] * 4) + of(2, *[job(0, 10, gpus(1))] * 5) + of(0, *[job(1, 5, gpus(1))] * 3)
    done = played(jobs, nodes=(Node(8), Node(1)))
    assert [row[0] for row in lived(done)[:3]] == [8, 3, 7]


def test_the_whole_guarantee_of_others_is_safe() -> None:
    """Tenant 1 is guaranteed one GPU and holds it: nobody takes that back, whoever waits."""
    jobs = of(0, job(1, 5, gpus(1)), job(1, 5, gpus(1))) + of(1, job(0, 10, gpus(1)))
    done = played(jobs, {0: Terms(guaranteed=1), 1: Terms(guaranteed=1)}, nodes=(Node(2),))
    assert done.world.lives.records["stops"].sum() == 0


def test_a_gang_takes_back_no_more_than_it_needs() -> None:
    """Two nodes of two. A gang of two whole nodes is guaranteed all; the CPU-only job beside the borrowers stays."""
    jobs = of(1, job(0, 10, gpus(1)), job(0, 10, gpus(0, cpu=1000)), job(0, 10, gpus(2))) + of(
        0, job(2, 5, gpus(2), size=2)
    )
    done = played(jobs, {0: Terms(guaranteed=4), 1: Terms(guaranteed=0)}, nodes=(Node(2), Node(2)))
    assert sorted(row[0] for row in lived(done) if row[3] == "preempted") == [0, 2]
    assert done.world.queue.jobs["start"][3] == 2


def test_nobody_yields_in_vain() -> None:
    """Tenant 1 holds four GPUs on two nodes and is guaranteed three: the one it gives back makes no room for two together.

    Guaranteed two, it gives back both of the second node.
    """
    jobs = of(1, *[job(0, 10, gpus(1))] * 4) + of(0, job(1, 5, gpus(2)))
    nodes = (Node(2), Node(2), Node(1))
    done = played(jobs, {0: Terms(guaranteed=2), 1: Terms(guaranteed=3)}, nodes=nodes)
    assert done.world.lives.records["stops"].sum() == 0
    assert done.world.queue.jobs["start"][4] == 10
    done = played(jobs, {0: Terms(guaranteed=2), 1: Terms(guaranteed=2)}, nodes=nodes)
    assert [row[0] for row in lived(done) if row[3] == "preempted"] == [3, 2]
    assert done.world.queue.jobs["start"][4] == 1


def test_who_is_entitled_goes_before_who_would_borrow() -> None:
    """Two GPUs are free at 5. Tenant 1's job came first and would borrow; tenant 0's is within its guarantee."""
    jobs = of(1, job(0, 20, gpus(2)), job(0, 5, gpus(2)), job(1, 5, gpus(2))) + of(0, job(5, 5, gpus(2)))
    done = played(jobs)
    assert done.world.queue.jobs["start"].tolist() == [0, 0, 10, 5]
    assert done.world.lives.records["stops"].sum() == 0


def test_without_a_save_the_work_is_lost_and_done_again() -> None:
    jobs = of(0, *[job(0, 10, gpus(2))] * 2) + of(1, job(4, 5, gpus(2)))
    done = played(jobs, checkpoints=Checkpoints(on_preemption=False, interval_seconds=3.0, restart_seconds=1.0))
    # Job 1 has 4 s of work at 4, the last checkpoint at 3: 1 s is lost; it goes on at 9 with 7 s to do and 1 s to restart.
    assert ends(done) == [10, 17, 9]
    assert done.world.lives.records["lost"].tolist() == [0, 1, 0]


def test_limits_hold_beside_guarantees() -> None:
    """Each may hold three at most: the fourth job of tenant 0 waits though a GPU is free."""
    done = played(of(0, *[job(0, 10, gpus(1))] * 4) + of(1, job(20, 1, gpus(1))), gpus=3.0)
    assert done.world.queue.jobs["start"].tolist() == [0, 0, 0, 10, 20]


@pytest.mark.parametrize(
    ("backfill", "fairness", "said"),
    [
        ("strict", Fairness("quota", {"reclaim": 1.0}), "backfill 'greedy' only"),
        ("greedy", Fairness("quota", {"reclaim": 2.0}), "give 0 or 1"),
        ("greedy", Fairness("quota", {"reclaim": 1.0, "guaranteed": -1.0}), "give 0 or more"),
    ],
)
def test_what_makes_no_sense_is_said_in_one_line(backfill: str, fairness: Fairness, said: str) -> None:
    with pytest.raises(UserError, match=said):
        check_rules(Scheduler(backfill=backfill, fairness=fairness), Changes())


def test_more_guaranteed_than_there_is_is_refused() -> None:
    with pytest.raises(UserError, match="guaranteed 6 GPUs in all and the cluster has 4"):
        played(of(0, job(0, 1, gpus(1))) + of(1, job(0, 1, gpus(1))), guaranteed=3.0)
