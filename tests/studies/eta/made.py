"""Small traces with known answers."""

from __future__ import annotations

from typing import Any

import polars as pl

from gputwin.simulation.cluster import Cluster, cluster_for
from gputwin.simulation.scenario import Scenario, scenario_of
from gputwin.traces.dataset import Trace, TraceMeta


def job(
    name: str, submit: float, start: float | None = None, ran: float | None = None, **others: Any
) -> dict[str, Any]:
    """Return a task of one GPU: ended where `ran` is given, running where only `start` is, else waiting."""
    end = None if start is None or ran is None else start + ran
    status = "completed" if end is not None else "running" if start is not None else "waiting"
    return {
        "job_id": name,
        "submit_time": submit,
        "start_time": start,
        "end_time": end,
        "status": status,
        "is_running": status == "running",
        "gpu_count": 1,
        "user": "ada",
        **others,
    }


def trace_of(rows: list[dict[str, Any]]) -> Trace:
    return Trace.from_frames({"tasks": pl.DataFrame(rows, infer_schema_length=None)}, TraceMeta("made by hand"))


def past(count: int, ran: float) -> list[dict[str, Any]]:
    """Return jobs that ran one after the other on one GPU, each for `ran` s, without having waited."""
    return [job(f"past{i}", i * ran, i * ran, ran) for i in range(count)]


def rules(gpus: int = 1, **fields: Any) -> tuple[Scenario, Cluster]:
    scenario = scenario_of({"trace": "made by hand", "backfill": "easy", **fields})
    return scenario, cluster_for(trace_of(past(1, 1.0)), f"homogeneous:1x{gpus}")
