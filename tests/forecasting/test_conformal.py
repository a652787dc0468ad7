from __future__ import annotations

import numpy as np
import pytest

from gputwin.forecasting.conformal import band, residual_quantiles


@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.95])
@pytest.mark.parametrize("lead", [1, 12])
def test_bands_cover_what_they_promise(coverage, lead):
    actual = np.random.default_rng(0).standard_t(3, size=3000)
    made = band(np.zeros(3000), actual, lead, 1000, coverage)
    assert len(made.low) == 2000
    assert made.coverage == pytest.approx(coverage, abs=0.03)


def test_bands_follow_when_errors_grow():
    rng = np.random.default_rng(0)
    scale = np.where(np.arange(4000) < 2000, 1.0, 5.0)
    made = band(np.zeros(4000), scale * rng.normal(size=4000), 1, 1000, 0.8)
    assert made.coverage == pytest.approx(0.8, abs=0.04)
    assert (made.high - made.low)[-500:].mean() > 3 * (made.high - made.low)[:900].mean()


def test_where_half_is_zero_the_band_still_covers_what_it_promises():
    """The middle 80 % of such values would cover 90 %: nothing lies below zero."""
    rng = np.random.default_rng(0)
    actual = np.where(rng.uniform(size=4000) < 0.5, 0.0, rng.exponential(size=4000))
    made = band(np.full(4000, 0.5), actual, 1, 1000, 0.8, floor=0.0)
    assert made.coverage == pytest.approx(0.8, abs=0.03)
    assert (made.low == 0).all()


def test_a_band_stands_on_errors_that_were_known():
    rng = np.random.default_rng(0)
    actual = rng.normal(size=600)
    changed = actual.copy()
    changed[500:] += 100
    lead = 12
    first, second = (band(np.zeros(600), a, lead, 300, 0.8) for a in (actual, changed))
    # Row i stands for origin i, whose target is i + 11; the first changed error is known at row 512.
    assert np.array_equal(first.high[: 512 - 300], second.high[: 512 - 300])
    assert not np.array_equal(first.high[512 - 300 :], second.high[512 - 300 :])


def test_quantiles_are_the_past_errors_at_the_same_lead():
    errors = np.stack([np.arange(-100, 100), 10.0 * np.arange(-100, 100)], axis=1)[:, :, None]
    made = residual_quantiles(np.zeros((3, 1)), errors, (1, 3), (1, 2, 3), (0.1, 0.9), np.array([-np.inf]))
    assert made[0.9][:, 0].tolist() == pytest.approx([80, 450, 820], rel=0.01)
    assert made[0.1][:, 0].tolist() == pytest.approx([-81, -450, -820], rel=0.02)
