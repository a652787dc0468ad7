from __future__ import annotations

import numpy as np
import pytest

from gputwin.core.errors import UserError
from gputwin.forecasting.models.neural import Neural, baseline_lstm
from gputwin.forecasting.series import Target
from tests.forecasting.made import daily_wave, series_of

torch = pytest.importorskip("torch")


def error_of(model, series, cut, lead=1):
    model.fit(series.head(cut), (lead,))
    origins = np.arange(cut, len(series) - lead + 1)
    return float(
        np.sqrt(np.mean((model.predict_at(series, origins, (lead,))[:, 0] - series.values[origins + lead - 1]) ** 2))
    )


@pytest.mark.parametrize("kind", ["lstm", "gru", "transformer"])
def test_a_wave_is_learned(kind):
    series = series_of(daily_wave(days=40), bin_seconds=3600.0)
    cut = 800
    naive = float(np.sqrt(np.mean(np.diff(series.values[cut - 1 :], axis=0) ** 2)))
    assert error_of(Neural(kind=kind, units=16, epochs=20), series, cut) < 0.75 * naive


def test_differenced_windows_follow_a_level_out_of_the_training_range_and_min_max_ones_do_not():
    rng = np.random.default_rng(0)
    climb = 1000 + 2.0 * np.arange(900) + rng.normal(size=900)
    series = series_of(climb, target=Target.IN_FORCE)
    assert error_of(Neural(units=16, epochs=15), series, 500, 12) < 30
    assert error_of(baseline_lstm(epochs=15), series, 500, 12) > 100


def test_the_kept_weights_are_those_of_the_best_epoch():
    series = series_of(daily_wave(days=20), bin_seconds=3600.0)
    curve = Neural(units=16, epochs=12, patience=3).fit(series).curve_
    assert curve.kept == int(np.argmin(curve.validation))
    assert len(curve.train) <= curve.kept + 1 + 3
    plain = Neural(units=16, epochs=6, patience=0).fit(series).curve_
    assert len(plain.train) == 6
    assert plain.kept == 5


def test_quantiles_of_the_head_are_ordered_and_about_right():
    rng = np.random.default_rng(0)
    series = series_of(rng.exponential(size=3000), bin_seconds=3600.0)
    model = Neural(units=16, epochs=15, quantile_weight=1.0).fit(series.head(2000))
    origins = np.arange(2000, 3000)
    made = model.quantiles_at(series, origins)[:, 0, 0]
    assert (np.diff(made, axis=1) >= 0).all()
    below = (series.values[origins] <= made).mean(axis=0)
    assert below == pytest.approx([0.1, 0.5, 0.9], abs=0.1)


def test_many_series_share_one_network():
    columns = [(j + 1) * daily_wave(days=12, seed=j) for j in range(10)]
    series = series_of(*columns, bin_seconds=3600.0)
    model = Neural(units=16, epochs=8).fit(series, (1, 3))
    assert not model.together_
    assert model.shape_[0] == 1
    at = np.array([len(series)])
    made = model.predict_at(series, at, (1, 3))
    assert made.shape == (1, 2, 10)
    assert (np.abs(made[0, 0] / np.arange(1, 11) - 5) < 4).all()


def test_training_leaves_the_random_state_of_others_alone():
    torch.manual_seed(5)
    wanted = torch.rand(3)
    torch.manual_seed(5)
    Neural(units=8, epochs=1).fit(series_of(daily_wave(), bin_seconds=3600.0))
    assert torch.equal(torch.rand(3), wanted)


def test_what_it_cannot_do_is_said_in_one_line():
    short = series_of(daily_wave(days=6), bin_seconds=3600.0)
    with pytest.raises(UserError, match="too short for a look-back of 200"):
        Neural(lookback=200).fit(short)
    with pytest.raises(UserError, match="unknown normalisation"):
        Neural(normalise="magic").fit(short)
