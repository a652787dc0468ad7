"""One battery over every registered model."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from gputwin.core.errors import UserError
from gputwin.forecasting.demand import demand
from gputwin.forecasting.features import features
from gputwin.forecasting.models._model import MODELS, interpolated, lead_grid
from gputwin.forecasting.models.rollout import ReplicaTable
from gputwin.forecasting.series import Target
from tests.forecasting.made import daily_wave, series_of, service_trace

QUICK = {"epochs": 2, "units": 8}
NAMES = MODELS.names()


def make(name: str):
    spec = MODELS.get(name)
    return spec.make(**QUICK) if spec.extra == "neural" else spec.make()


def two_waves(target=Target.ARRIVALS):
    return series_of(daily_wave(), 10 * daily_wave(seed=1), bin_seconds=3600.0, target=target)


def suited(name: str):
    if name == "rollout":
        return demand(service_trace(), "in-force", resources=["cpu"])
    return two_waves()


def changed_after(series, at: int):
    """The same past, another future."""
    rng = np.random.default_rng(1)

    def other(array):
        late = array.copy()
        late[at:] = rng.uniform(0, 50, size=late[at:].shape)
        return late

    replicas = series.replicas
    if replicas is not None:
        replicas = dataclasses.replace(
            replicas,
            **{k: other(getattr(replicas, k)) for k in ("alive", "arrived", "departed")},
            young={k: other(v) for k, v in replicas.young.items()},
        )
    covariates = {k: other(v) for k, v in series.covariates.items()}
    return dataclasses.replace(series, values=other(series.values), covariates=covariates, replicas=replicas)


@pytest.mark.parametrize("name", NAMES)
def test_no_model_sees_the_future(name):
    series = suited(name)
    cut = len(series) - 40
    model = make(name).fit(series.head(cut - 20), (1, 3, 12))
    origins = np.arange(cut - 20, cut + 1)
    before = model.predict_at(series, origins, (1, 3, 12))
    after = model.predict_at(changed_after(series, cut), origins, (1, 3, 12))
    assert before.shape == (21, 3, len(series.names))
    assert np.isfinite(before).all()
    assert np.allclose(before, after, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_forecasts_have_steps_and_ordered_quantiles_and_go_on_after_an_update(name):
    series = suited(name)
    model = make(name).fit(series.head(len(series) - 5), (1, 2, 6))
    made = model.update(series).forecast(6, levels=(0.1, 0.5, 0.9))
    frame = made.frame
    assert frame.height == 6 * len(series.names)
    assert frame["step"].to_list()[:6] == [1, 2, 3, 4, 5, 6]
    assert frame["time"][0] == series.start_seconds + len(series) * series.bin_seconds
    assert (frame["q0.1"] <= frame["q0.5"]).all()
    assert (frame["q0.5"] <= frame["q0.9"]).all()
    assert (frame["q0.1"] >= 0).all()


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_gives_the_same_forecast(name):
    series = suited(name)
    first, second = (make(name).fit(series, (1, 4)).predict_at(series, np.array([len(series)]), (1, 4)) for _ in "ab")
    assert np.array_equal(first, second)


@pytest.mark.parametrize("name", [n for n in NAMES if n != "rollout"])
@pytest.mark.parametrize("level", [0.0, 7.0])
def test_a_constant_goes_on(name, level):
    series = series_of(np.full(300, level), bin_seconds=3600.0)
    value = make(name).fit(series, (1, 5)).predict_at(series, np.array([300]), (1, 5))
    wanted = 0.0 if name == "zero" else level
    # SBA takes off half its rate on purpose.
    assert np.allclose(value, wanted, atol=0.5 if name == "sba" else 1e-6)


@pytest.mark.parametrize("name", [n for n in NAMES if n != "rollout"])
@pytest.mark.parametrize("values", [[3.0], [3.0, 5.0], [0.0] * 5, [1.0, np.nan, 2.0]])
def test_very_short_or_broken_series_are_forecast_or_refused_in_one_line(name, values):
    series = series_of(values, bin_seconds=3600.0)
    try:
        frame = make(name).fit(series, (1,)).forecast(2, levels=(0.1, 0.9)).frame
    except UserError as error:
        line = str(error)
        assert "\n" not in line
    else:
        assert np.isfinite(values).all()
        assert np.isfinite(frame["mean"].to_numpy()).all()


@pytest.mark.parametrize("lead", [1, 7, 24, 30])
@pytest.mark.parametrize("relative", [False, True])
def test_no_feature_moves_when_the_future_changes(lead, relative):
    series = dataclasses.replace(two_waves(Target.IN_FORCE), covariates={"arrived": two_waves().values})
    cut = 200
    before = features(series, 0, lead, relative)
    after = features(changed_after(series, cut), 0, lead, relative)
    assert np.array_equal(before.matrix[: cut + 1], after.matrix[: cut + 1], equal_nan=True)
    assert not np.array_equal(before.matrix[cut + 1 :], after.matrix[cut + 1 :], equal_nan=True)


def test_seasonal_features_are_the_target_a_day_earlier():
    values = np.arange(300.0)
    made = features(series_of(values, bin_seconds=3600.0), 0, 6, relative=False)
    column = made.matrix[:, made.names.index("then 24")]
    # At origin 100 the target of lead 6 is bin 105, a day earlier bin 81.
    assert column[100] == 81
    assert made.matrix[100, made.names.index("lag 1")] == 99
    assert made.matrix[100, made.names.index("around 24")] == 81


def test_no_replica_feature_moves_when_the_future_changes():
    series = demand(service_trace(), "in-force", resources=["cpu"])
    cut = 600
    tables = [ReplicaTable(s) for s in (series, changed_after(series, cut))]
    at, group = tables[0].active(np.arange(cut - 100, cut + 1))
    assert len(at) > 50
    same = [table.features(at, group) for table in tables]
    assert np.array_equal(same[0], same[1])


def test_the_roll_out_model_knows_that_surplus_replicas_go():
    series = demand(service_trace(days=8), "in-force", resources=["cpu"])
    cut = int(len(series) * 0.7)
    leads = (6,)
    model = make("rollout").fit(series.head(cut), leads)
    origins = np.arange(cut, len(series) - 6)
    actual = series.values[origins + 5]
    error = np.mean((model.predict_at(series, origins, leads)[:, 0] - actual) ** 2)
    naive = np.mean((series.values[origins - 1] - actual) ** 2)
    assert error < 0.6 * naive


def test_leads_between_known_ones_lie_on_lines():
    values = np.array([[[1.0], [2.0], [10.0]]])
    assert interpolated(values, (1, 2, 6), (1, 2, 4, 6, 9))[0, :, 0].tolist() == [1, 2, 6, 10, 10]
    assert lead_grid(1) == (1,)
    assert lead_grid(288)[0] == 1
    assert lead_grid(288)[-1] == 288
    assert len(lead_grid(288)) < 20


def test_the_number_of_threads_changes_no_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    series, origins = two_waves(), np.arange(200, 240)
    made = []
    for count in (1, 3):
        monkeypatch.setattr("gputwin.forecasting.models.trees.processors", lambda count=count: count)
        model = MODELS.get("lightgbm-change").make().fit(series.head(200), (1, 6))
        made.append((model.state()["boosters_"], model.predict_at(series, origins, (1, 6))))
    assert made[0][0] == made[1][0]
    np.testing.assert_array_equal(made[0][1], made[1][1])
