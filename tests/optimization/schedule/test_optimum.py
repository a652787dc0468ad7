"""The best schedule in hindsight: by hand, against trying everything, and never worse than an online policy."""

from __future__ import annotations

from itertools import permutations

import numpy as np

from gputwin.optimization.schedule.gaps import gaps, random_case
from gputwin.optimization.schedule.optimum import Goal, SmallJob, best_schedule


def test_short_jobs_first_is_best_on_one_gpu() -> None:
    jobs = (SmallJob("long", 0, 10), SmallJob("short", 0, 2), SmallJob("middle", 0, 5))
    best = best_schedule(jobs, [1])
    assert best.starts == (7, 0, 2)
    assert best.is_optimal
    assert best.objective == -9


def test_weights_completion_and_horizon_choose_who_runs() -> None:
    jobs = (SmallJob("dear", 0, 8, weight=5), SmallJob("cheap", 0, 3), SmallJob("other", 0, 4))
    best = best_schedule(jobs, [1], Goal(completed=10, wait=0, horizon=8))
    assert best.objective == 50
    assert best.starts[0] == 0


def test_a_gang_waits_until_all_its_instances_have_room() -> None:
    jobs = (SmallJob("first", 0, 5, 1, 2), SmallJob("gang", 0, 1, 2, 2))
    best = best_schedule(jobs, [2, 2])
    assert best.starts == (1, 0)
    assert best.nodes[1] == (0, 1)


def test_locality_costs_nodes_and_fairness_levels_tenants() -> None:
    jobs = (SmallJob("a", 0, 2, 2, 1), SmallJob("b", 0, 2, 2, 1))
    best = best_schedule(jobs, [2, 2], Goal(spread=1))
    assert all(len(set(nodes)) == 1 for nodes in best.nodes)
    unfair = (SmallJob("x1", 0, 4, tenant="x"), SmallJob("x2", 0, 4, tenant="x"), SmallJob("y1", 0, 4, tenant="y"))
    level = best_schedule(unfair, [1], Goal(completed=1, wait=0, unfairness=1, horizon=12))
    assert all(start is not None for start in level.starts)


def least_total_wait_of_lists(jobs: tuple[SmallJob, ...], gpus: int) -> int:
    """Return the least total wait over every order, each job started as early as one pool of GPUs allows."""
    best = 10**9
    for order in permutations(range(len(jobs))):
        used = np.zeros(400, int)
        total = 0
        for i in order:
            job = jobs[i]
            at = job.submit
            while (used[at : at + job.duration] + job.instances * job.gpus > gpus).any():
                at += 1
            used[at : at + job.duration] += job.instances * job.gpus
            total += at - job.submit
        best = min(best, total)
    return best


def test_the_optimum_equals_the_best_of_all_orders_on_one_node() -> None:
    for seed in range(12):
        jobs = random_case(seed, jobs=5, nodes=1)
        jobs = tuple(j for j in jobs if j.instances * j.gpus <= 4)
        best = best_schedule(jobs, [4])
        assert best.is_optimal
        assert -best.objective == least_total_wait_of_lists(jobs, 4), f"seed {seed}"


def test_no_online_policy_beats_hindsight() -> None:
    found = gaps(6, jobs=6)
    assert found.proven == found.cases
    assert (found.table["mean_gap"] >= -1e-9).all()
    assert (found.table["mean_gap"] > 0).any()
    assert found.table.height == 8
