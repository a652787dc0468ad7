"""Step times fitted to measurements, scaling efficiency, and allocations worked by hand."""

from __future__ import annotations

import itertools

import numpy as np
import polars as pl
import pytest

from gputwin.core.errors import UserError
from gputwin.simulation.elasticity.allocation import ElasticJob, afs, best_sizes, goodput, optimus
from gputwin.simulation.elasticity.efficiency import (
    ScaleRule,
    marginal_gain,
    strong_scaling,
    weak_scaling,
    worth_of_gpus,
)
from gputwin.simulation.elasticity.goodput import BatchLimits, Goodput
from gputwin.simulation.elasticity.online import fit_online
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
    limits = BatchLimits(initial=128, most=8192, least_local=32, most_local=512)
    quiet, noisy = (Goodput(steps, limits, noise) for noise in (0.1, 50.0))
    assert quiet.efficiency(np.array([128.0])) == pytest.approx(1.0)
    nodes, gpus = np.array([1, 2]), np.array([1, 8])
    assert noisy.best(nodes, gpus)[1][1] > quiet.best(nodes, gpus)[1][1]
    assert noisy.best(nodes, gpus)[0][1] > noisy.best(nodes, gpus)[0][0]
    # 64 GPUs of at least 32 need a batch of 2048.
    small = BatchLimits(initial=128, most=1024, least_local=32, most_local=512)
    assert Goodput(steps, small, 1.0).best(np.array([16]), np.array([64]))[0].item() == 0


def test_gradients_are_added_up_where_a_gpu_cannot_hold_the_batch():
    """A batch of 64 on a GPU that holds 16: four at a time, three added up before the step."""
    steps = StepTime(0.001, 0.01, 0.2, 0.0, 0.1, 0.0, 1.0)
    found = Goodput(steps, BatchLimits(64, 64, 1, 16), 1.0).best(np.array([1]), np.array([1]))
    assert (found[1].item(), found[2].item()) == (16, 3)


def test_best_sizes_are_those_of_trying_all():
    rng = np.random.default_rng(5)
    for _ in range(30):
        jobs, gpus = int(rng.integers(1, 5)), int(rng.integers(1, 7))
        values = [np.where(rng.random(gpus + 1) < 0.8, rng.normal(size=gpus + 1), -np.inf) for _ in range(jobs)]
        for value in values:
            value[0] = 0.0
        sizes = best_sizes(values, gpus)
        assert sum(sizes) <= gpus
        every = itertools.product(range(gpus + 1), repeat=jobs)
        best = max(sum(v[n] for v, n in zip(values, s, strict=True)) for s in every if sum(s) <= gpus)
        assert sum(v[n] for v, n in zip(values, sizes, strict=True)) == pytest.approx(best)


def test_what_was_not_seen_is_taken_to_scale():
    """One step on one GPU: half of its compute time is constant, and ten GPUs would be nearly ten times as fast."""
    one = Steps(*(np.array([v]) for v in (1.0, 1.0, 32.0, 0.5, 0.0)))
    model = fit_online(one)
    assert model.compute == pytest.approx(0.25)
    alone = model.samples_per_second(np.array([1.0]), np.array([1.0]), np.array([32.0]))
    many = model.samples_per_second(np.array([3.0]), np.array([10.0]), np.array([32.0]))
    assert many.item() == pytest.approx(10 * alone.item(), rel=0.01)


@pytest.mark.parametrize("seed", range(6))
def test_learnt_step_times_are_as_near_as_a_library_gets(seed):
    """The compiled fit against scipy's: the sum of squares with the priors is no larger."""
    from scipy.optimize import least_squares

    rng = np.random.default_rng(seed)
    truth = StepTime(*rng.uniform(0.02, 0.2, 6), 1.0 + rng.uniform(0.1, 3.0))
    gpus = np.array([1.0, 2.0, 4.0, 8.0, 12.0, 32.0])[: rng.integers(4, 7)]
    nodes, batch = np.ceil(gpus / 4), rng.choice([16.0, 32.0, 64.0], gpus.size)
    batch[0] = 128.0
    noise = np.exp(rng.normal(0.0, 0.05, gpus.size))
    step, compute = truth.step_seconds(nodes, gpus, batch) * noise, truth.compute_seconds(batch)
    steps = Steps(nodes, gpus, batch, np.maximum(step, compute), np.maximum(step - compute, 0.0))

    def errors(model):
        of_compute = np.log(model.compute_seconds(batch) / (steps.step_seconds - steps.sync_seconds))
        of_step = np.log(model.step_seconds(nodes, gpus, batch) / steps.step_seconds)
        growth = (model.across_per_gpu / model.across, model.within_per_gpu / model.within)
        pulls = (0.03 * (model.gamma - 1.0), 0.1 * growth[0], 0.1 * growth[1])
        return np.concatenate([of_compute / np.sqrt(gpus.size), of_step / np.sqrt(gpus.size), pulls])

    def of_logs(logs):
        return errors(StepTime(*np.exp(logs[:6]), 1.0 + np.exp(logs[6])))

    guess = np.log([0.1, 0.01, 0.1, 0.01, 0.1, 0.01, 0.1])
    bounds = (np.log(1e-8), [*[np.log(1e3)] * 6, np.log(9.0)])
    library = least_squares(of_logs, guess, bounds=bounds, max_nfev=2000).cost
    assert 0.5 * (errors(fit_online(steps)) ** 2).sum() <= 1.001 * library + 1e-9
