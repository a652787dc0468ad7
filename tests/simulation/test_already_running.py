"""What ran when the record began occupies the cluster from the first instant, and has no wait unless it truly waits."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import gputwin
from gputwin.simulation.cluster import Cluster, NodeGroup
from gputwin.simulation.result import SimulationResult
from gputwin.traces.dataset import Trace, TraceMeta

# The record begins at 10, with the first event, and ends at 100.
STANDING = [
    {"job_id": "to the end", "was_running": True, "is_running": True},
    {"job_id": "until forty", "was_running": True, "end_time": 40.0},
]
ARRIVING = [
    {"job_id": "first", "submit_time": 10.0, "start_time": 10.0, "end_time": 15.0},
    {"job_id": "last", "submit_time": 95.0, "start_time": 95.0, "end_time": 100.0},
]


def run(gpus: int, rows: list[dict[str, Any]], **rules: str) -> SimulationResult:
    frame = pl.DataFrame([{"gpu_count": 1, "gpu_milli": 1000, **row} for row in rows], infer_schema_length=None)
    trace = Trace.from_frames({"tasks": frame}, TraceMeta("by hand"))
    return gputwin.simulate(trace, Cluster("pool", (NodeGroup("gpu", gpus, 1),)), **rules)  # type: ignore[arg-type]


def jobs(result: SimulationResult) -> dict[str, dict[str, Any]]:
    return {row["job_id"]: row for row in result.jobs.to_dicts()}


def test_it_holds_its_place_from_the_first_instant_for_as_long_as_it_was_seen() -> None:
    result = run(3, [*ARRIVING, *STANDING])
    held = {name: (row["start_time"], row["end_time"]) for name, row in jobs(result).items()}
    assert held == {
        "to the end": (10.0, 100.0),
        "until forty": (10.0, 40.0),
        "first": (10.0, 15.0),
        "last": (95.0, 100.0),
    }
    assert result.summary["jobs"] == 4
    assert result.summary["jobs_already_running"] == 2
    # 90 + 30 + 5 + 5 GPU-seconds in the window of 90 s, on three GPUs.
    assert result.summary["allocation"]["gpu"] == pytest.approx(130 / 90 / 3)


@pytest.mark.parametrize("order", ["fifo", "sjf"])
def test_it_goes_before_what_comes_at_the_same_time_and_counts_in_no_mean(order: str) -> None:
    if order == "sjf":
        # What comes a moment later finds no room, however short it is.
        rows = [{**ARRIVING[0], "submit_time": 10.0 + 1e-6, "start_time": 10.0 + 1e-6}, ARRIVING[1]]
        rows += [*STANDING, {"job_id": "gone", "was_running": True, "end_time": 10.0}]
    else:
        rows = [*ARRIVING, *STANDING]
    result = run(2, rows, order=order)
    found = jobs(result)
    assert found["first"]["start_time"] == 40.0
    assert found["to the end"]["wait_seconds"] is None
    assert found["to the end"]["jct_seconds"] is None
    assert result.summary["wait_seconds"]["mean"] == pytest.approx(30 / 2, abs=1e-5)
    assert result.summary["jobs_with_wait"] == 2


def test_where_there_is_no_room_for_it_it_waits_and_that_counts() -> None:
    result = run(1, [*ARRIVING, *STANDING])
    found = jobs(result)
    waited = [row["wait_seconds"] for row in found.values()]
    assert waited.count(None) == 1
    assert result.summary["jobs_with_wait"] == 3
    assert sum(w for w in waited if w is not None) == pytest.approx(sum(result.summary["wait_causes_seconds"].values()))


def test_its_story_says_so() -> None:
    told = gputwin.explain(run(3, [*ARRIVING, *STANDING]), "until forty")
    assert told.was_running
    assert told.story()[-1] == "It ran when the trace began, and held its place from then on."
