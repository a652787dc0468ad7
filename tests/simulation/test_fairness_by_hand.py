"""Schedules with fairness between tenants, worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gputwin.core.errors import UserError
from gputwin.simulation.rules import Changes, Scheduler, check_rules
from gputwin.simulation.run import run
from gputwin.simulation.tenants import Fairness, Terms
from tests.oracles.cases import Case, outcomes_of
from tests.oracles.reference import Job, Node, Outcome
from tests.simulation.by_hand import gpus, job, starts

FOUR_GPUS = (Node(4),)


def of(tenant: int, job: Job) -> Job:
    return replace(job, tenant=tenant)


def played(
    jobs: list[Job],
    fairness: Fairness,
    *,
    order: str = "fifo",
    backfill: str = "greedy",
    nodes: tuple[Node, ...] = FOUR_GPUS,
) -> list[Outcome]:
    case = Case(nodes, tuple(jobs))
    workload, cluster, typical = case.engine_input
    return outcomes_of(
        run(workload, cluster, Scheduler(order, backfill, fairness=fairness), typical=typical), case.asks
    )


@pytest.mark.parametrize("backfill", ["strict", "greedy"])
def test_quota_holds_a_tenant_back_though_there_is_room(backfill: str) -> None:
    """Tenant 0 may hold two of four GPUs: its third job waits for its quota until 10, tenant 1's starts at once."""
    jobs = [of(0, job(0, 10, gpus(1))) for _ in range(3)] + [of(1, job(0, 10, gpus(1)))]
    done = played(jobs, Fairness("quota", {"share": 0.5}), backfill=backfill)
    assert starts(done) == [0, 0, 10, 0]
    assert dict(+done[2].waited) == {"quota_or_fairness": 10.0}


def test_quota_of_one_tenant_alone() -> None:
    """Only tenant 1 has terms: one GPU at a time."""
    jobs = [of(0, job(0, 10, gpus(2))), of(1, job(0, 10, gpus(1))), of(1, job(0, 10, gpus(1)))]
    done = played(jobs, Fairness("quota", {}, {"tenant-1": Terms(gpus=1)}))
    assert starts(done) == [0, 0, 10]


def test_a_job_above_its_tenants_quota_never_fits() -> None:
    done = played([of(0, job(0, 10, gpus(4))), of(1, job(0, 10, gpus(1)))], Fairness("quota", {"gpus": 2.0}))
    assert [o.fate for o in done] == ["never fits", "finished"]


def test_quota_keeps_the_order_of_jobs_across_tenants() -> None:
    """Shortest first, whoever's: 1 (3 s), 2 (4 s), then 0 (5 s) when tenant 1 ends at 3. Tenant 1's limit holds back 2."""
    jobs = [of(0, job(0, 5, gpus(2))), of(1, job(0, 3, gpus(2))), of(1, job(0, 4, gpus(2)))]
    done = played(jobs, Fairness("quota", {"gpus": 2.0}), order="sjf", nodes=(Node(2),))
    assert starts(done) == [7, 0, 3]
    done = played(jobs, Fairness("quota", {"gpus": 2.0}), order="sjf")
    assert starts(done) == [0, 0, 3]


def test_drf_serves_the_lowest_dominant_share() -> None:
    """The DRF paper's example: 9 CPUs and 18 of memory, A asks for <1, 4>, B for <3, 1>: 3 tasks of A and 2 of B run."""
    node = (Node(0, cpu=9000, memory=18),)
    a, b = gpus(0, cpu=1000, memory=4), gpus(0, cpu=3000, memory=1)
    jobs = [of(1, job(0, 10, b)) for _ in range(5)] + [of(0, job(0, 10, a)) for _ in range(5)]
    done = played(jobs, Fairness("drf"), nodes=node)
    running = [o.start == 0 for o in done]
    assert (sum(running[:5]), sum(running[5:])) == (2, 3)


