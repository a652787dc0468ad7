"""One figure, one value: what several verbs say of a trace is the same, and agrees with a task-by-task account of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from gputwin.analysis import analyze
from gputwin.analysis.occupancy import time_mean
from gputwin.core.units import format_count
from gputwin.forecasting.demand import demand
from gputwin.simulation.cluster import cluster_for
from gputwin.simulation.load import check_load
from gputwin.traces.describe import describe
from gputwin.traces.ingest import ingest
from gputwin.traces.lifetimes import held
from tests.consistency import reference
from tests.consistency.seen import GENERATED, REAL, Seen, open_generated, open_real

CLOSE = 1e-6


@pytest.fixture(scope="module", params=[*REAL, *(f"synthetic-{name}" for name in GENERATED)])
def seen(request: pytest.FixtureRequest) -> Iterator[Seen]:
    name: str = request.param
    if name in REAL:
        folder: Path = request.getfixturevalue("real_data")
        yield Seen(open_real(name, folder))
    else:
        yield Seen(open_generated(name.removeprefix("synthetic-")))


def test_jobs_and_tasks(seen: Seen) -> None:
    tasks = seen.trace.tasks
    assert seen.description.tasks == seen.check.tasks == tasks.height
    assert seen.description.jobs == tasks["job_id"].n_unique()
    left_out = sum(t.held is None for t in seen.lives)
    assert seen.check.tasks_without_duration == left_out
    simulated = {t.job for t in seen.lives if t.held is not None}
    if seen.simulation is None:
        assert not simulated
        return
    summary = seen.simulation.summary
    assert sum(summary["tasks_left_out"].values()) == left_out
    assert summary["jobs"] == len(simulated)
    assert summary["jobs_already_running"] == seen.description.tasks_already_running
    if seen.queueing is not None:
        assert seen.queueing["jobs"] == len({t.job for t in seen.lives if t.held is not None and t.gpus > 0})


def test_windows(seen: Seen) -> None:
    seconds = seen.window.seconds
    assert seen.description.window_seconds == pytest.approx(seconds, rel=CLOSE)
    assert seen.check.window.seconds == pytest.approx(seconds, rel=CLOSE)
    over_time = seen.table("cluster", "over_time")
    if over_time is not None:
        assert over_time["seconds"].sum() == pytest.approx(seconds, rel=CLOSE)
    if seen.simulation is not None:
        series = seen.simulation.series
        assert series.height * seen.simulation.manifest["bin_seconds"] == pytest.approx(seconds, rel=CLOSE)
        assert series["time"][0] == pytest.approx(seen.window.begin)
    if seen.queueing is not None:
        assert seen.queueing["window_seconds"] == pytest.approx(seconds, rel=CLOSE)


def test_gpu_hours(seen: Seen) -> None:
    hours = reference.gpu_hours(seen.lives)
    assert (seen.description.gpu_hours or 0.0) == pytest.approx(hours, rel=CLOSE)
    composition = seen.table("workload", "composition")
    if composition is not None and hours > 0:
        by_request = composition.filter(composition["dimension"] == "gpu_request")
        assert by_request["gpu_hours"].sum() == pytest.approx(hours, rel=CLOSE)
    note = seen.note("GPUs held on average")
    assert (note or "").split(" GPU-hours")[0] == (format_count(hours) if hours else "")


def test_gpus_held(seen: Seen) -> None:
    gpus = reference.gpus_held(seen.lives, seen.window)
    assert (seen.description.gpus_held_mean or 0.0) == pytest.approx(gpus, rel=CLOSE)
    over_time = seen.table("cluster", "over_time")
    if over_time is not None:
        assert time_mean(over_time, "gpus") == pytest.approx(gpus, rel=CLOSE)
    if seen.queueing is not None and seen.queueing["trace"] is not None:
        in_use = seen.queueing["trace"]["utilisation"] * seen.queueing["gpus"]
        assert in_use == pytest.approx(gpus, rel=CLOSE)


def test_load_times_capacity_times_span_is_the_work(seen: Seen) -> None:
    work = reference.offered_gpu_seconds(seen.lives, seen.window)
    whole = [x for x in seen.check.loads if (x.resource, x.models) == ("gpu_milli", "any")]
    found = sum(x.mean * x.capacity / 1000 for x in whole) * seen.check.window.seconds
    assert found == pytest.approx(work, rel=CLOSE)
    as_jobs = []
    if seen.queueing is not None:
        as_jobs.append(seen.queueing["load_gpus"] * seen.queueing["window_seconds"])
    if seen.simulation is not None:
        # Where nobody waits, the simulation holds what is offered.
        assert (seen.simulation.jobs["start_time"] == seen.simulation.jobs["submit_time"]).all()
        as_jobs.append(seen.simulation.summary["allocation"]["gpu"] * seen.cluster.gpu_count * seen.window.seconds)
    if seen.trace.tasks["job_id"].is_unique().all():
        assert as_jobs == pytest.approx([work] * len(as_jobs), rel=CLOSE, abs=CLOSE)
    elif as_jobs:
        # As a gang, all tasks of a job are there from the arrival of the first to the end of the longest.
        assert max(as_jobs) == pytest.approx(min(as_jobs), rel=CLOSE)
        assert min(as_jobs) >= work * (1 - CLOSE)


def test_waits(seen: Seen) -> None:
    waits = [t.wait for t in seen.lives if t.wait is not None]
    if not waits:
        assert seen.description.wait_seconds is None
        assert seen.analysis.topic("delays") is None
        return
    mean = float(np.mean(waits))
    told = seen.description.wait_seconds
    assert told is not None
    assert (told["count"], told["mean"]) == (len(waits), pytest.approx(mean))
    table = seen.table("delays", "wait")
    assert table is not None
    assert (table["count"][0], table["mean"][0]) == (len(waits), pytest.approx(mean))
    if seen.queueing is not None and seen.trace.tasks["job_id"].is_unique().all():
        of_gpus = [t.wait for t in seen.lives if t.wait is not None and t.held is not None and t.gpus > 0]
        assert seen.queueing["trace"]["wait_seconds_mean"] == pytest.approx(float(np.mean(of_gpus)))


def test_what_forecasts_are_made_of(seen: Seen) -> None:
    if seen.demand is None:
        assert not any(t.arrived is not None for t in seen.lives)
        return
    series = seen.demand
    ends = series.start_seconds + series.bin_seconds * np.arange(1, len(series) + 1)
    for k in np.linspace(0, len(series) - 2, 25).astype(int):
        expected = reference.in_force(seen.lives, seen.window, float(ends[k]))
        assert tuple(series.values[k]) == pytest.approx(expected, rel=1e-9, abs=1e-6)


def test_what_is_held_and_what_waits_is_what_is_in_force(seen: Seen) -> None:
    over_time = seen.table("cluster", "over_time")
    if seen.demand is None or over_time is None or "queued" not in over_time.columns:
        return
    there = reference.gpus_held(seen.lives, seen.window) + reference.gpus_queued(seen.lives, seen.window)
    shown = time_mean(over_time, "gpus") + time_mean(over_time, "queued_gpus")
    assert shown == pytest.approx(there, rel=CLOSE)
    # The series is sampled at the end of each bin.
    assert float(seen.demand.values[:-1, 0].mean()) == pytest.approx(there, rel=0.02, abs=0.1)


def test_more_than_there_is_has_a_finding(seen: Seen) -> None:
    topic = seen.analysis.topic("cluster")
    if topic is None or seen.trace.nodes.is_empty():
        return
    tables = [t for name in ("over_time", "by_gpu_model") if (t := topic.table(name)) is not None]
    shares = [t[c] for t in tables for c in t.columns if c.endswith("_share")]
    if any(float(s.max() or 0.0) > 1 + CLOSE for s in shares):  # type: ignore[arg-type]
        assert any(r.is_warning and "than the node table has" in r.text for r in topic.remarks)
    own = check_load(seen.trace, cluster_for(seen.trace, None))
    if any(x.mean > 1 for x in own.loads):
        assert "does not fit" in own.verdict
    elif any(x.time_above_capacity > 0 for x in own.loads):
        assert "more than there are" in own.verdict or "No verdict" in own.verdict


def test_virtual_clusters_report_the_same_gpus_in_analysis_and_forecast(real_data: Path) -> None:
    trace = ingest([real_data / "helios_earth" / f"{vc}_sequence.csv.gz" for vc in ("vc6YE", "vcira")])
    clusters = analyze(trace).table("tenancy", "virtual_clusters")
    assert clusters is not None
    running = demand(trace, "metric", metric="running_gpus", bin_seconds=60.0)
    assert float(running.values.mean()) == pytest.approx(clusters["running_gpus"].sum())
    assert describe(trace).metrics["running_gpus"] == clusters["samples"].sum()


def test_requests_are_counted_alike(real_data: Path) -> None:
    trace = ingest([real_data / "azure_llm_2023" / "AzureLLMInferenceTrace_conv.csv.gz"])
    gaps = analyze(trace).table("serving", "request_gaps")
    assert gaps is not None
    series = demand(trace, "requests", bin_seconds=60.0)
    assert describe(trace).requests == gaps["gaps"][0] + 1
    # The record ends within a minute, which is not in the series.
    whole = trace.requests.filter(trace.requests["submit_time"] < series.times()[-1] + 60.0).height
    assert whole == round(float(series.values.sum()) * 60) == describe(trace).requests - 38


def test_the_written_figures_of_the_dlrm_trace(real_data: Path) -> None:
    """Counted from the first instant: 3,194 GPUs on average, 3,076 to 3,367 by hour, about 2.4 million GPU-hours."""
    trace = open_real("dlrm", real_data)
    found = held(trace.tasks)
    assert found.gpus_mean == pytest.approx(3_194, abs=1)
    assert found.gpu_hours == pytest.approx(2.4e6, rel=0.02)
    all_lives = reference.lives(trace.tasks, found.window)
    by_hour = [reference.in_force(all_lives, found.window, h * 3600.0)[0] for h in range(1, 743, 20)]
    assert 3_070 < min(by_hour) < max(by_hour) < 3_430
