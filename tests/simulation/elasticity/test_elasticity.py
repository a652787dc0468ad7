"""Step times fitted to measurements, scaling efficiency, and allocations worked by hand."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from gputwin.core.errors import UserError
from gputwin.simulation.elasticity.allocation import ElasticJob, afs, goodput, optimus
from gputwin.simulation.elasticity.efficiency import (
    Goodput,
    ScaleRule,
    marginal_gain,
    strong_scaling,
    weak_scaling,
    worth_of_gpus,
)
from gputwin.simulation.elasticity.throughput import Steps, StepTime, fit, mean_error
from gputwin.studies.reproduce.pollux_profiles import APPLICATIONS, read_steps


@pytest.mark.parametrize("application", APPLICATIONS)
def test_the_model_fits_measured_steps(real_data, application):
    """Within 10 % on average, and within 15 % on more than 8 GPUs if only steps on at most 8 were seen."""
    steps = read_steps(real_data / "pollux_profiles", application)
    assert mean_error(fit(steps), steps) <= 0.10
    few = steps.gpus <= 8
    assert mean_error(fit(steps.of(few)), steps.of(~few)) <= 0.15


def test_the_fit_is_no_worse_than_the_authors(real_data, reference):
    """Except where theirs and ours round to the same."""
    theirs = pl.read_csv(reference / "oracles/elasticity/pollux_fit_error.csv")
    for name, error in theirs.select("application", "mape_fit").iter_rows():
        steps = read_steps(real_data / "pollux_profiles", name)
        assert mean_error(fit(steps), steps) <= error + 0.002


def test_parameters_that_made_the_steps_are_found():
    truth = StepTime(0.1, 0.01, 0.3, 0.004, 0.05, 0.003, 2.0)
    rng = np.random.default_rng(1)
    gpus = rng.integers(1, 33, 400).astype(float)
    nodes = np.ceil(gpus / 4)
    batch = rng.integers(8, 128, 400).astype(float)
    step = truth.step_seconds(nodes, gpus, batch)
    found = fit(Steps(nodes, gpus, batch, step, step - truth.compute_seconds(batch)))
    assert mean_error(found, Steps(nodes, gpus, batch, step, step)) < 0.03
    with pytest.raises(UserError, match="no measured steps to fit"):
        fit(Steps(*(np.zeros(0),) * 5))


def halves(n):
    """Return a speed that gains half as much with each further GPU: 1, 1.5, 1.75, …"""
    return 2.0 - 2.0 ** (1 - n) if n else 0.0


def straight(n):
    return float(n)


def test_efficiency_by_hand():
    assert strong_scaling(halves, 2) == 0.75
    assert worth_of_gpus(halves, 2, price=3.0) == 0.25
    assert marginal_gain(halves, 1) == 0.5
    model = StepTime(1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0)
    assert weak_scaling(model, 4, 8.0) == pytest.approx(0.5, abs=1e-6)


def test_scaling_stops_where_it_does_not_pay_and_has_a_hysteresis():
    rule = ScaleRule(up=0.5, down=0.2)
    assert rule.size(halves, 1, 1e6, free=4) == 2
    # The third GPU adds 0.25 of the first: not worth adding, but worth keeping.
    assert rule.size(halves, 2, 1e6, free=4) == 2
    assert rule.size(halves, 3, 1e6, free=4) == 3
    # The fourth adds 0.125.
    assert rule.size(halves, 4, 1e6, free=4) == 3
    # 10 s of work left: a resize of 30 s saves 3.3 s.
    assert rule.size(halves, 1, 10.0, free=4) == 1
    with pytest.raises(UserError, match="give down at most up"):
        ScaleRule(up=0.5, down=0.9)


def test_optimus_gives_gpus_where_they_save_most_time():
    """Job 0 gains with each GPU, job 1 soon does not: 100 s → 50, 33, 25, … against 100 → 67, 57, …"""
    jobs = [ElasticJob(straight, 100.0), ElasticJob(halves, 100.0)]
    # Savings: 50, 16.7, 8.3 | 33.3, 9.5: after one each, 0, 1, 0, 1, 0.
    assert optimus(jobs, 4) == [2, 2]
    assert optimus(jobs, 5) == [3, 2]
    assert optimus(jobs, 6) == [3, 3]
    assert optimus(jobs, 1) == [1, 0]


def test_afs_prefers_the_short_job_unless_the_long_one_makes_more_of_it():
    jobs = [ElasticJob(straight, 10.0), ElasticJob(straight, 100.0)]
    # Both scale perfectly: (2-1)/2 = 0.5 of the long one is not more than (2-1)/1 of the short one.
    assert afs(jobs, 3) == [2, 1]
    flat = [ElasticJob(lambda n: 1.0 if n else 0.0, 10.0), ElasticJob(straight, 100.0)]
    assert afs(flat, 4) == [1, 3]


def test_goodput_evens_out_speedups():
    jobs = [ElasticJob(straight, 1.0), ElasticJob(halves, 1.0)]
    assert sum(goodput(jobs, 8)) == 8
    assert goodput(jobs, 8)[0] > goodput(jobs, 8)[1]
    assert goodput([ElasticJob(straight, 1.0)] * 2, 8) == [4, 4]


def power_law(exponent):
    return lambda n: float(n) ** exponent


def test_no_policy_gives_more_than_there_is():
    rng = np.random.default_rng(3)
    for _ in range(50):
        exponents = rng.uniform(0.3, 1.0, int(rng.integers(1, 9)))
        jobs = [ElasticJob(power_law(e), float(rng.uniform(1, 100)), 1, 8) for e in exponents]
        gpus = int(rng.integers(0, 24))
        for policy in (optimus, afs, goodput):
            sizes = policy(jobs, gpus)
            assert sum(sizes) <= gpus
            assert all(0 <= size <= 8 for size in sizes)


def test_a_noisy_gradient_makes_a_large_batch_worth_it():
    steps = StepTime(0.05, 0.001, 0.2, 0.001, 0.1, 0.001, 1.5)
    quiet, noisy = (Goodput(steps, 128.0, noise, 32.0, 512.0, 8192.0) for noise in (0.1, 50.0))
    assert quiet.efficiency(np.array([128.0])) == pytest.approx(1.0)
    assert noisy.best(2, 8)[1] > quiet.best(2, 8)[1]
    assert noisy.best(2, 8)[0] > noisy.best(1, 1)[0]
    assert quiet.best(1, 1, tries=5)[0] > 0
    assert Goodput(steps, 128.0, 1.0, 32.0, 64.0, 100.0).best(1, 1) == (0.0, 0.0)
