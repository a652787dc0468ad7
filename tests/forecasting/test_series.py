from __future__ import annotations

import numpy as np
import pytest

from gputwin.core.errors import UserError
from gputwin.forecasting.calendar import calendar
from gputwin.forecasting.demand import demand
from tests.forecasting.made import series_of, service_trace, task, trace_of


def test_arrivals_fall_into_the_bin_they_happen_in():
    trace = trace_of(
        [task("a", 0, 100, 2), task("b", 299.9, None, 3), task("c", 300, None, 5), task("d", 901, None, 7)]
    )
    series = demand(trace, "arrivals", bin_seconds=300)
    assert series.names == ("cpu",)
    assert series.values[:, 0].tolist() == [5, 5, 0, 7]


def test_the_level_of_a_bin_is_taken_at_its_end():
    trace = trace_of([task("a", 10, 310, 2), task("b", 300, 599, 3), task("c", 600, None, 5)])
    series = demand(trace, "in-force", bin_seconds=300)
    # At 300 only a is there (b arrives at 300, in the next bin); at 600 nobody; at 900 c.
    assert series.values[:, 0].tolist() == [2, 0, 5]


def test_tasks_older_than_the_trace_are_in_force_from_the_start_and_arrive_in_no_bin():
    trace = trace_of(
        [task("old", None, 400, 2), task("older", None, None, 3), task("new", 650, None, 5), task("first", 10, 20)]
    )
    force, arrivals = demand(trace, "in-force"), demand(trace, "arrivals")
    assert force.values[:, 0].tolist() == [5, 3, 8]
    assert arrivals.values.sum() == 5 + 1
    assert "2 tasks were there before the trace began" in force.notes


def test_a_task_of_unknown_end_is_left_out_and_counted():
    trace = trace_of([task("a", 0, 700, 2), task("lost", 10, None, 9, running=False)])
    series = demand(trace, "in-force")
    assert series.values.max() == 2
    assert any("1 tasks have neither an end" in note for note in series.notes)


def test_a_log_of_finished_jobs_that_fades_out_at_its_end_says_so():
    ending = [task(f"{k}", 300 * k, 300 * k + 15_000, 1) for k in range(300)]
    # Of the last hours only jobs that ended soon are in the log.
    short = [task(f"s{k}", 90_000 + 300 * k, 90_000 + 300 * k + 200, 1) for k in range(100)]
    fading = demand(trace_of([*ending, *short]), "in-force", bin_seconds=300)
    (note,) = [note for note in fading.notes if "forecast too low" in note]
    assert "its last bins hold 0 cores (cpu) against " in note
    steady = demand(trace_of(ending), "in-force", bin_seconds=300)
    assert [note for note in steady.notes if "too low" in note] == []


def test_levels_move_by_what_comes_and_goes():
    series = demand(service_trace(), "in-force")
    moved = np.diff(series.values, axis=0)
    assert np.array_equal(moved, (series.covariates["arrived"] - series.covariates["departed"])[1:])


def test_replica_counts_times_their_requests_are_the_demand():
    series = demand(service_trace(), "in-force")
    assert np.allclose(series.replicas.alive @ series.replicas.requests, series.values)
    for counts in series.replicas.young.values():
        assert (counts <= series.replicas.alive).all()


