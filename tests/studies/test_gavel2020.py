"""Mean completion times beside those published with Gavel; the whole table: `gputwin reproduce gavel2020`."""

from __future__ import annotations

import numpy as np
import pytest

from gputwin.simulation.planning.mechanism import RoundSettings
from gputwin.simulation.planning.rounds import RoundJobs, simulate_rounds
from gputwin.simulation.planning.snapshot import PLANNERS
from gputwin.studies.reproduce.gavel2020 import reproduce


@pytest.fixture(scope="module")
def files(real_data, reference):
    throughputs = real_data / "gavel_throughputs" / "simulation_throughputs.json.gz"
    return throughputs, reference / "oracles/schedulers/gavel"


@pytest.mark.parametrize(
    ("policy", "rate", "within"),
    [("fifo", 2.0, 0.005), ("max_min_fairness_perf", 4.4, 0.03)],
)
def test_mean_completion_is_the_published_one(files, policy, rate, within):
    """FIFO agrees up to 2.4 jobs an hour. From 2.8 on (up to 7.5 % off) the published figures seem to depend on random draws
    that were not published; the table of jobs of several GPUs was made with other jobs (docs/heterogeneity.md)."""
    result = reproduce(*files, policies=[policy], rates=[rate])
    assert not result.is_saturated(result.points[0])
    assert abs(result.points[0].difference) <= within


def jobs_of(submit, steps, throughputs, gpus=None):
    count = len(submit)
    return RoundJobs(
        np.array(submit, float),
        np.array(steps, float),
        np.ones(count) if gpus is None else np.array(gpus, float),
        np.array(throughputs, float),
        np.ones(count),
    )


def run(jobs, policy, **settings):
    models = ("slow", "fast")
    chosen = RoundSettings(round_seconds=10.0, least_replan_seconds=0.0, fill_order=("fast", "slow"), **settings)
    return simulate_rounds(jobs, models, np.array([1.0, 1.0]), PLANNERS.get(policy), chosen)


def test_first_come_first_served_by_hand():
    """Rounds of 10 s. Job 0 takes the fast GPU (20 steps at 2 a second), job 1 the slow one for one round; then it may
    move to the fast one; job 2 waits for a free GPU and starts at the round that begins at 10 s."""
    jobs = jobs_of([0, 0, 0], [20, 20, 5], [[1, 2]] * 3)
    result = run(jobs, "fifo-speed")
    # Round 1: job 0 ends at 10; job 1 has 10 of 20 steps. Round 2: job 1 fast, 5 s; job 2 slow, 5 s.
    assert result.end.tolist() == [10, 15, 15]


def test_two_equal_jobs_take_turns_on_the_fast_model():
    """Max-min fairness gives both half of the fast and half of the slow GPU: they swap each round."""
    jobs = jobs_of([0, 0], [90, 90], [[1, 2]] * 2)
    result = run(jobs, "max-min-speed")
    assert result.end.tolist() == [60, 60]
    assert result.extended < result.leases / 2


def test_a_gang_gets_all_of_its_gpus_or_none():
    jobs = jobs_of([0, 0], [10, 10], [[1, 0], [1, 0]], gpus=[2, 2])
    result = simulate_rounds(
        jobs,
        ("slow", "fast"),
        np.array([3.0, 1.0]),
        PLANNERS.get("max-min-speed"),
        RoundSettings(round_seconds=10.0, least_replan_seconds=0.0),
    )
    assert sorted(result.end.tolist()) == [10, 20]
