"""The first sentences on a run: jobs that can never run, and why."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import gputwin
from gputwin.simulation.cluster import Cluster, NodeGroup
from gputwin.simulation.verdict import run_verdict
from gputwin.traces.dataset import Trace, TraceMeta


@pytest.mark.parametrize(
    ("gpus", "rules", "said"),
    [
        (5, {}, "1 of 2 jobs can never run on this cluster."),
        (3, {"fairness": {"policy": "quota:gpus=2"}}, "1 of 2 jobs can never run on this cluster under its quotas."),
    ],
)
def test_jobs_that_never_run_are_counted(gpus: int, rules: dict[str, Any], said: str) -> None:
    """Four GPUs; one job asks for one of them, the other for more than there are, or than its tenant may hold."""
    asked = {"job_id": ["a", "b"], "gpu_count": [1, gpus], "submit_time": [0.0, 0.0], "duration_seconds": [5.0, 5.0]}
    trace = Trace.from_frames({"tasks": pl.DataFrame(asked).with_columns(tenant=pl.lit("t"))}, TraceMeta("by hand"))
    verdict = run_verdict(gputwin.simulate(trace, Cluster("one", (NodeGroup("gpu", 1, 4),)), **rules))
    assert said in verdict.text