@pytest.mark.parametrize("target", ["arrivals", "in-force"])
def test_nothing_that_happens_after_an_origin_changes_what_was_known_at_it(target):
    """The trap: a level taken at a bin's start beside arrivals summed over it knows the future."""
    rows = service_trace().tasks.to_dicts()
    cut = 172_800.0
    past = []
    for row in rows:
        if (row["submit_time"] or 0) >= cut:
            continue
        ended = row["end_time"] is not None and row["end_time"] < cut
        past.append(row if ended else {**row, "end_time": None, "is_running": True})
    whole, known = demand(trace_of(rows), target), demand(trace_of(past), target)
    bins = min(int(cut // 300), len(known))
    assert bins > 500
    assert np.array_equal(whole.values[:bins], known.values[:bins])
    for name, covariate in known.covariates.items():
        assert np.array_equal(whole.covariates[name][:bins], covariate[:bins])


def test_series_are_told_apart_by_application_and_role():
    trace = trace_of([task("a", 0, None, 2, application="x"), task("b", 0, None, 3, application="y", role="HN")])
    assert demand(trace, by="application").names == ("cpu/x", "cpu/y")
    assert demand(trace, by="role").values.tolist() == [[3, 2]]
    total = demand(trace).values.sum()
    assert demand(trace, by="application").values.sum() == total


def test_requests_per_second_are_counts_over_the_width():
    rows = [{"request_id": str(i), "submit_time": t} for i, t in enumerate((0.0, 1.0, 59.0, 61.0, 250.0))]
    series = demand(trace_of(rows, "requests"), "requests", bin_seconds=60)
    assert np.allclose(series.values[:, 0] * 60, [3, 1, 0, 0, 1])


def test_entities_are_summed_unless_the_whole_stands_beside_its_parts():
    parts = [{"time": 0.0, "metric": "m", "entity": e, "value": v} for e, v in (("a", 1.0), ("b", 2.0))]
    assert demand(trace_of(parts, "series"), "metric").values.tolist() == [[3.0]]
    whole = [*parts, {"time": 0.0, "metric": "m", "entity": None, "value": 3.5}]
    assert demand(trace_of(whole, "series"), "metric").values.tolist() == [[3.5]]


def test_irregular_samples_average_within_the_bin():
    rows = [{"time": t, "metric": "m", "value": v} for t, v in ((0.0, 1.0), (0.1, 2.0), (59.0, 6.0), (61.0, 4.0))]
    assert demand(trace_of(rows, "series"), "metric", bin_seconds=60).values[:, 0].tolist() == [3, 4]


def test_the_local_clock_goes_on_through_summer_time():
    # 2024-03-31 01:00 UTC: clocks in Berlin jump from 02:00 to 03:00.
    series = series_of(np.ones(6), bin_seconds=3600.0, origin_unix_seconds=1_711_843_200.0, zone="Europe/Berlin")
    clock = calendar(series, 0, 6)
    assert (clock.day_share * 24).tolist() == [1, 3, 4, 5, 6, 7]
    assert clock.weekday.tolist() == [6] * 6
    # A day later nine in the morning is nine in the morning.
    assert calendar(series, 30, 1).day_share[0] * 24 == pytest.approx(8)


def test_a_trace_without_dates_has_days_of_its_own():
    clock = calendar(series_of(np.ones(3), bin_seconds=43_200.0), 0, 15)
    assert clock.day_share.tolist()[:3] == [0, 0.5, 0]
    assert clock.weekday.tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 0]


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ({"target": "arrival"}, "unknown target"),
        ({"bin_seconds": 0}, "must have a length"),
        ({"bin_seconds": float("nan")}, "must have a length"),
        ({"bin_seconds": 1e-6}, "choose wider ones"),
        ({"resources": ["tpu"]}, "unknown resource"),
        ({"by": "colour"}, "cannot tell series apart"),
        ({"target": "requests"}, "no requests"),
        ({"target": "metric", "metric": "x"}, "no metric"),
    ],
)
def test_mistakes_are_told_in_one_line(arguments, what):
    trace = trace_of([task("a", 0, 7_000)])
    with pytest.raises(UserError, match=what) as caught:
        demand(trace, **arguments)
    assert "\n" not in str(caught.value)


def test_a_trace_without_times_is_told_so():
    with pytest.raises(UserError, match="nothing to forecast"):
        demand(trace_of([task("a", None, None)]))


def test_demand_for_rdma_is_in_whole_network_cards():
    trace = trace_of([task("a", 0, 100, rdma_percent=25, instances=6)])
    series = demand(trace, "arrivals", resources=["rdma"])
    assert series.units == ("RNICs",)
    assert series.values.sum() == 1.5


def test_a_last_bin_that_the_record_cuts_off_is_left_out_of_rates():
    """One request a second for ten and a half minutes: the last half minute is no drop of demand."""
    rows = [{"request_id": str(k), "submit_time": float(k)} for k in range(631)]
    series = demand(trace_of(rows, "requests"), "requests", bin_seconds=60)
    assert series.values[:, 0].tolist() == [1.0] * 10
    assert any("30 s of 1 min of the last bin" in note for note in series.notes)
