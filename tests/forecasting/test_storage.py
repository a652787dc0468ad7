from __future__ import annotations

import numpy as np
import pytest

from gputwin.core.errors import InputError, UserError
from gputwin.forecasting.frame import Forecast
from gputwin.forecasting.models._model import MODELS
from gputwin.forecasting.storage import open_model, save_model
from tests.forecasting.made import daily_wave, series_of
from tests.forecasting.test_models import make, suited


@pytest.mark.parametrize("name", MODELS.names())
def test_a_saved_model_forecasts_the_same(name, tmp_path):
    series = suited(name)
    model = make(name).fit(series, (1, 6))
    save_model(model, name, tmp_path / "m")
    again = open_model(tmp_path / "m", series)
    at = np.arange(len(series) - 10, len(series) + 1)
    assert np.array_equal(model.predict_at(series, at, (1, 3, 6)), again.predict_at(series, at, (1, 3, 6)))


def test_a_damaged_or_foreign_model_is_told_in_one_line(tmp_path):
    series = series_of(daily_wave(), bin_seconds=3600.0)
    save_model(make("ses").fit(series), "ses", tmp_path / "m")
    with pytest.raises(InputError, match="fitted on s0, not on s0, s1"):
        open_model(tmp_path / "m", series_of(daily_wave(), daily_wave(), bin_seconds=3600.0))
    (tmp_path / "m" / "model.json").write_text("{")
    with pytest.raises(InputError, match="damaged"):
        open_model(tmp_path / "m", series)
    with pytest.raises(InputError, match="not a saved model"):
        open_model(tmp_path / "none", series)


def test_a_saved_forecast_is_the_same_and_gives_quantiles_between_levels(tmp_path):
    series = series_of(daily_wave(), bin_seconds=3600.0)
    made = make("seasonal-naive").fit(series).forecast(24, levels=(0.1, 0.5, 0.9))
    made.save(tmp_path / "f")
    again = Forecast.open(tmp_path / "f")
    assert again.frame.equals(made.frame)
    assert again.levels == (0.1, 0.5, 0.9)
    middle = (made.frame["q0.5"] + made.frame["q0.9"]) / 2
    assert np.allclose(made.quantile(0.7)["value"], middle)
    assert made.quantile(0.9)["value"].equals(made.frame["q0.9"].alias("value"))
    with pytest.raises(UserError, match=r"no quantile 0\.99"):
        made.quantile(0.99)
    with pytest.raises(InputError):
        Forecast.open(tmp_path)
