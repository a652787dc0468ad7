"""What `explain` says of a job that had to yield: who took its place, and by which rule."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import gputwin
from gputwin.simulation.cluster import Cluster, NodeGroup
from gputwin.traces.dataset import Trace, TraceMeta


def trace_of(rows: list[tuple[str, float, float, int]]) -> Trace:
    """Return a trace of jobs j0, j1, …, a GPU each; rows are (tenant, submit, duration, priority)."""
    names = ("tenant", "submit_time", "duration_seconds", "priority")
    tasks = [
        {"job_id": f"j{k}", "gpu_count": 1, "gpu_milli": 1000, **dict(zip(names, row, strict=True))}
        for k, row in enumerate(rows)
    ]
    return Trace.from_frames({"tasks": pl.DataFrame(tasks)}, TraceMeta("by hand"))


def story(job: str, rows: list[tuple[str, float, float, int]], gpus: int = 1, **rules: Any) -> str:
    """Return what is said of a job on one node."""
    result = gputwin.simulate(trace_of(rows), Cluster("one", (NodeGroup("gpu", 1, gpus),)), **rules)
    return " ".join(gputwin.explain(result, job).story())


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ({"order": "srtf"}, "which had less predicted work left"),
        ({"order": "las:first=2,factor=2"}, "which had had less service"),
        ({"order": "round-robin:quantum=4"}, "as its time slice was over"),
        ({"order": "priority:aging=0", "preemption": "priority"}, "which has a higher priority (3 against 0)"),
        ({"order": "priority:aging=0", "preemption": "kube-scheduler"}, "which has a higher priority (3 against 0)"),
        (
            {"order": "priority:aging=0", "preemption": "benefit"},
            "priority (3 against 0), and gained more than the stop cost",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_rule_by_which_it_yielded_is_said(rules: dict[str, Any], said: str) -> None:
    """One GPU; the second job comes at 4 and takes the first one's place."""
    found = story("j0", [("llm", 0, 20, 0), ("vision", 4, 2, 3)], **rules)
    assert "preempted after 4 s by job j1 (vision), " in found
    assert said in found


def test_a_guarantee_that_was_taken_back_is_said() -> None:
    fairness = {"policy": "quota:reclaim=1", "tenants": {"vision": {"guaranteed": 1}}}
    found = story("j1", [("llm", 0, 20, 0), ("llm", 0, 20, 0), ("vision", 4, 2, 0)], gpus=2, fairness=fairness)
    assert "preempted after 4 s by job j2 (vision), whose tenant took back GPUs of its guarantee." in found


def test_a_planner_takes_turns() -> None:
    found = story("j0", [("llm", 0, 20, 0), ("llm", 0, 20, 0)], planner={"policy": "max-min", "round_seconds": 5})
    assert "It was stopped 3 times: preempted after 5 s; preempted after 5 s; preempted after 5 s." in found
    assert found.count("It was preempted as the plan of a round gave its GPUs to others.") == 1
    assert "until the plan of a round gave it GPUs" in found


def test_what_made_a_priority_that_rises_with_the_wait() -> None:
    """One GPU; j1 comes at 4 with priority 2 and waits 16 s: 0.5 a second makes 8."""
    found = story("j1", [("llm", 0, 20, 0), ("llm", 4, 5, 2)], order="priority:aging=0.5")
    assert "Its priority when it was submitted was 2: its own 2." in found
    assert "Its priority when it started was 10: age 8, its own 2." in found


def test_a_trace_without_priorities_has_no_breakdown() -> None:
    result = gputwin.simulate(
        trace_of([("llm", 0, 20, 0), ("llm", 4, 5, 0)]), Cluster("one", (NodeGroup("gpu", 1, 1),))
    )
    assert "priority" not in result.jobs.columns


def test_who_held_what_it_needed_is_counted_over_all_of_its_wait() -> None:
    """One GPU: j0 runs to 4, j1 takes its place for 2 s, and j2 at 8 for another 5 s: it starts at once and waits 7 s."""
    rows = [("llm", 0.0, 20.0, 0), ("vision", 4.0, 2.0, 3), ("vision", 8.0, 5.0, 3)]
    result = gputwin.simulate(
        trace_of(rows),
        Cluster("one", (NodeGroup("gpu", 1, 1),)),
        order="priority:aging=0",
        preemption="priority",
    )
    found = gputwin.explain(result, "j0")
    assert found.wait_seconds == 7.0
    assert [(h["job_id"], h["gpu_hours"] * 3600) for h in found.holders] == [
        ("j2", pytest.approx(5.0)),
        ("j1", pytest.approx(2.0)),
    ]
    assert "It waited 7 s in all, 0 s of it before it first started." in " ".join(found.story())