@pytest.mark.parametrize("backfill", ["strict", "greedy"])
def test_drf_lets_a_late_tenant_catch_up(backfill: str) -> None:
    """Tenant 0 holds all four GPUs until 10. Then tenant 1, which came at 1, gets turn and turn about with tenant 0."""
    jobs = [of(0, job(0, 10, gpus(1))) for _ in range(8)] + [of(1, job(1, 10, gpus(1))) for _ in range(4)]
    done = played(jobs, Fairness("drf"), backfill=backfill)
    assert starts(done) == [0] * 4 + [10, 10, 20, 20] + [10, 10, 20, 20]


def test_easy_reserves_for_whose_turn_it_is_and_others_overtake_in_turn() -> None:
    """Job 0 holds three of four GPUs until 10, then job 1 of tenant 1 has its turn and needs all: it is due at 10.

    Job 2 would delay it. Jobs 3 and 4 end in time, one after the other: tenant 2 holds nothing, so job 4 goes first.
    Without fairness job 3 does, and under greedy skip job 2 takes the GPU at 5 and job 1 waits for it until 25.
    """
    jobs = [of(t, job(0, d, gpus(n))) for t, d, n in [(0, 10, 3), (1, 10, 4), (0, 20, 1), (0, 5, 1), (2, 5, 1)]]
    assert starts(played(jobs, Fairness("drf"), backfill="easy")) == [0, 10, 20, 5, 0]
    assert starts(played(jobs, Fairness("drf"), backfill="greedy")) == [0, 25, 5, 10, 0]


def test_behind_a_reservation_is_a_cause_of_its_own() -> None:
    """Nobody takes the fourth GPU until 10: job 2 could run there, and would delay job 1."""
    jobs = [of(t, job(0, d, gpus(n))) for t, d, n in [(0, 10, 3), (1, 10, 4), (0, 20, 1)]]
    done = played(jobs, Fairness("drf"), backfill="easy")
    assert starts(done) == [0, 10, 20]
    assert dict(+done[2].waited) == {"behind_other_job": 10.0, "gpu_shortage": 10.0}


def test_easy_passes_the_reservation_on_with_the_turn() -> None:
    """Tenant 1 waits for four GPUs, and its own short job overtakes. Tenant 2 comes at 4 and has used nothing: the turn, and
    with it the reservation, are tenant 2's."""
    jobs = [
        of(0, job(0, 10, gpus(3))),
        of(1, job(0, 10, gpus(4))),
        of(1, job(0, 9, gpus(1))),
        of(2, job(4, 10, gpus(4))),
    ]
    assert starts(played(jobs, Fairness("fair-share", {"period": 0.0}), backfill="easy")) == [0, 20, 0, 10]


def test_drf_weights_divide_three_to_one() -> None:
    jobs = [of(0, job(0, 10, gpus(1))) for _ in range(4)] + [of(1, job(0, 10, gpus(1))) for _ in range(4)]
    done = played(jobs, Fairness("drf", {}, {"tenant-1": Terms(weight=3)}))
    assert [sum(o.start == 0 for o in part) for part in (done[:4], done[4:])] == [1, 3]


def test_wfq_counts_what_jobs_ask_for_not_how_many() -> None:
    """One GPU. Tenant 0's jobs take 10 s, tenant 1's 5 s: after 0's first, two of 1's, then 0's, and so on."""
    jobs = [of(0, job(0, 10, gpus(1))) for _ in range(2)] + [of(1, job(0, 5, gpus(1))) for _ in range(4)]
    done = played(jobs, Fairness("wfq"), nodes=(Node(1),))
    # Tags: 0 starts (0 → 10), 1 (0 → 5), 1 (5 → 10), then a tie at 10 goes to the job submitted first, of tenant 0.
    assert starts(done) == [0, 20, 10, 15, 30, 35]


def test_wfq_gives_no_credit_for_idle_time() -> None:
    """Tenant 1 comes at 20 and gets turn and turn about from then on, not all that tenant 0 had before.

    Virtual time is then 10, the tag of the job served last; tenant 0 is at 20. So tenant 1 goes first, and ties follow.
    """
    jobs = [of(0, job(0, 10, gpus(1))) for _ in range(6)] + [of(1, job(20, 10, gpus(1))) for _ in range(3)]
    done = played(sorted(jobs, key=lambda j: j.submit), Fairness("wfq"), nodes=(Node(1),))
    assert starts(done) == [0, 10, 30, 50, 70, 80, 20, 40, 60]


