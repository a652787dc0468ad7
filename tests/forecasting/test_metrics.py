from __future__ import annotations

import numpy as np
import pytest

from gputwin.forecasting import metrics


def test_errors_by_hand():
    actual, made = np.array([1.0, 2.0, 3.0, 6.0]), np.array([1.0, 2.0, 5.0, 2.0])
    assert metrics.relative_rmse(actual, made) == pytest.approx(np.sqrt(20 / 4) / 3)
    assert metrics.mase(actual, made, np.array([0.0, 2.0, 2.0])) == pytest.approx(6 / 4 / 1)
    assert metrics.pinball(actual, made, 0.9) == pytest.approx((0.1 * 2 + 0.9 * 4) / 4)
    assert metrics.concentration(actual - made, share=0.25) == pytest.approx(16 / 20)
    assert metrics.skill(actual - made, 2 * (actual - made)) == pytest.approx(0.5)


def test_nothing_is_divided_by_zero():
    zeros = np.zeros(4)
    assert np.isnan(metrics.relative_rmse(zeros, zeros))
    assert np.isnan(metrics.mase(zeros, zeros, zeros))
    assert metrics.skill(zeros, zeros) == 0
    assert metrics.skill(zeros + 1, zeros) == -np.inf
    assert metrics.concentration(zeros) == 0


def test_the_standard_error_of_independent_losses_is_the_textbook_one():
    loss = np.random.default_rng(0).normal(size=20_000)
    assert metrics.loss_standard_error(loss, 1) == pytest.approx(1 / np.sqrt(20_000), rel=0.1)


def test_the_standard_error_knows_that_neighbours_are_alike():
    """An AR(1) of φ has a mean whose error is √((1+φ)/(1−φ)) times that of independent values."""
    rng, phi = np.random.default_rng(0), 0.5
    loss = np.zeros(50_000)
    for i in range(1, len(loss)):
        loss[i] = phi * loss[i - 1] + rng.normal()
    plain = loss.std() / np.sqrt(len(loss))
    assert metrics.loss_standard_error(loss, 1) / plain == pytest.approx(np.sqrt(3), rel=0.1)


def test_diebold_mariano_rejects_as_often_as_it_says_and_finds_what_is_there():
    rng = np.random.default_rng(0)
    drawn = [metrics.diebold_mariano(rng.normal(size=200), rng.normal(size=200), 1).p_value for _ in range(400)]
    assert 0.02 < np.mean(np.array(drawn) < 0.05) < 0.1
    better, worse = rng.normal(size=500), 1.5 * rng.normal(size=500)
    found = metrics.diebold_mariano(better, worse, 1)
    assert found.difference < 0
    assert found.p_value < 1e-4
    assert metrics.diebold_mariano(better, better, 1).p_value == 1


def test_the_bootstrap_interval_holds_the_true_skill():
    rng = np.random.default_rng(0)
    inside = 0
    for seed in range(40):
        errors, reference = rng.normal(size=400), 2 * rng.normal(size=400)
        low, high = metrics.skill_interval(errors, reference, 1, seed=seed)[1:]
        inside += low <= 0.5 <= high
    assert inside >= 34


def test_blocks_keep_neighbours_together():
    rows = metrics.block_resamples(100, 10, 50, 0)
    assert rows.shape == (50, 100)
    assert np.mean(np.diff(rows, axis=1) % 100 == 1) > 0.88
