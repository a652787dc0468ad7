"""What the report of a run shows besides waits: where time and energy went, as the terminal does."""

from __future__ import annotations

import polars as pl

import gputwin
from gputwin.report.page import Prose
from gputwin.report.sections.run import run_section
from gputwin.report.sections.run_details import details_parts
from gputwin.report.timeline import Timeline
from gputwin.simulation.cluster import Cluster, NodeGroup
from gputwin.simulation.result import SimulationResult
from gputwin.traces.dataset import Trace, TraceMeta


def trace_of() -> Trace:
    jobs = {"job_id": ["a", "b"], "gpu_count": [1, 1], "submit_time": [0.0, 600.0], "duration_seconds": [3600.0, 60.0]}
    return Trace.from_frames({"tasks": pl.DataFrame(jobs)}, TraceMeta("by hand"))


def run_of(trace: Trace) -> SimulationResult:
    """One GPU: the second job preempts the first, which saves in 10 s and starts again in 20 s."""
    cluster = Cluster("one", (NodeGroup("gpu", 1, 1),))
    checkpoints = {"save_seconds": 10, "restart_seconds": 20}
    return gputwin.simulate(trace, cluster, order="srtf", checkpoints=checkpoints, power={})


def test_times_goodput_stops_and_energy_are_in_the_report() -> None:
    trace = trace_of()
    result = run_of(trace)
    details = details_parts(result)
    tables = {part.title: part for part in details if not isinstance(part, Prose)}
    assert list(tables) == [
        "Cluster",
        "Where the time from submission to end went",
        "Goodput: GPU-hours held",
        "Energy, kWh",
    ]
    assert tables["Goodput: GPU-hours held"].rows[1][0] == "saving, restarting, resizing"
    assert sum(float(row[1]) for row in tables["Energy, kWh"].rows) > 0
    assert "Stops: preempted 1." in [part.text for part in details if isinstance(part, Prose)]
    shown = run_section(result, Timeline.of(trace)).parts
    assert all(part in shown for part in details)
