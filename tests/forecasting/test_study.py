from __future__ import annotations

import numpy as np
import pytest

from gputwin.core.errors import UserError
from gputwin.forecasting.series import Target
from gputwin.forecasting.study import backtest_leads, forecast, forecast_series, span_words
from gputwin.forecasting.tuning import tune
from tests.forecasting.made import daily_wave, series_of, service_trace

MODELS = ("naive", "seasonal-naive", "ses", "lightgbm")


@pytest.fixture(scope="module")
def study():
    series = series_of(daily_wave(days=30), bin_seconds=3600.0)
    return forecast_series(series, horizon=24, models=MODELS)


def test_every_model_stands_beside_naive_mean_and_zero(study):
    assert {"naive", "mean", "zero", "lightgbm", "auto", "ensemble-stack"} <= set(study.scores["model"])
    naive = study.scores.filter(model="naive")
    assert (naive["skill_naive"] == 0).all()
    assert (naive["p_naive"] == 1).all()
    auto = study.scores.filter(model="auto", lead=24)
    assert auto["skill_mean"][0] > 0.5
    assert 0.7 < auto["coverage"][0] < 0.95


def test_the_forecast_follows_the_day(study):
    made = study.forecast.frame.sort("step")
    at = len(study.series) + np.arange(24)
    assert np.abs(made["mean"].to_numpy() - (5 + 3 * np.sin(2 * np.pi * at / 24))).max() < 1.0
    inside = (made["q0.05"] <= made["mean"]) & (made["mean"] <= made["q0.95"])
    assert inside.all()
    assert study.forecast.origin_seconds == len(study.series) * 3600.0


def test_there_is_a_sentence_for_every_series_and_lead(study):
    assert len(study.verdicts) == len(study.tested.leads)
    assert "5 h ahead: auto took" in study.verdicts[1]
    assert "better than the last value (95 %" in study.verdicts[1]
    # Twelve days are too few to leave the obvious a day ahead.
    assert "1 day ahead: auto kept the last value" in study.verdicts[2]


def test_a_random_walk_is_left_at_its_last_value():
    walk = np.cumsum(np.random.default_rng(3).normal(size=600)) + 500
    study = forecast_series(
        series_of(walk, bin_seconds=3600.0, target=Target.METRIC), horizon=1, models=("drift", "mean")
    )
    assert study.verdicts == ("s0, 1 h ahead: auto kept the last value; on the test part nothing beat it",)


def test_calibrated_quantiles_lie_near_the_diagonal(study):
    table = study.calibration.filter(lead=1)
    assert np.abs(table["level"] - table["share"]).max() < 0.12


def test_a_trace_goes_all_the_way():
    study = forecast(service_trace(days=6), "in-force", horizon_seconds=1800, models=("naive", "rollout"))
    assert study.forecast.frame["step"].max() == 6
    better = study.scores.filter(model="rollout", lead=6)
    assert better["skill_naive"][0] > 0.1


def test_a_horizon_longer_than_the_test_part_is_refused():
    with pytest.raises(UserError, match="too long to be tested"):
        forecast_series(series_of(daily_wave(), bin_seconds=3600.0), horizon=100, models=("naive",))
    with pytest.raises(UserError, match="not a whole number of bins"):
        forecast(service_trace(), "in-force", horizon_seconds=1000)
    with pytest.raises(UserError, match="did you mean 'naive'"):
        forecast(service_trace(), "in-force", models=("naiv",))


def test_words():
    assert [span_words(s) for s in (300, 3600, 86_400, 172_800, 90)] == [
        "5 min",
        "1 h",
        "1 day",
        "2 days",
        "1 min 30 s",
    ]
    assert backtest_leads(1) == (1,)
    assert backtest_leads(12) == (1, 3, 12)


def test_tuning_sees_the_history_alone_and_records_all_it_tried():
    values = daily_wave(days=30)
    other = values.copy()
    other[600:] = 0
    found = [
        tune("lightgbm", series_of(v, bin_seconds=3600.0).head(600), (1, 6), trials=3, seed=1) for v in (values, other)
    ]
    assert [t.parameters for t in found[0].trials] == [t.parameters for t in found[1].trials]
    assert [t.score for t in found[0].trials] == [t.score for t in found[1].trials]
    assert found[0].trials[0].parameters == {}
    assert found[0].best.score <= found[0].trials[0].score < 1
    with pytest.raises(UserError, match="nothing to tune"):
        tune("naive", series_of(values), (1,))


@pytest.mark.parametrize("target", [Target.ARRIVALS, Target.METRIC])
@pytest.mark.parametrize(
    ("values", "last", "near"),
    [
        (np.zeros(300), 0.0, 0.0),
        (np.full(300, 7.0), 7.0, 0.0),
        # After one spike the mean has done as well as the last value.
        (np.where(np.arange(400) == 250, 1e9, 0.0), 0.0, 1e7),
        (np.concatenate([np.zeros(200), np.full(200, 5.0)]), 5.0, 0.3),
    ],
)
def test_series_that_hardly_move_go_on_as_they_are(values, last, near, target):
    names = ("ses", "window-mean", "lightgbm-change", "seasonal-naive")
    study = forecast_series(series_of(values, bin_seconds=3600.0, target=target), horizon=2, models=names)
    assert study.forecast.frame["mean"].to_list() == pytest.approx([last, last], abs=near)
    assert np.isfinite(study.scores["rmse"].to_numpy()).all()
    assert all("nan" not in line for line in study.verdicts)


def test_a_trace_of_few_bins_leaves_out_what_needs_more():
    study = forecast_series(series_of(np.random.default_rng(0).uniform(size=40)), horizon=1)
    assert "too short" in study.tested.skipped["lightgbm"]
    with pytest.raises(UserError, match="too few for a backtest"):
        forecast_series(series_of([1.0, 2.0]), horizon=1)


def test_the_seed_reaches_the_models_and_the_same_one_gives_the_same_study():
    series = series_of(daily_wave(days=20), bin_seconds=3600.0)
    made = [
        forecast_series(series, horizon=1, models=("lightgbm",), seed=s).scores.drop("cpu_seconds") for s in (1, 1, 2)
    ]
    assert made[0].equals(made[1])
    errors = [m.filter(model="lightgbm")["rmse"][0] for m in made]
    assert errors[0] == errors[1] != errors[2]
