"""Theory, simulation, trace: a planted breach is the one that is named."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from gputwin.core.errors import UserError
from gputwin.core.rng import stream
from gputwin.report.sections.queueing import headline
from gputwin.simulation.cluster import open_cluster
from gputwin.simulation.simulate import simulate
from gputwin.studies.validation.threeway import ThreeWay, compare
from gputwin.traces.dataset import Trace, TraceMeta

JOBS = 20_000
CLUSTER = open_cluster("homogeneous:25x8")


def trace_of(submit: np.ndarray, run: np.ndarray, gpus: np.ndarray | int = 1, start: np.ndarray | None = None) -> Trace:
    columns = {
        "job_id": [f"{i:06d}" for i in range(submit.size)],
        "submit_time": submit,
        "duration_seconds": run,
        "gpu_count": np.minimum(np.broadcast_to(gpus, submit.size), 8),
        "instances": -(-np.broadcast_to(gpus, submit.size) // 8),
    }
    if start is not None:
        columns |= {"start_time": start, "end_time": start + run}
    return Trace.from_frames({"tasks": pl.DataFrame(columns)}, TraceMeta("planted"))


def poisson(load: float, mean: float = 100.0) -> np.ndarray:
    return np.cumsum(stream(0, "arrivals").exponential(mean / (load * CLUSTER.gpu_count), JOBS))


def exponential(mean: float = 100.0) -> np.ndarray:
    return stream(0, "service").exponential(mean, JOBS)


def text(result: ThreeWay) -> str:
    data = json.dumps(result.to_json(), allow_nan=False)
    assert "Infinity" not in data
    return " ".join(result.verdicts)


def test_nothing_breaks_where_nothing_is_broken() -> None:
    result = compare(trace_of(poisson(0.93), exponential()), CLUSTER, workers=1)
    theory, found = result.predictions[0].figures, result.steps[0].figures
    assert theory.mean_wait == pytest.approx(found.mean_wait, abs=1.0)
    assert result.simulation.utilisation == pytest.approx(0.93, abs=0.02)
    assert "No assumption of M/M/c changes" in text(result)
    assert "does not say when jobs started" in text(result)


def test_bursts_are_named() -> None:
    """Jobs come in crowds of five hundred."""
    submit = np.repeat(np.sort(stream(0, "crowds").uniform(0, 10 * JOBS / CLUSTER.gpu_count * 20, JOBS // 500)), 500)
    result = compare(trace_of(submit + np.arange(JOBS) * 1e-3, exponential()), CLUSTER, workers=1)
    said = text(result)
    assert "The assumption that breaks theory is that arrivals are Poisson" in said
    assert result.jobs.arrivals.bursty


def test_gangs_are_named() -> None:
    """One job in twenty takes 64 GPUs."""
    gpus = np.where(stream(0, "gangs").random(JOBS) < 0.05, 64, 1)
    mean = float(gpus.mean())
    result = compare(trace_of(poisson(0.93 / mean), exponential(), gpus), CLUSTER, workers=1)
    assert "that all jobs are of one size" in text(result)
    assert [c.name for c in result.classes] == ["1 GPU", "more than 8 GPUs"]


def test_nodes_are_named() -> None:
    """Jobs of five GPUs leave three of a node's eight idle."""
    result = compare(
        trace_of(poisson(0.95 / 3.0), exponential(), np.where(np.arange(JOBS) % 2, 5, 1)), CLUSTER, workers=1
    )
    assert "any free GPU will do" in text(result)


def test_a_trace_the_engine_made_agrees_with_the_engine() -> None:
    first = trace_of(poisson(0.99), exponential())
    start = simulate(first, CLUSTER, backfill="greedy").jobs["start_time"].to_numpy()
    result = compare(trace_of(poisson(0.99), exponential(), start=start), CLUSTER, workers=1)
    assert result.trace is not None
    assert result.trace.mean_wait == pytest.approx(result.simulation.mean_wait)
    assert result.trace.utilisation == pytest.approx(result.simulation.utilisation)
    assert "Simulation and trace agree" in text(result)
    assert [law.name for law in result.laws] == ["Little", "Little", "utilisation", "forced flow"]
    assert all(abs(law.difference) < 0.02 for law in result.laws)
    assert "Neither explains" not in headline(result)
    longer = result.trace._replace(mean_wait=60 + 5 * (result.simulation.mean_wait or 0.0))
    assert "Neither explains the trace, whose jobs waited " in headline(replace(result, trace=longer))


def test_overload_is_said_in_words_and_has_no_infinite_figures() -> None:
    result = compare(trace_of(poisson(1.4), exponential()), CLUSTER, workers=1)
    assert "There is no steady state" in text(result)
    assert all(p.figures.mean_wait is None and "no steady state" in p.why_not for p in result.predictions[:4])
    assert result.simulation.mean_wait is not None


def test_nothing_to_judge_is_said() -> None:
    with pytest.raises(UserError, match="nothing to simulate"):
        compare(trace_of(np.zeros(0), np.zeros(0)), CLUSTER, workers=1)
    with pytest.raises(UserError, match="fewer than two jobs"):
        compare(trace_of(np.arange(5.0), np.ones(5), 0), CLUSTER, workers=1)
    with pytest.raises(UserError, match="two times"):
        compare(trace_of(np.zeros(5), np.ones(5)), CLUSTER, workers=1)
