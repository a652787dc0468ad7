from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from gputwin.traces.synthetic.distributions import Quantiles, Shares, spread
from gputwin.traces.synthetic.fidelity import ks_distance, ks_distance_between
from gputwin.traces.synthetic.identifiers import ordered_identifiers
from gputwin.traces.synthetic.population import Recurrence, lognormal_shares


@given(st.lists(st.floats(0.1, 1e6), min_size=1, max_size=200))
def test_spread_is_uniform_by_weight_and_rises_with_the_score(weights: list[float]) -> None:
    weight = np.array(weights)
    score = np.random.default_rng(0).permutation(len(weight)).astype(np.float64)
    u = spread(score, weight)
    assert np.average(u, weights=weight) == pytest.approx(0.5, abs=1e-9)
    assert (np.diff(u[np.argsort(score)]) > 0).all() or len(weight) == 1


def test_quantiles_give_back_what_they_were_made_from() -> None:
    table = Quantiles((0, 0.25, 0.5, 0.9, 1), (1, 10, 100, 5_000, 1e6), whole=False)
    z = stats.norm.ppf(np.random.default_rng(1).random(200_000))
    drawn = table.at(z)
    assert np.quantile(drawn, [0.25, 0.5, 0.9]) == pytest.approx([10, 100, 5_000], rel=0.03)
    assert stats.kstest(table.cdf(drawn), "uniform").statistic < 0.005


def test_an_atom_is_one_jump() -> None:
    waits = Quantiles.at_most(1_000, (0, 0.655), (10, 0.8))
    assert waits.cdf(np.array([0.0])) == pytest.approx(0.655, abs=1e-4)
    assert waits.cdf(np.array([0.0]), "left") == 0
    drawn = waits.at(np.random.default_rng(2).standard_normal(100_000))
    assert (drawn == 0).mean() == pytest.approx(0.655, abs=0.01)
    assert ks_distance(drawn, waits) < 0.01
    assert ks_distance(np.zeros(10), waits) == pytest.approx(1 - 0.655, abs=1e-4)


def test_ks_against_shares_counts_ties_once() -> None:
    coin = Shares(((0, 0.5), (1, 0.5)))
    assert ks_distance(np.array([0.0, 1.0] * 50), coin) == pytest.approx(0)
    assert ks_distance(np.array([0.0] * 70 + [1.0] * 30), coin) == pytest.approx(0.2)
    assert ks_distance(np.array([2.0]), coin) == pytest.approx(1)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=50), st.lists(st.integers(0, 9), min_size=1, max_size=50))
def test_ks_of_two_samples_is_scipy_s(a: list[int], b: list[int]) -> None:
    expected = stats.ks_2samp(a, b, method="asymp").statistic
    assert ks_distance_between(np.array(a, float), np.array(b, float)) == pytest.approx(expected)


@given(st.integers(1, 3_000), st.integers(0, 5))
def test_group_sizes_add_up(jobs: int, seed: int) -> None:
    sizes = Recurrence(1.3, 0.01, 50).sizes(np.random.default_rng(seed), jobs)
    assert sizes.sum() == jobs
    assert sizes.min() >= 1


def test_lognormal_shares_put_most_with_the_top() -> None:
    """The share of the largest 5 % of a log-normal population is Φ(σ − z95)."""
    cumulative = lognormal_shares(100_000, 1.5)
    assert cumulative[4_999] == pytest.approx(stats.norm.cdf(1.5 - stats.norm.ppf(0.95)), abs=0.005)


def test_identifiers_ascend_within_a_second() -> None:
    seconds = np.repeat(np.arange(50), 40)
    names = ordered_identifiers(np.random.default_rng(3), seconds, 24)
    frame = pl.DataFrame({"second": seconds, "name": names})
    assert frame.equals(frame.sort("second", "name"))
    assert names.is_unique().all()
    assert names.str.contains(r"^[0-9a-f]{24}$").all()
