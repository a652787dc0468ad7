"""Bins without a sample are missing, not zero."""

from __future__ import annotations

import numpy as np
import pytest

from gputwin.core.errors import UserError
from gputwin.forecasting.backtest import backtest
from gputwin.forecasting.demand import demand
from gputwin.forecasting.scores import score
from gputwin.forecasting.study import forecast, forecast_series
from gputwin.traces.locate import open_trace
from tests.forecasting.made import daily_wave, series_of, trace_of


def sampled(rows, **more):
    made = [{"metric": m, "time": t, "value": v, "entity": e} for m, t, v, e in rows]
    return demand(trace_of(made, "series"), "metric", bin_seconds=60, **more)


@pytest.mark.parametrize("metric", ["x_per_s", "gpus", "qps_api"])
def test_a_bin_without_a_sample_holds_the_last_value_and_is_marked(metric):
    series = sampled([(metric, t, v, None) for t, v in ((0.0, 4.0), (10.0, 6.0), (180.0, 0.0), (300.0, 8.0))])
    assert series.values[:, 0].tolist() == [5, 5, 5, 0, 0, 8]
    assert series.missing[:, 0].tolist() == [False, True, True, False, True, False]
    assert series.known().tolist() == [True, False, False, True, False, True]
    assert series.notes[0].startswith("3 of 6 bins have no sample: they are missing, not zero")


def test_of_a_rate_an_entity_without_a_sample_had_no_events():
    rows = [("x_per_s", 60.0 * k, 2.0, "a") for k in range(5)] + [
        ("x_per_s", 0.0, 3.0, "b"),
        ("x_per_s", 240, 3.0, "b"),
    ]
    series = sampled(rows)
    assert series.values[:, 0].tolist() == [5, 2, 2, 2, 5]
    assert series.missing is None
    assert series.notes == ()


def test_of_a_level_an_entity_is_held_for_three_of_its_usual_steps_and_then_gone():
    often = [("gpus", 60.0 * k, 2.0, "a") for k in range(10)]
    rare = [("gpus", t, 3.0, "b") for t in (0.0, 60.0, 120.0, 480.0)]
    series = sampled(often + rare)
    assert series.values[:, 0].tolist() == [5, 5, 5, 5, 5, 2, 2, 2, 5, 5]


def test_samples_rarer_than_the_bins_are_told():
    series = sampled([("gpus", 114.0 * k, 7.0, None) for k in range(50)])
    assert (series.values == 7).all()
    assert "samples come every 1 min 54 s, so choose bins at least that wide" in series.notes[0]


def test_a_quiet_bin_of_a_log_of_events_is_a_true_zero_and_counted():
    rows = [{"request_id": str(i), "submit_time": t} for i, t in enumerate((0.0, 1.0, 59.0, 61.0, 250.0))]
    series = demand(trace_of(rows, "requests"), "requests", bin_seconds=60)
    assert series.missing is None
    assert series.notes[0].startswith("2 of 5 bins have no request and count as zero (the longest run is 2 min 00 s)")


def test_errors_at_missing_bins_are_not_counted():
    values = daily_wave(days=30)
    missing = np.zeros((len(values), 1), dtype=bool)
    missing[650:660] = True
    wrong = values.copy()
    wrong[650:660] = 1e6
    series = series_of(wrong, bin_seconds=3600.0, missing=missing)
    tested = backtest(series, (1,), ["zero"])
    targets = tested.schedule.origins[tested.rows(1, test=True)]
    assert not set(targets) & set(range(650, 660))
    assert len(targets) == len(values) - tested.schedule.test - 10
    table = score(tested)
    assert table["rmse"].max() < 10
    assert np.isfinite(table["pinball"].to_numpy()).all()


def test_where_no_bin_of_the_test_part_has_a_sample_it_is_said():
    missing = np.zeros((200, 1), dtype=bool)
    missing[160:] = True
    with pytest.raises(UserError, match="no bin of the test part has a sample"):
        forecast_series(series_of(np.ones(200), missing=missing), horizon=1, models=("naive",))


def test_missing_bins_are_in_the_record():
    rows = [{"metric": "gpus", "time": 60.0 * k, "value": float(k % 7)} for k in range(300) if not 250 <= k < 260]
    study = forecast(trace_of(rows, "series"), "metric", bin_seconds=60, horizon_seconds=60, models=("ses",))
    assert study.record()["missing_bins"] == 10


def test_the_gap_of_a_node_log_is_missing(real_data):
    trace = open_trace(str(real_data / "philly" / "philly_node_sequence.csv.gz"))
    series = demand(trace, "metric", metric="active_nodes", bin_seconds=600)
    gaps = np.flatnonzero(~series.known())
    assert 55 <= len(gaps) <= 70
    assert (series.values[gaps, 0] == series.values[gaps[0] - 1, 0]).sum() >= 55


def test_a_level_that_falls_to_zero_is_zero():
    series = sampled([("gpus", 60.0 * k, v, "a") for k, v in enumerate((0.1, 0.2, 0.3, 0.0))])
    assert series.values[:, 0].tolist() == [0.1, 0.2, 0.3, 0.0]
