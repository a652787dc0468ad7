"""Intervals keep their promise in time order, on waits that nobody here made and on simulated ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gputwin.simulation.cluster import cluster_for
from gputwin.simulation.scenario import scenario_of
from gputwin.studies.eta.backtest import ETA, SIMULATION, SIZE, USER, Backtest, backtest
from gputwin.studies.eta.calibration import calibrated
from gputwin.studies.eta.estimate import BACKTEST_DRAWS, rules_of
from gputwin.studies.eta.points import NEW, Points
from gputwin.studies.eta.record import Record
from gputwin.traces.locate import open_trace

LEAST, MOST = 0.74, 0.86


@pytest.fixture(scope="module")
def theta(real_data: Path) -> Backtest:
    trace = open_trace(str(real_data / "thetagpu" / "thetagpu_jobs.csv.gz"))
    cluster = cluster_for(trace, "homogeneous:24x1")
    record = Record.of(trace, cluster)
    scenario = scenario_of({"trace": "theta", "backfill": "easy"})
    count = 500
    return backtest(record, rules_of(record, scenario, cluster, BACKTEST_DRAWS, count * BACKTEST_DRAWS, True), count)


@pytest.mark.parametrize("state", ["all", "just submitted", "waiting"])
def test_intervals_hold_thetagpus_starts_as_promised(theta, state):
    found = theta.score(ETA, state)
    assert found.points > 300
    assert LEAST <= found.coverage <= MOST


def test_eta_says_more_of_thetagpus_starts_than_the_obvious(theta):
    for state in ("all", "just submitted"):
        ours = theta.score(ETA, state).interval_score
        assert all(ours < theta.score(other, state).interval_score for other in (USER, SIZE, SIMULATION))


def points(at: np.ndarray, wait: np.ndarray, simulated: np.ndarray) -> Points:
    size, zeros = at.size, np.zeros(at.size)
    levels = np.repeat(simulated[:, None], 3, axis=1)
    return Points(at, np.arange(size), np.full(size, NEW), zeros, zeros + 1, *(zeros for _ in range(5)), levels, wait)


def test_a_simulation_that_is_half_the_truth_is_corrected():
    random = np.random.default_rng(0)
    simulated = random.exponential(1000.0, 1500)
    wait = 2.0 * simulated * np.exp(0.3 * random.standard_normal(1500))
    made = points(np.arange(1500) * 1e5, wait, simulated)
    low, middle, high = calibrated(made)[500:].T
    actual = wait[500:]
    assert LEAST <= ((low <= actual) & (actual <= high)).mean() <= MOST
    assert np.median(middle / simulated[500:]) == pytest.approx(2.0, rel=0.15)


def test_intervals_follow_a_queue_that_grows_beyond_those_before():
    random = np.random.default_rng(0)
    level = np.concatenate([np.zeros(500), np.linspace(0.0, 3.0, 300)])
    simulated = 1000.0 * np.exp(level + 0.3 * random.standard_normal(800))
    wait = 2.0 * simulated * np.exp(0.5 * random.standard_normal(800))
    low, _, high = calibrated(points(np.arange(800) * 1e6, wait, simulated))[500:].T
    actual = wait[500:]
    assert LEAST <= ((low <= actual) & (actual <= high)).mean() <= MOST
    assert (actual > high).mean() <= 0.15


def test_calibration_looks_at_nothing_later():
    random = np.random.default_rng(0)
    at, wait = np.sort(random.random(400)) * 1e6, random.exponential(3e4, 400)
    cut = 250
    other = wait.copy()
    ended = at + wait <= at[cut]
    # What has not started by the cut may start at any later time.
    other[~ended] = (at[cut] - at)[~ended].clip(0.0) + random.exponential(3e5, int((~ended).sum()))
    simulated = np.full(400, 1e4)
    first, second = (calibrated(points(at, w, simulated))[: cut + 1] for w in (wait, other))
    assert np.isfinite(first[-1]).all()
    np.testing.assert_array_equal(first[-1], second[-1])
