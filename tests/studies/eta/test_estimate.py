"""When pending jobs start, on traces whose answer is known."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from gputwin.core.errors import UserError
from gputwin.core.rng import stream
from gputwin.profiling.alignment import Recording
from gputwin.profiling.jobs import History
from gputwin.profiling.model import fit
from gputwin.profiling.store import Saved, telling_columns
from gputwin.studies.eta.ahead import Rules
from gputwin.studies.eta.durations import learned
from gputwin.studies.eta.estimate import estimate, with_simulated_waits
from gputwin.studies.eta.points import points_of
from gputwin.studies.eta.record import Record
from tests.studies.eta.made import job, past, rules, trace_of

NOW = 1040.0


def test_jobs_that_all_run_100_s_start_when_the_one_before_ends():
    rows = [*past(10, 100.0), job("runs", 1000.0, 1000.0), job("first", 1010.0), job("second", NOW)]
    found = estimate(trace_of(rows), *rules(), calibrate=0, arrivals=False)
    frame = found.frame
    assert (found.at, found.running, frame["job_id"].to_list()) == (NOW, 1, ["first", "second"])
    # The one that runs has run 40 of its 100 s; one second passes before the queue is looked at.
    for end in ("low", "median", "high"):
        assert frame[f"{end}_seconds"].to_list() == pytest.approx([60.0, 160.0], abs=1.5)
    assert frame["waited_seconds"].to_list() == [30.0, 0.0]
    assert found.calibration_points == 0


def test_what_a_job_has_outlived_is_out():
    rows = [*past(20, 10.0), *(job(f"long{i}", 300.0 + 1000 * i, 300.0 + 1000 * i, 1000.0) for i in range(20))]
    rows.append(job("runs", 30_000.0, 30_000.0))
    record = Record.of(trace_of(rows), rules()[1])
    row = np.array([record.size - 1])
    durations = learned(record, 30_500.0)
    fresh = durations.draw(record, row, np.array([30_000.0]), 400, stream(0, "fresh"))
    later = durations.draw(record, row, np.array([30_500.0]), 400, stream(0, "later"))
    assert 0.1 < (fresh < 20.0).mean() < 0.9
    assert later.min() > 400.0
    assert later.max() < 600.0


def test_the_reason_names_what_is_short_and_who_holds_it():
    rows = [*past(10, 100.0), job("big", 1000.0, 1000.0, instances=3), job("small", 1001.0, 1001.0), job("waits", NOW)]
    (row,) = estimate(trace_of(rows), *rules(4), calibrate=0, arrivals=False).frame.to_dicts()
    assert row["cause"] == "gpu_shortage"
    assert [h["job_id"] for h in row["holders"]] == ["big", "small"]
    assert row["holders"][0]["gpus"] == 3.0
    assert "big" in row["why"]


def test_a_job_that_has_room_starts_at_once_and_one_that_never_fits_never():
    rows = [*past(10, 100.0), job("fits", NOW), job("huge", NOW, instances=9)]
    frame = estimate(trace_of(rows), *rules(2), calibrate=0, arrivals=False).frame
    assert frame["median_seconds"].to_list() == [0.0, None]
    assert frame["cause"].to_list() == ["none", "never_fits"]


def test_a_job_overtaken_by_one_that_asks_for_no_less_is_held():
    rows = [
        *past(10, 100.0),
        job("held", 1000.0),
        job("overtook", 1010.0, 1010.0),
        job("waits", NOW),
        # One that asks for more says nothing of it, nor does one that asks for less.
        job("larger", 1005.0, instances=2),
    ]
    frame = estimate(trace_of(rows), *rules(2), calibrate=0, arrivals=False).frame
    by_name = {r["job_id"]: r for r in frame.to_dicts()}
    assert {n: r["state"] for n, r in by_name.items()} == {
        "held": "held",
        "larger": "just submitted",
        "waits": "just submitted",
    }
    assert by_name["held"]["median_seconds"] is None
    assert "1 jobs" not in by_name["held"]["why"]


def test_nothing_after_the_moment_is_looked_at():
    def made(later: float) -> pl.DataFrame:
        random = np.random.default_rng(1)
        submit = np.cumsum(random.exponential(60.0, 400))
        start, free = [], 0.0
        ran = random.exponential(55.0, 400) + 1.0
        for s, r in zip(submit, ran, strict=True):
            start.append(max(s, free))
            free = start[-1] + r
        cut = float(submit[300])
        rows = []
        for i, (s, b, r) in enumerate(zip(submit, start, ran, strict=True)):
            begin = b if b <= cut else b + later
            rows.append(job(f"j{i}", s, begin, r if begin + r <= cut else r + later))
        return estimate(trace_of(rows), *rules(), at=cut + 0.5, calibrate=60).frame

    frame = made(0.0)
    assert frame.height > 2
    assert_frame_equal(frame, made(5000.0))


def test_what_eta_does_not_simulate_is_refused():
    with pytest.raises(UserError, match="preempts"):
        estimate(trace_of([*past(3, 10.0), job("w", 40.0)]), *rules(order="srtf", backfill="greedy"))
    with pytest.raises(UserError, match="faults"):
        estimate(trace_of([*past(3, 10.0), job("w", 40.0)]), *rules(faults={"mtbf_seconds": 1000.0}))


def test_without_any_end_nobody_knows_durations():
    with pytest.raises(UserError, match="--profile"):
        estimate(trace_of([job("runs", 0.0, 0.0), job("waits", 5.0)]), *rules())


def test_simulated_waits_are_those_of_the_run():
    rows = [job("a", 0.0, 0.0, 100.0), job("b", 10.0, 10.0, 100.0), job("c", 20.0, 20.0, 100.0)]
    tasks = with_simulated_waits(trace_of(rows), *rules()).tasks
    assert tasks["start_time"].to_list() == [0.0, 100.0, 200.0]
    assert tasks["end_time"].to_list() == [100.0, 200.0, 300.0]


def test_what_is_simulated_for_early_moments_does_not_depend_on_later_outcomes():
    scenario, cluster = rules()

    def simulated(later: float) -> np.ndarray:
        random = np.random.default_rng(3)
        submit = np.cumsum(random.exponential(60.0, 300))
        cut = float(submit[200])
        rows, free = [], 0.0
        for i, s in enumerate(submit):
            begin, ran = max(s, free), random.exponential(55.0) + 1.0
            free = begin + ran
            begin = begin if begin <= cut else begin + later
            rows.append(job(f"j{i}", s, begin, ran if begin + ran <= cut else ran + later))
        record = Record.of(trace_of(rows), cluster)
        moments = [record.moment(float(t)) for t in submit[100:200:10]]
        return points_of(record, moments, Rules(scenario.scheduler, cluster, 20, 3600.0, False)).simulated

    np.testing.assert_array_equal(simulated(0.0), simulated(4000.0))


def test_a_snapshot_without_history_goes_by_a_saved_model():
    history = trace_of(past(20, 100.0))
    learned_from = History.of(history)
    model = fit("online", learned_from)
    recording = Recording.of(history.meta, learned_from)
    saved = Saved("online", model, None, recording, telling_columns(learned_from.jobs), model, None)
    now = trace_of([job("runs", 0.0, 0.0), job("first", 10.0), job("second", 40.0)])
    found = estimate(now, *rules(), profile=saved)
    assert found.frame["median_seconds"].to_list() == pytest.approx([60.0, 160.0], abs=1.5)
    assert found.calibration_points == 0
    assert found.notes
