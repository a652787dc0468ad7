"""Deadline policies on spot nodes: schedules by hand, the optimum against all schedules, and real availability."""

from __future__ import annotations

import itertools
import math
import random

import numpy as np
import pytest

from gputwin.autoscaling.nodes.supply import read_zones
from gputwin.autoscaling.spot.deadline import (
    IDLE,
    ON_DEMAND,
    POLICIES,
    SPOT,
    DeadlineJob,
    follow,
    greedy,
    least_cost,
    uniform_progress,
)
from gputwin.core.errors import UserError


def ticks(text: str) -> np.ndarray:
    return np.array([c == "1" for c in text])


def cheapest_of_all(job: DeadlineJob, available: np.ndarray) -> float:
    """Return the least cost over every sequence of modes."""
    best = math.inf
    for modes in itertools.product((IDLE, SPOT, ON_DEMAND), repeat=job.deadline):
        if any(m == SPOT and not available[t] for t, m in enumerate(modes)):
            continue
        done, before, starting, cost = 0, IDLE, 0, 0.0
        for t, mode in enumerate(modes):
            before = IDLE if before == SPOT and not available[t] else before
            starting = job.changeover if mode != before else starting
            cost += job.price(mode)
            if mode != IDLE:
                done, starting = (done, starting - 1) if starting else (done + 1, 0)
            before = mode
            if done == job.work:
                best = min(best, cost)
                break
    return best


@pytest.mark.parametrize("seed", range(60))
def test_the_optimum_is_the_cheapest_of_all_schedules(seed):
    dice = random.Random(seed)
    work, changeover = dice.randint(1, 4), dice.randint(0, 2)
    deadline = min(work + changeover + dice.randint(0, 3), 8)
    job = DeadlineJob(work, deadline, changeover, 1.0, dice.choice([0.2, 0.35, 0.9]))
    available = np.array([dice.random() < 0.6 for _ in range(deadline)])
    assert least_cost(job, available) == pytest.approx(cheapest_of_all(job, available))


def test_greedy_waits_for_spot_until_it_must_not():
    # 4 ticks of work by tick 8, no changeover: spot at 0 and 1, then 2 are left, and nothing may be wasted from tick 6 on.
    run = follow(DeadlineJob(4, 8), ticks("11000000"), greedy)
    assert run.modes == (SPOT, SPOT, IDLE, IDLE, IDLE, IDLE, ON_DEMAND, ON_DEMAND)
    assert run.cost == pytest.approx(2 * 0.35 + 2)


def test_uniform_progress_goes_on_demand_as_soon_as_it_is_behind():
    # Pace ½ a tick. After two ticks of spot it has 2 = 4 · ½: idle until tick 4, behind at 5, then every other tick.
    run = follow(DeadlineJob(4, 8), ticks("11000001"), uniform_progress)
    assert run.modes == (SPOT, SPOT, IDLE, IDLE, IDLE, ON_DEMAND, IDLE, SPOT)
    assert run.end == 8


def test_a_changeover_is_paid_and_does_no_work():
    run = follow(DeadlineJob(2, 6, changeover=1), ticks("111111"), greedy)
    assert (run.end, run.cost) == (3, pytest.approx(3 * 0.35))


def test_a_deadline_that_cannot_be_met_is_refused():
    with pytest.raises(UserError, match="give a later one"):
        DeadlineJob(10, 10, changeover=1)


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_meets_the_deadline_and_none_beats_the_optimum(policy):
    dice = random.Random(5)
    for _ in range(300):
        work, changeover = dice.randint(1, 20), dice.randint(0, 3)
        job = DeadlineJob(work, work + changeover + dice.randint(0, 30), changeover)
        share = dice.random()
        available = np.repeat([dice.random() < share for _ in range(job.deadline)], 3)[: job.deadline]
        run = follow(job, available, POLICIES[policy])
        assert run.end is not None
        assert run.cost >= least_cost(job, available) - 1e-9


def test_on_real_availability_both_policies_lie_between_the_optimum_and_on_demand(reference):
    zones = read_zones(reference / "oracles/spot/skypilot_spot_traces.csv.gz", like=("02-15-2023",))
    assert len(zones) == 9
    gap, costs = 600.0, []
    job = DeadlineJob(work=24 * 6, deadline=36 * 6, changeover=1)
    for zone in zones:
        for start in (0.0, 10 * 86400.0, 25 * 86400.0):
            available = np.array([zone.share_at(start + gap * t) > 0 for t in range(job.deadline)])
            runs = {name: follow(job, available, policy) for name, policy in POLICIES.items()}
            assert all(run.end is not None for run in runs.values())
            costs.append([*(runs[name].cost for name in POLICIES), least_cost(job, available)])
    on_demand, greedily, evenly, optimum = np.mean(costs, axis=0)
    assert optimum <= min(greedily, evenly) <= max(greedily, evenly) <= on_demand
    assert optimum < 0.6 * on_demand