def test_fair_share_remembers_usage_and_forgets_it() -> None:
    """One GPU. Tenant 0 used it for 10 s; then both submit: tenant 1 goes first, unless that was many half-lives ago."""
    jobs = [of(0, job(0, 10, gpus(1))), of(0, job(5, 4, gpus(1))), of(1, job(6, 4, gpus(1)))]
    assert starts(played(jobs, Fairness("fair-share", {"period": 0.0}), nodes=(Node(1),))) == [0, 14, 10]
    # Usage of 10 GPU-seconds an hour ago is nothing against 1 s just now.
    jobs = [
        of(0, job(0, 10, gpus(1))),
        of(1, job(3600, 1, gpus(1))),
        of(1, job(3600, 9, gpus(1))),
        of(0, job(3600, 9, gpus(1))),
    ]
    done = played(jobs, Fairness("fair-share", {"half_life": 60.0, "period": 0.0}), nodes=(Node(1),))
    assert starts(done) == [0, 3600, 3610, 3601]
    done = played(jobs, Fairness("fair-share", {"half_life": 0.0, "period": 0.0}), nodes=(Node(1),))
    assert starts(done) == [0, 3600, 3601, 3610]


def test_fair_share_is_worked_out_once_a_period() -> None:
    """One GPU, period 20 s. At 10 nobody counts as having used it; at 20 tenant 0 does, so tenant 1 goes on."""
    jobs = [
        of(0, job(0, 10, gpus(1))),
        of(0, job(1, 10, gpus(1))),
        of(0, job(2, 5, gpus(1))),
        of(1, job(3, 5, gpus(1))),
    ]
    fairness = Fairness("fair-share", {"half_life": 0.0, "period": 20.0})
    assert starts(played(jobs, fairness, nodes=(Node(1),))) == [0, 10, 25, 20]


def test_within_a_tenant_the_chosen_order_decides() -> None:
    jobs = [of(0, job(0, 9, gpus(4))), of(0, job(1, 8, gpus(4))), of(0, job(1, 2, gpus(4))), of(1, job(1, 5, gpus(4)))]
    done = played(jobs, Fairness("fair-share", {"period": 0.0}), order="sjf")
    assert starts(done) == [0, 16, 14, 9]


@pytest.mark.parametrize(
    ("scheduler", "changes", "said"),
    [
        (Scheduler(fairness=Fairness("equal")), Changes(), "equal"),
        (Scheduler(fairness=Fairness("drf", {"speed": 1.0})), Changes(), "no parameter 'speed'"),
        (Scheduler(fairness=Fairness("quota", {"share": -1.0})), Changes(), "give 0 or more"),
        (Scheduler(backfill="conservative", fairness=Fairness("drf")), Changes(), "use strict, greedy or easy"),
        (Scheduler(backfill="easy", fairness=Fairness("quota", {"reclaim": 1.0})), Changes(), "'greedy' only"),
        (
            Scheduler(order="srtf", backfill="greedy", fairness=Fairness("drf")),
            Changes(),
            "does not go with preemption",
        ),
        (
            Scheduler(order="priority", order_parameters={"max_wait": 5.0}, fairness=Fairness("drf")),
            Changes(),
            "max_wait",
        ),
    ],
)
def test_what_does_not_go_together_is_said_in_one_line(scheduler: Scheduler, changes: Changes, said: str) -> None:
    with pytest.raises(UserError, match=r"^[^\n]+$") as error:
        check_rules(scheduler, changes)
    assert said in str(error.value)


def test_terms_for_somebody_unknown_are_refused() -> None:
    with pytest.raises(UserError, match=r"fairness\.tenants\.nobody"):
        played([job(0, 1, gpus(1))], Fairness("drf", {}, {"nobody": Terms(weight=2)}))
