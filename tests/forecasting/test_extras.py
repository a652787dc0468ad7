"""Without an extra: one clear line, and everything else works."""

from __future__ import annotations

import builtins

import pytest

from gputwin.core.errors import UserError
from gputwin.forecasting.backtest import backtest
from gputwin.forecasting.models._model import MODELS
from tests.forecasting.made import daily_wave, series_of

PACKAGES = {"stats": "statsforecast", "neural": "torch"}


@pytest.fixture
def without_extras(monkeypatch):
    import importlib

    real, real_import = importlib.import_module, builtins.__import__

    def refuse(name, *rest, **more):
        if name.partition(".")[0] in PACKAGES.values():
            raise ImportError(f"No module named '{name}'")
        return real(name, *rest, **more)

    def refuse_import(name, *rest, **more):
        if name.partition(".")[0] in PACKAGES.values():
            raise ImportError(f"No module named '{name}'")
        return real_import(name, *rest, **more)

    monkeypatch.setattr(importlib, "import_module", refuse)
    monkeypatch.setattr(builtins, "__import__", refuse_import)


@pytest.mark.parametrize("name", [s.name for s in MODELS if s.extra])
def test_a_model_of_a_missing_extra_names_the_extra(without_extras, name):
    spec = MODELS.get(name)
    series = series_of(daily_wave(), bin_seconds=3600.0)
    for attempt in (lambda: backtest(series, (1,), [name]), lambda: spec.make().fit(series)):
        with pytest.raises(UserError, match=rf"pip install 'gputwin\[{spec.extra}\]'") as caught:
            attempt()
        assert "\n" not in str(caught.value)


def test_the_rest_works_and_says_what_was_left_out(without_extras):
    tested = backtest(series_of(daily_wave(), bin_seconds=3600.0), (1,))
    assert {"naive", "mean", "lightgbm"} <= set(tested.forecasts)
    assert set(tested.skipped) == {s.name for s in MODELS if s.extra and s.is_default}
