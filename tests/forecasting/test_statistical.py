"""Our recursions against the library's own forecasts, and intermittent methods by hand."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from gputwin.forecasting.models._model import MODELS
from gputwin.forecasting.models.intermittent import croston, tsb
from tests.forecasting.made import series_of

models = pytest.importorskip("statsforecast.models")


def walk(kind: str) -> np.ndarray:
    rng = np.random.default_rng(0)
    wander = np.cumsum(rng.normal(size=400)) + 50 + 5 * np.sin(np.arange(400) * 2 * np.pi / 24)
    return wander if kind == "wander" else 3 * np.abs(np.diff(wander, prepend=wander[0]))


@pytest.mark.parametrize("kind", ["wander", "noise"])
@pytest.mark.parametrize(
    ("name", "theirs"),
    [
        ("auto-ets", lambda: models.AutoETS(season_length=1, model="ZZN")),
        ("auto-arima", lambda: models.AutoARIMA(season_length=1, approximation=True)),
        ("theta", lambda: models.Theta(season_length=1)),
    ],
)
def test_the_end_of_the_history_is_forecast_as_the_library_does(name, theirs, kind):
    values = walk(kind)
    series = series_of(values, bin_seconds=3600.0)
    ours = MODELS.get(name).make().fit(series, (1, 2, 24)).predict_at(series, np.array([400]), (1, 2, 24))[0, :, 0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = theirs().forecast(y=values, h=24)["mean"][[0, 1, 23]]
    assert ours == pytest.approx(wanted, rel=1e-3)


def test_mstl_goes_through_the_day_as_the_library_does():
    at = np.arange(480)
    values = 50 + 10 * np.sin(2 * np.pi * at / 24) + 0.1 * np.random.default_rng(0).normal(size=480)
    series = series_of(values, bin_seconds=3600.0)
    leads = tuple(range(1, 25))
    ours = MODELS.get("mstl").make().fit(series, leads).predict_at(series, np.array([480]), leads)[0, :, 0]
    assert ours == pytest.approx(50 + 10 * np.sin(2 * np.pi * (480 + np.arange(24)) / 24), abs=0.7)
    theirs = models.MSTL(season_length=[24, 168]).forecast(y=values, h=24)["mean"]
    assert ours == pytest.approx(theirs, abs=0.5)


def test_croston_by_hand():
    # Demands 4 after 2 bins, then 8 after 3: size 4, 4 + 0.5·4; gap 2, 2 + 0.5·1.
    made = croston(np.array([[0.0], [4.0], [0.0], [0.0], [8.0], [0.0]]), 0.5)[:, 0]
    assert made.tolist() == pytest.approx([0, 0, 2, 2, 2, 6 / 2.5, 6 / 2.5])


def test_croston_and_tsb_as_the_library_has_them():
    rng = np.random.default_rng(0)
    values = np.where(rng.uniform(size=300) < 0.3, rng.exponential(size=300), 0.0)
    wanted = models.CrostonClassic().forecast(y=values, h=1)["mean"][0]
    assert croston(values[:, None], 0.1)[-1, 0] == pytest.approx(wanted, rel=0.01)
    wanted = models.TSB(alpha_d=0.2, alpha_p=0.1).forecast(y=values, h=1)["mean"][0]
    assert tsb(values[:, None], 0.2, 0.1)[-1, 0] == pytest.approx(wanted, rel=0.01)
