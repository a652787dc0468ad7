"""The same jobs under first-in-first-out and under shortest-job-first that believes one model after another.

The gain of a model is how much of the oracle's reduction of the mean wait it keeps. Beside the models stands noise: the
truth times a log-normal factor, calibrated to each model's own error, so that one sees whether it is the size of the
errors or their pattern that costs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl

from gputwin.core.rng import stream
from gputwin.profiling.evaluation.scores import rank_correlation
from gputwin.profiling.evaluation.splits import FIRST_SHARE
from gputwin.profiling.jobs import Floats, History, Submitted
from gputwin.profiling.model import fit
from gputwin.simulation.cluster import Cluster, NodeGroup, open_cluster
from gputwin.simulation.offered import overload
from gputwin.simulation.scenario import simulate
from gputwin.traces.dataset import Trace, TraceMeta
from gputwin.traces.measures import ARRIVAL, RUNTIME

FIFO, ORACLE, NOISE = "fifo", "sjf, oracle", "noise like "
LOAD = 0.9
"""Share of its GPUs' time that a cluster made for a trace is asked for."""
GPUS_PER_NODE = 8
LONG = 0.9
"""Jobs that run longer than this share of jobs are the long ones, who may pay for the others."""


@dataclass(frozen=True)
class Outcome:
    """One run: waits and completion times in s, the share of the oracle's gain kept, and how the long jobs fare."""

    rule: str
    mean_wait_seconds: float
    mean_jct_seconds: float
    p99_wait_seconds: float
    long_jobs_p99_wait_seconds: float
    gain_kept: float | None
    within_2x: float | None
    rank_correlation: float | None


@dataclass(frozen=True)
class Worth:
    """The runs side by side, first-in-first-out and the oracle first."""

    cluster: str
    jobs: int
    outcomes: tuple[Outcome, ...]
    warnings: tuple[str, ...] = ()
    """Of what more is offered than the cluster has."""

    def to_json(self) -> dict[str, Any]:
        """Return the result as plain data."""
        return {"cluster": self.cluster, "jobs": self.jobs, "outcomes": [asdict(o) for o in self.outcomes]}

    def of(self, rule: str) -> Outcome:
        """Return the outcome of one rule."""
        return next(o for o in self.outcomes if o.rule == rule)


def worth(
    trace: Trace,
    cluster: Cluster | str,
    predictions: dict[str, Floats],
    *,
    noise: bool = True,
    backfill: str = "strict",
    placement: str = "first-fit",
    seed: int = 0,
    progress: Callable[[str], None] = lambda step: None,
) -> Worth:
    """Return what each model's predictions (s, one per task of `History.of(trace)`) are worth on this cluster."""
    history = History.of(trace)
    actual = history.outcomes.duration
    target = open_cluster(cluster) if isinstance(cluster, str) else cluster

    def run(rule: str, believed: Floats | None) -> pl.DataFrame:
        progress(f"simulating {rule}")
        order = "fifo" if rule == FIFO else "sjf"
        predict = "oracle" if believed is None else as_frame(history.jobs, believed)
        result = simulate(
            trace, target, order=order, backfill=backfill, placement=placement, predict=predict, seed=seed
        )
        return result.jobs

    runs: dict[str, tuple[pl.DataFrame, Floats | None]] = {
        FIFO: (run(FIFO, None), None),
        ORACLE: (run(ORACLE, None), actual),
    }
    for name, believed in predictions.items():
        runs[name] = run(name, believed), believed
        if noise:
            alike = noisy(actual, believed, seed)
            runs[NOISE + name] = run(NOISE + name, alike), alike
    waits = {rule: _mean(jobs, "wait_seconds") for rule, (jobs, _) in runs.items()}
    gain = waits[FIFO] - waits[ORACLE]
    outcomes = []
    for rule, (jobs, told) in runs.items():
        kept = (waits[FIFO] - waits[rule]) / gain if gain > 0 else None
        outcomes.append(_outcome(rule, jobs, kept, actual, told))
    return Worth(target.name, runs[FIFO][0].height, tuple(outcomes), overload(trace, target))


def _outcome(rule: str, jobs: pl.DataFrame, kept: float | None, actual: Floats, believed: Floats | None) -> Outcome:
    long = jobs.filter(pl.col("duration_seconds") >= pl.col("duration_seconds").quantile(LONG))
    near = rank = None
    if believed is not None:
        near = float((np.maximum(believed / actual, actual / believed) <= 2.0).mean())
        rank = rank_correlation(believed, actual)
    return Outcome(
        rule,
        _mean(jobs, "wait_seconds"),
        _mean(jobs, "jct_seconds"),
        _p99(jobs),
        _p99(long),
        kept,
        near,
        rank,
    )


