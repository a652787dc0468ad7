"""Schedules by lottery, finish-time fairness and hierarchical DRF, worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gputwin.core.errors import UserError
from gputwin.core.rng import stream
from gputwin.simulation.fairness.ideal import ideal_ends
from gputwin.simulation.rules import Changes, Scheduler, check_rules
from gputwin.simulation.tenants import Fairness, Terms
from tests.oracles.reference import Job, Node
from tests.oracles.reference_turns import Lottery
from tests.simulation.by_hand import gpus, job, starts
from tests.simulation.test_fairness_by_hand import FOUR_GPUS, of, played

ONE_GPU = (Node(1),)


def jobs_of(tenants: list[int], seconds: float = 1.0) -> list[Job]:
    """Return jobs of one GPU submitted at 0, one for each tenant named."""
    return [of(t, job(0, seconds, gpus(1))) for t in tenants]


def test_lottery_serves_in_the_order_of_exponential_times() -> None:
    """Tenant t's k-th turn comes at the sum of k exponential times of mean 1/tickets: merge the two sequences."""
    tickets, dice = (1.0, 3.0), Lottery([[1.0] * 4, [3.0] * 4])
    times = [np.cumsum([-math.log(1.0 - dice.uniform(t)) / tickets[t] for _ in range(3)]) for t in range(2)]
    # Tenant 1 first: after its third job nobody of it waits, and tenant 0 goes on alone.
    order = sorted([(float(time), t) for t in range(2) for time in times[t]])
    expected: dict[int, list[float]] = {0: [], 1: []}
    for second, (_, t) in enumerate(order):
        expected[t].append(float(second))
    done = played(jobs_of([0, 0, 0, 1, 1, 1]), Fairness("lottery", {}, {"tenant-1": Terms(3.0)}), nodes=ONE_GPU)
    assert starts(done) == expected[0] + expected[1]


def test_lottery_draws_follow_from_the_seed_alone() -> None:
    first, again, other = Lottery([[1.0] * 4] * 2), Lottery([[1.0] * 4] * 2), Lottery([[1.0] * 4] * 2, seed=1)
    assert [first.uniform(0) for _ in range(3)] == [again.uniform(0) for _ in range(3)] != [other.uniform(0)] * 3
    assert len(set(stream(0, "lottery").integers(1, 1 << 63, 3, np.uint64).tolist())) == 3


def test_tickets_count_for_the_resource_that_the_next_job_asks_most_of() -> None:
    """Tenant 1 has a million tickets for CPUs and one for GPUs; its job of CPUs goes first, that of GPUs hardly ever."""
    node = (Node(1, cpu=1000),)
    terms = {"tenant-1": Terms(1.0, weights={"cpu": 1e6}), "tenant-0": Terms(1000.0)}
    for asked, first in ((gpus(0, cpu=1000), 1), (gpus(1, cpu=1000), 0)):
        jobs = [of(0, job(0, 1, gpus(1, cpu=1000))), of(1, job(0, 1, asked))]
        # Alike in CPUs and GPUs counts as CPUs; so the GPU job asks for fewer CPUs.
        if first == 0:
            jobs = [of(0, job(0, 1, gpus(1, cpu=999))), of(1, job(0, 1, gpus(1, cpu=999)))]
        done = played(jobs, Fairness("lottery", {}, terms), nodes=node)
        assert starts(done)[first] == 0.0


def test_ideal_ends_are_those_on_a_part_of_its_own() -> None:
    """Half of four GPUs each. Tenant 0: two jobs of one GPU and 10 s run at once; a fluid of both ends at 5 and 10."""
    submit, predicted = np.array([0.0, 0.0, 1.0, 50.0]), np.full(4, 10.0)
    work, tenant, share = predicted / 4, np.array([0, 0, 0, 1]), np.array([0.5, 0.5])
    # 5 s of its part each: ends 5, 10, 15, but none before its 10 s are over; tenant 1's comes late and is alone.
    assert ideal_ends(submit, predicted, work, tenant, share).tolist() == [10.0, 10.0, 15.0, 60.0]


@pytest.mark.parametrize("backfill", ["strict", "greedy"])
def test_themis_serves_who_is_worst_off(backfill: str) -> None:
    """One GPU for two tenants. Tenant 0 has jobs of 10 s at 0, tenant 1 one of 2 s at 1; alone on half of it, 20 and 4 s.

    At 10: tenant 0's second job would have ended at 40 alone, ρ = (10 + 10)/40; tenant 1's at 5, ρ = (9 + 2)/4.
    """
    jobs = [of(0, job(0, 10, gpus(1))), of(0, job(0, 10, gpus(1))), of(1, job(1, 2, gpus(1)))]
    done = played(jobs, Fairness("themis", {"period": 0.0}), nodes=ONE_GPU, backfill=backfill)
    assert starts(done) == [0, 12, 10]


