"""The one rule for lives: what was cut off at either end of the record, what is not known, and which time counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputwin.traces.dataset import Trace, TraceMeta
from gputwin.traces.lifetimes import held, observed, with_lives


def tasks(*rows: dict[str, Any]) -> pl.DataFrame:
    named = [{"job_id": f"job-{i}", "gpu_count": 1, "gpu_milli": 1000, **row} for i, row in enumerate(rows)]
    return Trace.from_frames({"tasks": pl.DataFrame(named, infer_schema_length=None)}, TraceMeta("by hand")).tasks


ARRIVES = {"submit_time": 10.0, "start_time": 20.0, "end_time": 50.0}
LAST = {"submit_time": 90.0, "start_time": 90.0, "end_time": 100.0}
CASES = {
    "ran and ended": ({"submit_time": 30.0, "start_time": 40.0, "end_time": 70.0}, 30.0, 40.0, 30.0),
    "start not told": ({"submit_time": 30.0, "duration_seconds": 25.0}, 30.0, 30.0, 25.0),
    "still runs": ({"submit_time": 30.0, "start_time": 40.0, "is_running": True}, 30.0, 40.0, 60.0),
    "runs by its status": ({"submit_time": 30.0, "start_time": 40.0, "status": "running"}, 30.0, 40.0, 60.0),
    "ended, whatever its status": (
        {"submit_time": 30.0, "start_time": 40.0, "end_time": 60.0, "status": "running"},
        *(30.0, 40.0, 20.0),
    ),
    "ran before, ended": ({"was_running": True, "end_time": 60.0}, 10.0, 10.0, 50.0),
    "ran all the time": ({"was_running": True, "is_running": True}, 10.0, 10.0, 90.0),
    "attempts with gaps": (
        {"submit_time": 30.0, "start_time": 40.0, "end_time": 90.0, "duration_seconds": 35.0},
        *(30.0, 40.0, 35.0),
    ),
    "no times at all": ({}, None, None, None),
    "end alone": ({"end_time": 70.0}, None, None, None),
    "end lost": ({"submit_time": 30.0, "start_time": 40.0}, 30.0, 40.0, None),
    "runs since nobody knows when": ({"is_running": True}, None, None, None),
}


@pytest.mark.parametrize(("row", "asked", "began", "seconds"), CASES.values(), ids=CASES)
def test_when_a_task_asked_for_and_held_its_request(
    row: dict[str, Any], asked: float | None, began: float | None, seconds: float | None
) -> None:
    table = tasks(ARRIVES, LAST, row)
    life = with_lives(table, observed(table)).row(2, named=True)
    assert (life["asked_from"], life["held_from"], life["held_seconds"]) == (asked, began, seconds)
    assert life["is_unknown"] is (seconds is None)


def test_one_that_waits_to_the_end_holds_nothing_but_is_no_riddle() -> None:
    table = tasks(ARRIVES, LAST, {"submit_time": 30.0, "status": "waiting"})
    life = with_lives(table, observed(table)).row(2, named=True)
    assert (life["held_seconds"], life["is_unknown"]) == (None, False)


def test_the_window_is_that_of_arrivals_and_begins_with_the_record_where_tasks_ran_then() -> None:
    window = observed(tasks(ARRIVES, LAST))
    assert (window.first, window.last, window.begin, window.until) == (10.0, 100.0, 10.0, 90.0)
    window = observed(tasks(ARRIVES, LAST, {"was_running": True, "end_time": 4.0}))
    assert (window.first, window.begin, window.until) == (4.0, 4.0, 90.0)


def test_the_most_gpus_held_at_one_time_count_none_that_ended_as_another_began() -> None:
    two_at_once = {"submit_time": 50.0, "start_time": 50.0, "end_time": 60.0, "gpu_count": 2, "instances": 2}
    assert held(tasks(ARRIVES, two_at_once, LAST)).gpus_most == 4.0
    assert held(tasks(ARRIVES, {**two_at_once, "start_time": 49.0}, LAST)).gpus_most == 5.0


def test_gpu_hours_are_of_the_record_and_gpus_of_the_window() -> None:
    found = held(tasks(ARRIVES, LAST, {"was_running": True, "is_running": True}))
    assert found.gpu_hours == pytest.approx((30 + 10 + 90) / 3600)
    assert found.gpus_mean == pytest.approx((30 + 0 + 80) / 80)


def strays(before: int, gap: float, count: int = 1_000) -> pl.DataFrame:
    early = [{"submit_time": float(i), "duration_seconds": 5.0} for i in range(before)]
    return tasks(*early, *({"submit_time": gap + 100.0 * i, "duration_seconds": 5.0} for i in range(count)))


def test_a_stretch_with_hardly_an_arrival_is_no_part_of_the_window_and_that_is_said() -> None:
    window = observed(strays(before=2, gap=50_000.0))
    assert (window.begin, window.strays_before) == (50_000.0, 2)
    (note,) = window.notes()
    assert note == "averages over time are over 1 d 3 h: 2 stray arrivals, up to 13 h 53 min before that, left out"


@pytest.mark.parametrize(("before", "gap"), [(2, 5_000.0), (30, 50_000.0)], ids=["short", "many"])
def test_a_short_pause_or_a_real_batch_before_it_stays(before: int, gap: float) -> None:
    window = observed(strays(before, gap))
    assert (window.begin, window.notes()) == (0.0, ())


@given(st.integers(0, 2**32 - 1), st.integers(2, 400))
def test_evenly_random_arrivals_have_no_strays(seed: int, count: int) -> None:
    times = np.random.default_rng(seed).uniform(0, 1e6, count)
    window = observed(tasks(*({"submit_time": float(t), "duration_seconds": 1.0} for t in times)))
    assert (window.begin, window.until) == (times.min(), times.max())