def as_frame(jobs: Submitted, seconds: Floats) -> pl.DataFrame:
    """Return predictions as the simulator takes them: one row per task."""
    return jobs.frame.select("job_id", "role").with_columns(pl.Series("predicted_seconds", seconds))


def noisy(actual: Floats, predicted: Floats, seed: int) -> Floats:
    """Return the truth times a log-normal factor with the mean and spread of the predictions' log error."""
    error = np.log(predicted / actual)
    draws = stream(seed, "noise").standard_normal(actual.size)
    return np.asarray(actual * np.exp(error.mean() + error.std() * draws))


def predictions_of(
    past: History,
    jobs: History,
    models: Sequence[str],
    *,
    seed: int = 0,
    progress: Callable[[str], None] = lambda step: None,
) -> dict[str, Floats]:
    """Return each model's mean durations of `jobs`, s, learned from the past; ends become known as they come.

    The mean is what non-preemptive shortest-job-first should go by (Rothkopf, Management Science 1966).
    """
    found = {}
    for name in models:
        progress(f"training {name}")
        found[name] = fit(name, past, seed=seed).observing(jobs).predict_mean(jobs.jobs)
    return found


def _mean(jobs: pl.DataFrame, column: str) -> float:
    return float(jobs[column].drop_nulls().mean() or 0.0)  # type: ignore[arg-type]


def _p99(jobs: pl.DataFrame) -> float:
    return float(jobs["wait_seconds"].quantile(0.99, "linear") or 0.0)


def crowded(trace: Trace) -> tuple[Trace, Cluster] | None:
    """Return jobs and 8-GPU nodes of which they ask for 90 %; None where the trace asks for no GPUs.

    The nodes are as many as the work needs, or the largest job; where that makes them idle, as in a sample of a trace,
    arrivals are drawn together.
    """
    gpus = pl.col("gpu_count") * pl.col("gpu_milli").fill_null(1000) / 1000.0 * pl.col("instances")
    asked = trace.tasks.select("job_id", gpus.fill_null(0.0).alias("gpus"), RUNTIME.alias("ran"), ARRIVAL).drop_nulls()
    if asked.is_empty() or not asked["gpus"].max():
        return None
    first, last, work, largest = asked.select(
        pl.col("arrival_time").min().alias("first"),
        (pl.col("arrival_time") + pl.col("ran")).max().alias("last"),
        (pl.col("gpus") * pl.col("ran")).sum().alias("work"),
        pl.col("gpus").sum().over("job_id").max().alias("largest"),
    ).row(0)
    busy = work / max(last - first, 1.0)
    nodes = math.ceil(max(busy / LOAD, largest) / GPUS_PER_NODE)
    faster = max(LOAD * nodes * GPUS_PER_NODE / busy, 1.0)
    tasks = trace.tasks.with_columns(
        (first + (ARRIVAL - first) / faster).alias("submit_time"),
        RUNTIME.alias("duration_seconds"),
        pl.lit(None, pl.Float64).alias("start_time"),
        pl.lit(None, pl.Float64).alias("end_time"),
    )
    cluster = Cluster(f"{nodes} × {GPUS_PER_NODE} GPUs", (NodeGroup("node", nodes, GPUS_PER_NODE),))
    return Trace.from_frames({"tasks": tasks}, TraceMeta(trace.meta.source)), cluster


def worth_in_time(
    trace: Trace,
    cluster: Cluster | str | None,
    models: Sequence[str],
    *,
    noise: bool = False,
    backfill: str = "greedy",
    seed: int = 0,
    progress: Callable[[str], None] = lambda step: None,
) -> Worth | None:
    """Return what models are worth on the later part of a trace, learned from the earlier part (`FIRST_SHARE`).

    Without a cluster, jobs crowd one that is made for them (`crowded`); None where they ask for no GPUs.
    """
    history = History.of(trace)
    origin = float(history.jobs.arrival[int(history.size * FIRST_SHARE)])
    later = trace.between(origin, float("inf"))
    tested = History.of(later)
    scenario = crowded(later) if cluster is None else (later, cluster)
    if scenario is None:
        return None
    # Predicted as they came, also where they are then made to come faster.
    found = predictions_of(history.as_of(origin), tested, models, seed=seed, progress=progress)
    return worth(*scenario, found, noise=noise, backfill=backfill, seed=seed, progress=progress)
