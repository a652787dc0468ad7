from __future__ import annotations

import numpy as np
import pytest

from gputwin.core.errors import UserError
from gputwin.forecasting.backtest import backtest, schedule
from gputwin.forecasting.combine import combine, stack
from tests.forecasting.made import daily_wave, series_of

MODELS = ["naive", "mean", "seasonal-naive", "ses", "window-mean"]


@pytest.fixture(scope="module")
def tested():
    return backtest(series_of(daily_wave(days=40), bin_seconds=3600.0), (1, 6), MODELS)


def test_forecasts_stand_beside_what_happened(tested):
    rows = tested.rows(6, test=True)
    targets = tested.schedule.origins[rows] + 5
    assert targets[0] == tested.schedule.test
    assert targets[-1] == tested.schedule.end - 1
    assert np.array_equal(tested.actuals[rows, 1, 0], tested.series.values[targets, 0])
    assert np.array_equal(tested.forecasts["naive"][rows, 1, 0], tested.series.values[targets - 6, 0])
    assert np.array_equal(tested.forecasts["seasonal-naive"][rows, 1, 0], tested.series.values[targets - 24, 0])


def test_the_mean_is_that_of_the_part_before_the_refit(tested):
    plan = tested.schedule
    first, second = plan.refits[:2]
    made = tested.forecasts["mean"][:, 0, 0]
    assert np.allclose(made[: second - first], tested.series.values[:first].mean())
    assert np.allclose(made[second - first], tested.series.values[:second].mean())


def test_auto_takes_the_season_where_there_is_one(tested):
    made, choices = combine(tested)
    (choice,) = (c for c in choices if c.lead == 6)
    # Of forecasts that gain about as much the mix is preferred, and this one is made of the season.
    assert choice.model in ("seasonal-naive", "ensemble-stack")
    assert choice.weights["ensemble-stack"]["seasonal-naive"] > 0.9
    assert choice.share > 0.9
    rows = tested.rows(6, test=True)
    auto, naive = (
        np.sqrt(np.mean((made.actuals[rows, 1] - made.forecasts[m][rows, 1]) ** 2)) for m in ("auto", "naive")
    )
    assert auto < 0.2 * naive


def test_auto_is_no_worse_than_the_last_value_where_nothing_beats_it():
    walk = np.cumsum(np.random.default_rng(3).normal(size=1500)) + 500
    names = [*MODELS, "drift", "lightgbm", "lightgbm-change"]
    tested, _ = combine(backtest(series_of(walk, bin_seconds=3600.0), (1, 24), names))
    for i, lead in enumerate(tested.leads):
        rows = tested.rows(lead, test=True)
        auto, naive = (
            np.mean((tested.actuals[rows, i] - tested.forecasts[n][rows, i]) ** 2) for n in ("auto", "naive")
        )
        assert auto < 1.02 * naive


def test_the_choice_does_not_see_the_test_part():
    values = daily_wave(days=40)
    plan = schedule(len(values))
    other = values.copy()
    other[plan.test :] = np.random.default_rng(9).uniform(0, 1e3, size=len(values) - plan.test)
    names = [*MODELS, "lightgbm"]
    pairs = [combine(backtest(series_of(v, bin_seconds=3600.0), (1, 6), names, plan=plan)) for v in (values, other)]
    assert [c.past_ratio for c in pairs[0][1]] == [c.past_ratio for c in pairs[1][1]]
    for name, made in pairs[0][0].forecasts.items():
        # Origins up to the test's first bin have seen the same past.
        rows = plan.test - plan.first + 1
        assert np.allclose(made[:rows], pairs[1][0].forecasts[name][:rows], equal_nan=True), name


def test_stacking_finds_the_mix():
    rng = np.random.default_rng(0)
    table = rng.normal(size=(2000, 3)) * 5 + 100
    actual = 0.7 * table[:, 0] + 0.3 * table[:, 1] + 0.1 * rng.normal(size=2000)
    weights = stack(table, actual)
    assert weights.sum() == pytest.approx(1)
    assert (weights >= 0).all()
    assert weights == pytest.approx([0.7, 0.3, 0.0], abs=0.06)


@pytest.mark.parametrize(("bins", "share"), [(10, 0.2), (100, 0.0), (100, 1.5)])
def test_too_little_for_a_backtest_is_said_so(bins, share):
    with pytest.raises(UserError):
        schedule(bins, share)
