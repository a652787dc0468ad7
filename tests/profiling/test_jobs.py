"""What is known when: the types let nothing through that comes later."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from gputwin.core.errors import UserError
from gputwin.profiling.jobs import SUBMIT_COLUMNS, Early, History, Submitted, life_use
from gputwin.traces.dataset import Trace
from gputwin.traces.schema import USAGE, conform
from tests.profiling.workloads import history, tasks


@pytest.mark.parametrize("later", ["start_time", "end_time", "duration_seconds", "status", "gpu_model", "attempts"])
def test_what_comes_later_cannot_become_a_submit_time_fact(later: str) -> None:
    known = Submitted.of(tasks(5)).frame
    assert later not in SUBMIT_COLUMNS
    with pytest.raises(TypeError, match=later):
        Submitted(known.with_columns(tasks(5)[later]))


def test_a_job_given_by_hand_must_be_described_by_what_is_known_at_submit() -> None:
    with pytest.raises(UserError, match="duration_seconds"):
        Submitted.of_rows([{"user": "u", "duration_seconds": 5.0}])
    assert Submitted.of_rows([{"user": "u"}]).frame["role"].to_list() == ["main"]


def test_tasks_of_one_job_arrive_together() -> None:
    two = tasks(1).vstack(tasks(1).with_columns(role=pl.lit("ps"), submit_time=pl.lit(None, pl.Float64)))
    assert np.ptp(Submitted.of(two).arrival) == 0


def test_as_of_knows_only_what_had_ended() -> None:
    whole = history(200)
    longest = int(whole.outcomes.duration.argmax())
    moment = float(whole.outcomes.start[longest]) + 60.0
    then = whole.as_of(moment)
    assert np.all(then.outcomes.start < moment)
    assert np.all(then.outcomes.start + then.outcomes.duration <= moment + 1.0)
    running = ~then.outcomes.finished
    assert running.any()
    assert np.all(np.isinf(then.outcomes.end[running]))


def test_jobs_still_running_are_censored_at_the_end_of_the_trace() -> None:
    frame = tasks(50)
    none = pl.lit(None, pl.Float64)
    cut = frame.with_columns(
        pl.when(pl.col("job_id") == "j00003").then(none).otherwise(pl.col(c)).alias(c)
        for c in ("end_time", "duration_seconds")
    ).with_columns(is_running=pl.col("job_id") == "j00003")
    past = History.of_tasks(cut)
    row = past.jobs.frame["job_id"].to_list().index("j00003")
    assert not past.outcomes.finished[row]
    assert past.outcomes.start[row] + past.outcomes.duration[row] == pytest.approx(float(cut["end_time"].max()))


def test_early_use_looks_at_the_first_minutes_only() -> None:
    frame = tasks(2)
    begun = frame["start_time"][0]
    samples = pl.DataFrame(
        {
            "job_id": ["j00000"] * 2,
            "role": ["worker"] * 2,
            "start_time": [begun, begun + 60],
            "end_time": [begun + 60, begun + 4000],
            "gpu_milli": [100.0, 900.0],
        }
    )
    trace = Trace.from_frames({"tasks": frame, "usage": conform(USAGE, samples.lazy()).collect()}, _meta())
    assert Early.of(trace, frame).frame["gpu_milli"].to_list() == [100.0, None]
    assert life_use(trace, Submitted.of(frame))["gpu_milli"].to_list() == [500.0, None]


def _meta():  # type: ignore[no-untyped-def]
    from gputwin.traces.dataset import TraceMeta

    return TraceMeta("test")