def test_themis_counts_what_a_tenant_brought_upon_itself() -> None:
    """Tenant 0's fourth job has waited 30 s behind its own; tenant 1's has waited 5 s, and goes first.

    At 30: tenant 0's fourth alone ends at 80, ρ = (30 + 10)/80 = 0.5; tenant 1's, at 45, ρ = (5 + 10)/20 = 0.75.
    """
    jobs = [of(0, job(0, 10, gpus(1))) for _ in range(4)] + [of(1, job(25, 10, gpus(1)))]
    assert starts(played(jobs, Fairness("themis", {"period": 0.0}), nodes=ONE_GPU)) == [0, 10, 20, 40, 30]


def test_themis_weights_are_parts_of_the_cluster() -> None:
    """With weight 9 tenant 1 has nine tenths to itself: its ideal is 10/0.9 s, and its ρ is the higher one."""
    jobs = [*jobs_of([0, 1], 10.0)]
    assert starts(played(jobs, Fairness("themis", {"period": 0.0}), nodes=ONE_GPU)) == [0, 10]
    weighted = Fairness("themis", {"period": 0.0}, {"tenant-1": Terms(9.0)})
    assert starts(played(jobs, weighted, nodes=ONE_GPU)) == [10, 0]


@pytest.mark.parametrize("backfill", ["strict", "greedy"])
def test_hdrf_divides_between_groups_first(backfill: str) -> None:
    """Four GPUs. Tenants 0 and 1 are one group, tenant 2 stands alone: it gets two, the group two; drf gives 2, 1, 1."""
    jobs = [of(t, job(0, 10, gpus(1))) for t in (0, 1, 2) for _ in range(4)]
    grouped = Fairness("hdrf", {}, {"tenant-0": Terms(group="g"), "tenant-1": Terms(group="g")})
    for fairness, expected in ((grouped, [1, 1, 2]), (Fairness("hdrf"), [2, 1, 1]), (Fairness("drf"), [2, 1, 1])):
        running = np.array(starts(played(jobs, fairness, backfill=backfill))) == 0
        assert running.reshape(3, 4).sum(axis=1).tolist() == expected


def test_hdrf_weighs_groups() -> None:
    """The group with weight 3 gets three of four GPUs, and its tenants divide them 2 to 1."""
    jobs = [of(t, job(0, 10, gpus(1))) for t in (0, 1, 2) for _ in range(4)]
    terms = {"tenant-0": Terms(2.0, group="g"), "tenant-1": Terms(group="g")}
    done = played(jobs, Fairness("hdrf", {}, terms, {"g": 3.0}))
    assert (np.array(starts(done)) == 0).reshape(3, 4).sum(axis=1).tolist() == [2, 1, 1]


def test_hdrf_starves_nobody_whose_sibling_holds_another_resource() -> None:
    """Tenant 0 holds all memory; its sibling 1 and the lone tenant 2 want CPUs, ten jobs each: five of each start.

    Plain recursion gives the sibling none (`test_published.py`): its group's share of memory is 1 all along.
    """
    node = (Node(0, cpu=10_000, memory=10),)
    holds = of(0, job(0, 100, gpus(0, memory=10)))
    wanted = [of(t, job(1, 10, gpus(0, cpu=1000))) for _ in range(10) for t in (1, 2)]
    terms = {"tenant-0": Terms(group="g"), "tenant-1": Terms(group="g")}
    done = played([holds, *wanted], Fairness("hdrf", {}, terms), nodes=node)
    at_once = np.array(starts(done))[1:].reshape(10, 2) == 1
    assert at_once.sum(axis=0).tolist() == [5, 5]


def test_without_groups_hdrf_is_drf() -> None:
    jobs = [of(t, job(0, 5 + t, gpus(1 + t % 2))) for t in (0, 1, 2, 0, 1, 2, 0, 1, 2)]
    assert starts(played(jobs, Fairness("hdrf"))) == starts(played(jobs, Fairness("drf")))


@pytest.mark.parametrize(
    ("fairness", "said"),
    [
        (Fairness("drf", {}, {"tenant-0": Terms(group="g")}), "knows no groups"),
        (Fairness("", {}, {"tenant-0": Terms(2.0)}), "choose a rule of fairness"),
        (Fairness("themis", {"period": -1.0}), "give 0 or more"),
        (Fairness("lottery", {"tickets": 2.0}), "no parameter 'tickets'"),
    ],
)
def test_terms_that_nothing_asks_for_are_refused_in_one_line(fairness: Fairness, said: str) -> None:
    with pytest.raises(UserError, match=r"^[^\n]+$") as error:
        check_rules(Scheduler(fairness=fairness), Changes())
    assert said in str(error.value)


def test_a_group_nobody_is_in_is_refused() -> None:
    with pytest.raises(UserError, match=r"fairness\.groups\.h"):
        played(jobs_of([0]), Fairness("hdrf", {}, {"everyone": Terms(group="g")}, {"h": 2.0}), nodes=FOUR_GPUS)
