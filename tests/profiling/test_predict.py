"""A model applied to a later trace: on one clock with its history, told of ends as they come, and of none too early."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from gputwin.core.units import DAY, WEEK
from gputwin.profiling.alignment import Recording, align
from gputwin.profiling.jobs import History
from gputwin.profiling.model import fit
from gputwin.profiling.predict import BASELINE, HERE, explain_job, predict_trace
from gputwin.profiling.store import Saved, telling_columns
from gputwin.traces.dataset import Trace, TraceMeta
from gputwin.traces.reader import Clock
from gputwin.traces.slicing import before, cut_time, since
from tests.profiling.workloads import tasks

ORIGIN = 1.6e9
TIMES = ("submit_time", "start_time", "end_time")
LEARNING = ("online", "forest", "boosted", "stack", "last-two")


def trace_of(frame: pl.DataFrame, **meta: object) -> Trace:
    return Trace.from_frames({"tasks": frame}, replace(TraceMeta("test"), **meta))  # type: ignore[arg-type]


def parts(jobs: int = 600, **meta: object) -> tuple[Trace, Trace]:
    whole = trace_of(tasks(jobs), **meta)
    cut = cut_time(whole, first="60%")
    return before(whole, cut), since(whole, cut)


def saved(name: str, trace: Trace) -> Saved:
    past = History.of(trace)
    model, baseline = fit(name, past), fit("user-median", past)
    return Saved(name, model, None, Recording.of(trace.meta, past), telling_columns(past.jobs), baseline, None)


def moved(trace: Trace, seconds: float, **meta: object) -> Trace:
    """Return the trace with its zero so much later, as a file read on its own has it."""
    frame = trace.tasks.with_columns(pl.col(TIMES) - seconds)
    return Trace.from_frames({"tasks": frame}, replace(trace.meta, **meta))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", LEARNING)
def test_a_files_own_zero_changes_nothing(name: str) -> None:
    """A later file counts from its own first job; the wall clock says when that was."""
    earlier, later = parts(clock=Clock.ABSOLUTE, origin_unix_seconds=ORIGIN)
    shift = float(round(later.tasks["submit_time"].min()))  # type: ignore[arg-type]
    own = moved(later, shift, origin_unix_seconds=ORIGIN + shift)
    model = saved(name, earlier)
    as_cut, as_file = predict_trace(model, later), predict_trace(model, own)
    assert as_file.notes == ()
    assert as_file.frame["predicted_seconds"].n_unique() > 10
    assert as_file.frame["predicted_seconds"].to_list() == pytest.approx(as_cut.frame["predicted_seconds"].to_list())


@pytest.mark.parametrize("name", LEARNING)
def test_predictions_are_those_of_a_model_that_is_told_of_ends(name: str) -> None:
    """What the profile's test does: fit to what was known, observe the rest, forecast."""
    earlier, later = parts(clock=Clock.ABSOLUTE, origin_unix_seconds=ORIGIN)
    rest = History.of(later)
    told = fit(name, History.of(earlier)).observing(rest).predict(rest.jobs)
    assert predict_trace(saved(name, earlier), later).frame["predicted_seconds"].to_list() == told.tolist()


@pytest.mark.parametrize("name", LEARNING)
def test_what_ends_after_a_submission_changes_no_prediction(name: str) -> None:
    earlier, later = parts()
    model = saved(name, earlier)
    told = predict_trace(model, later).frame
    frame = later.tasks
    moment = float(frame["submit_time"][frame.height // 2])
    after = pl.col("end_time") >= moment
    lied = frame.with_columns(
        pl.when(after).then(pl.col("end_time") * 3 + 9e5).otherwise("end_time").alias("end_time"),
        pl.when(after)
        .then(pl.col("duration_seconds") * 40 + 7e4)
        .otherwise("duration_seconds")
        .alias("duration_seconds"),
    )
    lied_to = predict_trace(model, trace_of(lied)).frame
    columns = ["predicted_seconds", "low_seconds", "high_seconds", "mean_seconds"]
    by_then = (frame["submit_time"] <= moment).to_numpy()
    assert told.filter(by_then).select(columns).equals(lied_to.filter(by_then).select(columns))
    assert not told.filter(~by_then).select(columns).equals(lied_to.filter(~by_then).select(columns))


def test_errors_stand_beside_a_baseline_and_leave_out_what_was_learned() -> None:
    whole = trace_of(tasks(600), clock=Clock.ABSOLUTE, origin_unix_seconds=ORIGIN)
    cut = cut_time(whole, first="60%")
    model = saved("online", before(whole, cut))
    later, everything = predict_trace(model, since(whole, cut)), predict_trace(model, whole)
    actual, predicted = (later.frame[c].to_numpy() for c in ("actual_seconds", "predicted_seconds"))
    assert later.scores[HERE].jobs == 240
    assert later.scores[HERE].mae_seconds == pytest.approx(np.abs(actual - predicted).mean())
    assert later.scores[HERE].mae_seconds < later.scores[BASELINE].mae_seconds
    assert everything.scores[HERE].jobs in (240, 241)
    assert "came before the last one the model learned from" in everything.notes[0]


def test_a_trace_the_model_learned_from_has_no_errors_to_show() -> None:
    whole = trace_of(tasks(100))
    found = predict_trace(saved("online", whole), whole)
    assert found.scores == {}
    assert "learned from this very trace" in found.notes[0]


def test_jobs_that_have_not_ended_are_predicted_without_errors() -> None:
    earlier, later = parts()
    new = later.tasks.with_columns(pl.lit(None, pl.Float64).alias(c) for c in (*TIMES[1:], "duration_seconds"))
    found = predict_trace(saved("online", earlier), trace_of(new))
    assert found.scores == {}
    assert found.frame["predicted_seconds"].is_finite().all()
    assert found.frame["actual_seconds"].null_count() == new.height


def test_without_a_wall_clock_the_assumption_is_said() -> None:
    earlier, later = parts()
    recorded = Recording.of(earlier.meta, History.of(earlier))
    after = align(recorded, later)
    assert after.shift_seconds == 0.0
    assert "count from the same instant" in (after.assumption or "")
    own = moved(later, float(later.tasks["submit_time"].min()))  # type: ignore[arg-type]
    begun = align(recorded, own)
    assert "when the model's had ended" in (begun.assumption or "")
    assert begun.apply(own.tasks)["submit_time"].min() == pytest.approx(recorded.last_end)


def test_a_clock_of_weekdays_keeps_them() -> None:
    meta = {"clock": Clock.WEEKDAY, "origin_unix_seconds": 0.0}
    earlier, other = trace_of(tasks(50), **meta), trace_of(tasks(50, seed=5), **meta)
    found = align(Recording.of(earlier.meta, History.of(earlier)), other)
    assert found.shift_seconds > 30 * DAY
    assert found.shift_seconds % WEEK == 0.0
    assert "weekdays" in (found.assumption or "")


def test_reasons_know_what_ended_meanwhile() -> None:
    earlier, later = parts()
    model = saved("online", earlier)
    reasons = explain_job(model, later, later.tasks["job_id"][-1])
    before_ends = model.model.explain(History.of(later).jobs)
    last = before_ends.filter(pl.col("row") == later.tasks.height - 1)
    assert reasons["value"].sum() >= last["value"].sum()
    assert reasons.filter(pl.col("reason") == "user")["value"][0] > 1
