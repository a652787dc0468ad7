"""Fitting finds what was planted."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gputwin.core.errors import UserError
from gputwin.core.rng import stream
from gputwin.core.units import DAY, HOUR
from gputwin.queueing.distributions import BoundedPareto, Constant, Hyperexponential, exponential, lognormal
from gputwin.queueing.fit.arrivals import Mmpp, fit_arrivals, index_of_dispersion, rate_curve
from gputwin.queueing.fit.service import fit_hyperexponential, fit_service, fit_tail


@pytest.mark.parametrize(
    ("family", "planted"),
    [
        ("lognormal", lognormal(1000.0, 20.0)),
        ("hyperexponential", Hyperexponential((0.7, 0.3), (10.0, 2000.0))),
        ("exponential", exponential(300.0)),
        ("bounded Pareto", BoundedPareto(0.8, 5.0, 50_000.0)),
    ],
)
def test_the_planted_family_fits_best_or_as_well(family: str, planted: Hyperexponential) -> None:
    times = planted.draw(stream(0, family), 20_000)
    fits = fit_service(times)
    own = next(f for f in fits if f.family == family)
    assert own.ks < 0.015
    assert own.ks <= fits[0].ks + 0.003
    assert own.log_likelihood is not None
    assert own.log_likelihood >= max(f.log_likelihood for f in fits if f.log_likelihood is not None) - 1e-3


def test_branches_are_recovered() -> None:
    times = Hyperexponential((0.6, 0.4), (5.0, 800.0)).draw(stream(0, "branches"), 30_000)
    found = fit_hyperexponential(times, branches=2)
    np.testing.assert_allclose(found.means, (5.0, 800.0), rtol=0.05)
    np.testing.assert_allclose(found.probabilities, (0.6, 0.4), rtol=0.03)


def test_a_tail_index_is_recovered_and_told_from_a_light_one() -> None:
    pareto = BoundedPareto(1.4, 10.0, 1e9).draw(stream(0, "tail"), 50_000)
    found = fit_tail(pareto)
    assert found is not None
    assert found.index == pytest.approx(1.4, rel=0.1)
    assert found.heavy
    light = fit_tail(exponential(100.0).draw(stream(0, "light"), 50_000))
    assert light is not None
    assert not light.heavy
    assert fit_tail(np.arange(1.0, 20.0)) is None


@settings(max_examples=20, deadline=None)
@given(st.lists(st.floats(0.01, 1e6), min_size=1, max_size=60))
def test_any_times_can_be_fitted(times: list[float]) -> None:
    for fit in fit_service(np.array(times)):
        assert 0 <= fit.ks <= 1
        assert np.isfinite(fit.mean_ratio)


def test_poisson_arrivals_have_dispersion_one_at_every_scale() -> None:
    times = np.cumsum(stream(0, "poisson").exponential(2.0, 100_000))
    found = fit_arrivals(times)
    assert found.rate == pytest.approx(0.5, rel=0.02)
    assert found.gap_scv == pytest.approx(1, abs=0.03)
    wide = found.windows.size - 6
    np.testing.assert_allclose(found.dispersion[:wide], 1.0, atol=0.12)
    assert found.batch_mean == 1.0
    assert not fit_arrivals(times[:20_000]).batch_scv


def test_even_arrivals_have_none_and_batches_have_their_size() -> None:
    even = np.arange(0.0, 10_000.0)
    assert fit_arrivals(even).gap_scv == pytest.approx(0)
    batches = np.repeat(np.cumsum(stream(0, "batch").exponential(10.0, 20_000)), 5)
    found = fit_arrivals(batches)
    assert found.batch_mean == 5.0
    assert found.dispersion_at(200.0) == pytest.approx(5, rel=0.1)


def test_a_modulated_process_is_recovered_by_its_dispersion() -> None:
    planted = Mmpp((2.0, 0.1), (1 / 60, 1 / 180))
    times = planted.draw(stream(0, "mmpp"), 300_000)
    found = fit_arrivals(times)
    assert found.rate == pytest.approx(planted.mean_rate, rel=0.05)
    assert found.bursty
    assert found.modulated is not None
    assert found.modulated.mean_rate == pytest.approx(found.rate, rel=1e-6)
    at = np.array([10.0, 100.0, 1000.0])
    np.testing.assert_allclose(found.modulated.dispersion(at), planted.dispersion(at), rtol=0.25)


def test_the_dispersion_of_a_modulated_process_is_its_formula() -> None:
    planted = Mmpp((3.0, 0.0), (1 / 50, 1 / 100))
    windows, found = index_of_dispersion(planted.draw(stream(0, "formula"), 400_000))
    short = windows < 3000
    np.testing.assert_allclose(found[short], planted.dispersion(windows[short]), rtol=0.12)


def test_the_rate_of_each_hour() -> None:
    """One job a minute by day, one in ten minutes by night, for four days and a half."""
    hours = np.arange(int(4.5 * 24))
    times = np.concatenate([h * HOUR + np.arange(0, HOUR, 60 if 8 <= h % 24 < 20 else 600) for h in hours])
    found = rate_curve(times, DAY)
    np.testing.assert_allclose(found[8:20], 1 / 60, rtol=0.02)
    np.testing.assert_allclose(found[:8], 1 / 600, rtol=0.02)


def test_too_little_to_fit_is_said() -> None:
    with pytest.raises(UserError, match="two times"):
        fit_arrivals(np.array([5.0, 5.0, 5.0]))
    with pytest.raises(UserError, match="nothing to fit"):
        fit_service(np.array([np.nan]))
    assert fit_service(Constant(3.0).draw(stream(0), 100))[0].mean_ratio == pytest.approx(1, rel=0.01)
