"""Sixty jobs on 4 × 4 GPUs under the policies of Tiresias's simulator: start and end of every job.

Gu et al., NSDI'19, and the authors' simulator with placement by count: GPUs are one pool of 16, a preempted job goes on
where it stopped at no cost.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from gputwin.core.errors import InputError, UserError
from gputwin.simulation.cluster import Cluster, NodeGroup
from gputwin.simulation.scenario_parts import Choice
from gputwin.simulation.simulate import simulate
from gputwin.studies.reproduce.tiresias_queues import ends_by_queues
from gputwin.studies.reproduce.tiresias_remaining import ends_by_remaining_gpu_time
from gputwin.traces.dataset import Trace, TraceMeta

GPUS = 16
QUEUES, REMAINING = "queues of the authors", "remaining GPU time of the authors"
LAS = "dlas-gpu@300,900,2000 by las"
SAME = 1e-6
"""Times within this are equal, s."""


@dataclass(frozen=True)
class Rules:
    """How a published policy is said here."""

    order: str
    backfill: str = "greedy"
    parameters: dict[str, float] = field(default_factory=dict)
    preemption: str = ""


# The limits of the queues, in GPU-seconds, are as high as the authors' default: no job of the sixty reaches them.
_HIGH = {"first": 3250.0, "factor": 10.0, "queues": 2.0, "promote": 0.0}
_LOW = {"first": 300.0, "factor": 3.0, "queues": 4.0, "promote": 0.0}
LIMITS = (300, 900, 2000)
POLICIES = {
    "fifo": Rules("fifo", "strict"),
    "fjf": Rules("fifo"),
    "sjf": Rules("priority", parameters={"aging": 0.0}, preemption="priority"),
    "shortest": Rules("srtf"),
    "shortest-gpu": Rules(REMAINING),
    "dlas-gpu": Rules("las", parameters=_HIGH),
    "dlas": Rules("las", parameters=_HIGH),
    "dlas-gpu@300,900,2000": Rules(QUEUES),
    "dlas@300,900,2000": Rules(QUEUES),
    LAS: Rules("las", parameters=_LOW),
}
"""Published name → rules: fifo, first job that fits (FIFO with skip), smallest job (fewest GPUs) first, shortest remaining
time and least remaining GPU time first, discretised least attained service by GPU time and by time; with low limits by the
authors' queues as they simulate them, and beside that by the order `las`, where limits (300, 900, 2700) and the order
within a queue differ."""
_BY_QUEUES = (
    "simulated apart: its limits are no geometric series, and who waits goes to the end of its queue at each event"
)
NOT_THE_ENGINE = {
    "shortest-gpu": "simulated apart: remaining GPU time falls faster for larger jobs, and the engine's ranks of running "
    "jobs are constant",
    "dlas-gpu@300,900,2000": _BY_QUEUES,
    "dlas@300,900,2000": _BY_QUEUES,
    LAS: "limits are 300, 900 and 2,700 GPU-seconds where 2,000 are published, within a queue jobs go by submission, and a "
    "job changes its queue when it reaches the limit, not at the next event",
}
"""Policies that a simulator of their rule alone follows, or in which the engine's rule differs, and why."""


@dataclass(frozen=True)
class Reproduction:
    """Per policy and job: end and first start, ours and published."""

    jobs: pl.DataFrame

    def summary(self) -> pl.DataFrame:
        """Return, per policy, jobs, those with the published end, and both mean completion times."""
        same = (pl.col("end") - pl.col("published_end")).abs() <= SAME
        return self.jobs.group_by("policy", maintain_order=True).agg(
            pl.len().alias("jobs"),
            same.sum().alias("same_end"),
            (pl.col("end") - pl.col("submit")).mean().alias("mean_jct_seconds"),
            (pl.col("published_end") - pl.col("submit")).mean().alias("published_mean_jct_seconds"),
            (pl.col("end") - pl.col("published_end")).abs().max().alias("largest_difference_seconds"),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the result as plain data."""
        return {"policies": self.summary().to_dicts(), "not_the_engine": NOT_THE_ENGINE}


def reproduce(
    folder: Path,
    *,
    policies: Sequence[str] = tuple(POLICIES),
    progress: Callable[[str], None] = lambda step: None,
) -> Reproduction:
    """Return our ends beside the published ones."""
    if unknown := sorted(set(policies) - set(POLICIES)):
        raise UserError(f"unknown policy '{unknown[0]}'; known: {', '.join(POLICIES)}")
    jobs = _read(folder / "60_job.csv")
    trace = _trace(jobs)
    published = pl.concat(
        _read(folder / name) for name in ("jobs_4x4_count.csv", "jobs_4x4_count_dlas_low_thresholds.csv")
    )
    cluster = Cluster("one pool", (NodeGroup("pool", count=1, gpus=GPUS),))
    frames = []
    for name in policies:
        progress(name)
        rules = POLICIES[name]
        theirs = published.filter(policy=name.removesuffix(" by las")).select(
            pl.lit(name).alias("policy"), "job_id", pl.col("end").alias("published_end")
        )
        if rules.order in (QUEUES, REMAINING):
            frames.append(theirs.join(_apart(jobs, name), on="job_id", how="inner", maintain_order="left"))
            continue
        result = simulate(
            trace,
            cluster,
            order=str(Choice(name=rules.order, parameters=rules.parameters)),
            backfill=rules.backfill,
            preemption=rules.preemption,
            # Nothing is ever lost.
            checkpoints={"interval_seconds": 0.0},
        )
        ours = result.jobs.select(
            pl.col("job_id").cast(pl.Int64), pl.col("submit_time").alias("submit"), pl.col("end_time").alias("end")
        )
        frames.append(theirs.join(ours, on="job_id", how="inner", maintain_order="left"))
    return Reproduction(pl.concat(frames))


def _apart(jobs: pl.DataFrame, name: str) -> pl.DataFrame:
    """Return the ends by a simulator of the authors' rule alone."""
    rows = jobs.select("job_id", "num_gpu", "submit_time", "duration").rows()
    if POLICIES[name].order == REMAINING:
        ends = ends_by_remaining_gpu_time(rows, GPUS)
    else:
        ends = ends_by_queues(rows, LIMITS, GPUS, by_gpu_time=name.startswith("dlas-gpu"))
    end = pl.col("job_id").replace_strict(ends).cast(pl.Float64)
    return jobs.select("job_id", pl.col("submit_time").cast(pl.Float64).alias("submit"), end.alias("end"))


def _trace(jobs: pl.DataFrame) -> Trace:
    """Return the jobs; fewer GPUs are a higher priority, for the rule that lets the smallest go first."""
    tasks = jobs.select(
        pl.col("job_id").cast(pl.String),
        pl.lit("worker").alias("role"),
        (-pl.col("num_gpu")).cast(pl.Int64).alias("priority"),
        pl.col("submit_time").cast(pl.Float64),
        pl.col("duration").cast(pl.Float64).alias("duration_seconds"),
        pl.lit(1, pl.Int64).alias("instances"),
        pl.col("num_gpu").cast(pl.Int64).alias("gpu_count"),
        pl.lit(1000, pl.Int64).alias("gpu_milli"),
    )
    return Trace.from_frames({"tasks": tasks}, TraceMeta("tiresias60"))


def _read(path: Path) -> pl.DataFrame:
    if not path.is_file():
        raise InputError(f"{path}: no such file; give the folder with Tiresias's jobs and results")
    return pl.read_csv(path)
