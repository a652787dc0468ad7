"""A trace cut at a point in time: nothing of the earlier part knows what came later, and the clock stays."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from gputwin.core.errors import UserError
from gputwin.traces.dataset import Trace, TraceMeta
from gputwin.traces.reader import Clock
from gputwin.traces.schema import INSTANCES, TASKS, conform
from gputwin.traces.slicing import before, cut_time, running_at, since

# (submit, start, end): ended before the cut at 100, running over it, waiting over it, submitted at it, later.
LIVES = [(0.0, 10.0, 50.0), (20.0, 60.0, 200.0), (90.0, 150.0, 400.0), (100.0, 120.0, 130.0), (300.0, 300.0, 310.0)]


@pytest.fixture
def trace() -> Trace:
    lives = pl.DataFrame(
        {
            "job_id": [f"j{k}" for k in range(5)],
            "status": ["completed"] * 5,
            **{n: [life[k] for life in LIVES] for k, n in enumerate(("submit_time", "start_time", "end_time"))},
        }
    )
    instances = lives.with_columns(instance_id=pl.col("job_id") + "-0")
    tasks = lives.with_columns(duration_seconds=pl.col("end_time") - pl.col("start_time"))
    frames = {
        "tasks": conform(TASKS, tasks.lazy()).collect(),
        "instances": conform(INSTANCES, instances.lazy()).collect(),
    }
    return Trace.from_frames(frames, TraceMeta("test", clock=Clock.ABSOLUTE, origin_unix_seconds=1e9))


def test_the_earlier_part_is_what_was_known_at_the_cut(trace: Trace) -> None:
    part = before(trace, 100.0)
    for frame in (part.tasks, part.instances):
        assert frame["job_id"].to_list() == ["j0", "j1", "j2"]
        assert frame["start_time"].to_list() == [10.0, 60.0, None]
        assert frame["end_time"].to_list() == [50.0, None, None]
        assert frame["is_running"].to_list() == [False, True, False]
        assert frame["status"].to_list() == ["completed", "running", "waiting"]
    assert part.tasks["duration_seconds"].to_list() == [40.0, None, None]
    assert running_at(trace, 100.0) == 2


def test_the_later_part_is_the_rest_as_it_ended(trace: Trace) -> None:
    part = since(trace, 100.0)
    assert part.tasks.equals(trace.tasks.tail(2))
    assert part.instances.equals(trace.instances.tail(2))


def test_both_parts_keep_the_clock(trace: Trace, tmp_path: Path) -> None:
    for cut in (before, since):
        part = cut(trace, 100.0).save(tmp_path / cut.__name__)
        assert (part.meta.clock, part.meta.origin_unix_seconds) == (Clock.ABSOLUTE, 1e9)


@pytest.mark.parametrize(
    ("part", "cut"),
    [({"first": "60%"}, 100.0), ({"last": "40%"}, 100.0), ({"first": "95s"}, 95.0), ({"last": "200s"}, 100.0)],
)
def test_a_part_is_a_share_of_the_jobs_or_a_time(trace: Trace, part: dict[str, str], cut: float) -> None:
    assert cut_time(trace, **part) == cut


@pytest.mark.parametrize(
    "part", [{"first": "0%"}, {"first": "100%"}, {"last": "x%"}, {}, {"first": "1d", "last": "1d"}]
)
def test_what_is_no_part_is_a_mistake_of_the_user(trace: Trace, part: dict[str, str]) -> None:
    with pytest.raises(UserError):
        cut_time(trace, **part)


def test_tasks_of_one_job_stay_together() -> None:
    rows = {"job_id": ["a", "a", "b"], "role": ["ps", "worker", "main"], "submit_time": [0.0, 150.0, 100.0]}
    trace = Trace.from_frames({"tasks": conform(TASKS, pl.LazyFrame(rows)).collect()}, TraceMeta("test"))
    assert before(trace, 100.0).tasks["job_id"].to_list() == ["a", "a"]
    assert since(trace, 100.0).tasks["job_id"].to_list() == ["b"]
