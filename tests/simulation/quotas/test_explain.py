"""Which limit of which queue or cohort held a job back, by hand; the seconds are those charged to quota."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml

import gputwin
from gputwin.simulation.cluster import Cluster, NodeGroup
from gputwin.simulation.explanation import Explanation
from gputwin.traces.dataset import Trace, TraceMeta
from tests.simulation.test_kueue_by_hand import cohort, queue


def told(
    tmp_path: Path, objects: list[dict[str, Any]], jobs: list[tuple[str, float, float, int]], job: str
) -> Explanation:
    """Return the explanation of a job; jobs are (tenant, submit, duration, GPUs) and called j0, j1, …"""
    file = tmp_path / "queues.yaml"
    file.write_text(yaml.safe_dump_all(objects), encoding="utf-8")
    rows = [
        {"job_id": f"j{k}", "tenant": t, "submit_time": s, "duration_seconds": d, "gpu_count": g, "gpu_milli": 1000}
        for k, (t, s, d, g) in enumerate(jobs)
    ]
    trace = Trace.from_frames({"tasks": pl.DataFrame(rows)}, TraceMeta("by hand"))
    cluster = Cluster("pool", (NodeGroup("gpu", 1, 8),))
    result = gputwin.simulate(trace, cluster, fairness={"policy": "kueue-classical", "queues": str(file)})
    result.save(tmp_path / "run")
    found = gputwin.explain(gputwin.SimulationResult.open(tmp_path / "run"), job)
    assert sum(limit.seconds for limit in found.quota_limits) == pytest.approx(
        found.causes_seconds["quota_or_fairness"]
    )
    return found


def test_the_borrowing_limit_of_its_own_queue(tmp_path: Path) -> None:
    """Queue a owns 2 and may borrow 1: with 3 in use its job waits until 10, though five GPUs are idle."""
    queues = [queue("a", 2, borrowingLimit=1), queue("b", 4)]
    found = told(tmp_path, queues, [("a", 0, 10, 3), ("a", 1, 5, 1)], "j1")
    (limit,) = found.quota_limits
    assert limit == ("ClusterQueue", "a", "default/nvidia.com/gpu", 9, 3, 3, 1)
    assert (
        "ClusterQueue a held it back for 9 s: it may use 3 of default/nvidia.com/gpu, 3 were in use, and the job asks for 1."
        in found.story()
    )
    assert found.to_json()["quota_limits"][0]["name"] == "a"


def test_the_cohort_has_nothing_left_to_lend(tmp_path: Path) -> None:
    """Two queues of 2 in a cohort with 1 more: b uses 3 and a 2 when a wants one more, until b ends at 8."""
    queues = [cohort("all", 1), queue("a", 2), queue("b", 2)]
    found = told(tmp_path, queues, [("b", 0, 8, 3), ("a", 0, 20, 2), ("a", 2, 5, 1)], "j2")
    assert found.quota_limits == [("Cohort", "all", "default/nvidia.com/gpu", 6, 5, 5, 1)]


def test_first_one_limit_then_another(tmp_path: Path) -> None:
    """a uses the 3 it may until 4. Then b, within its own quota, takes the 2 that are left of the cohort's 6, until 9.5."""
    queues = [queue("a", 2, borrowingLimit=1), queue("b", 4)]
    jobs = [("a", 0, 20.0, 2), ("a", 0, 4.0, 1), ("b", 0, 20.0, 2), ("a", 3, 1.0, 1), ("b", 3.5, 5.5, 2)]
    found = told(tmp_path, queues, jobs, "j3")
    assert [(limit.kind, limit.seconds) for limit in found.quota_limits] == [("Cohort", 5.5), ("ClusterQueue", 1)]


def test_who_had_to_yield_is_told_why_and_what_kept_it_out(tmp_path: Path) -> None:
    """a borrows 2 of b's GPUs until b reclaims them at 4; its two jobs are held back until b's have ended at 9."""
    mine, theirs = queue("a", 2), queue("b", 2, "all", {"reclaimWithinCohort": "Any"})
    jobs = [("a", 0.0, 10.0, 1)] * 4 + [("b", 4.0, 5.0, 1)] * 2
    found = told(tmp_path, [mine, theirs], jobs, "j0")
    assert [(limit.kind, limit.name, limit.seconds) for limit in found.quota_limits] == [("Cohort", "all", 5)]
    assert "preempted after 4 s by job j4 (b), whose ClusterQueue b took back quota in the cohort." in " ".join(
        found.story()
    )


def test_without_the_file_of_queues_all_else_is_told(tmp_path: Path) -> None:
    file = tmp_path / "queues.yaml"
    jobs = [("a", 0.0, 10.0, 3), ("a", 1.0, 5.0, 1)]
    told(tmp_path, [queue("a", 2, borrowingLimit=1), queue("b", 4)], jobs, "j1")
    file.unlink()
    found = gputwin.explain(gputwin.SimulationResult.open(tmp_path / "run"), "j1")
    assert found.quota_limits == []
    assert f"Which limit held it back is not known: {file}, which the run was made with, is gone." in found.story()


def test_who_was_not_held_back_by_a_quota_has_no_limits(tmp_path: Path) -> None:
    found = told(tmp_path, [queue("a", 8, None)], [("a", 0, 5, 8), ("a", 1, 5, 8)], "j0")
    assert found.quota_limits == []
