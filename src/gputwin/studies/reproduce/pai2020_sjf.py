"""Shortest-job-first with predicted durations, as published with the Alibaba PAI 2020 trace.

Weng et al., "MLaaS in the Wild", NSDI'22, section 5.2, and the publisher's simulator: 20,000 jobs arrive at 1,000 a
minute at 6,500 GPUs taken as one pool; durations are predicted by the mean of earlier jobs with the same attributes.
The original jobs are not public in one piece, so ours are drawn from the generator fitted to them; the figures stand
beside the published ones and cannot be equal to them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl

from gputwin.core.rng import stream
from gputwin.profiling.jobs import History
from gputwin.simulation.cluster import Cluster, NodeGroup
from gputwin.simulation.scenario import Scenario
from gputwin.simulation.simulate import name_of
from gputwin.studies.prediction_value.study import (
    FIFO,
    ORACLE,
    PredictionValue,
    prediction_value,
    predictions_of,
    rows_of,
)
from gputwin.traces.dataset import Trace
from gputwin.traces.synthetic import generate

GPUS = 6500
JOBS = 20_000
JOBS_PER_MINUTE = 1000.0
PAST_JOBS = 180_000
MODELS = ("user-median", "group-median", "signature-median", "cluster", "online", "boosted", "forest", "stack")
_POOL = 50
"""GPUs per node of the pool: shares of one GPU never straddle nodes, and a gang's instances fit anywhere."""


@dataclass(frozen=True)
class Published:
    """A row of the publisher's table, s."""

    rule: str
    mean_jct_seconds: float
    mean_wait_seconds: float

    @property
    def gain_kept(self) -> float:
        """Return the share of the oracle's reduction of the mean wait."""
        return (PUBLISHED[0].mean_wait_seconds - self.mean_wait_seconds) / (
            PUBLISHED[0].mean_wait_seconds - PUBLISHED[1].mean_wait_seconds
        )


PUBLISHED = (
    Published("fifo", 7918.5, 2879.8),
    Published("sjf, oracle", 5988.6, 949.9),
    Published("sjf, user", 6278.3, 1239.6),
    Published("sjf, group and user", 6071.0, 1032.3),
    Published("sjf, user, group and GPU", 6001.9, 963.2),
)


@dataclass(frozen=True)
class Reproduction:
    """Ours beside theirs, and the load of the setting."""

    ours: PredictionValue
    seed: int
    gpu_hours_per_gpu: float

    def to_json(self) -> dict[str, Any]:
        """Return the result as plain data."""
        return {
            "seed": self.seed,
            "gpus": GPUS,
            "jobs_per_minute": JOBS_PER_MINUTE,
            "gpu_hours_per_gpu": self.gpu_hours_per_gpu,
            **self.ours.to_json(),
            "published": [{**asdict(p), "gain_kept": p.gain_kept} for p in PUBLISHED],
        }


def reproduce(
    *,
    jobs: int = JOBS,
    past_jobs: int = PAST_JOBS,
    seed: int = 0,
    models: tuple[str, ...] = MODELS,
    progress: Callable[[str], None] = lambda step: None,
) -> Reproduction:
    """Return the experiment: models learn from `past_jobs` earlier jobs and predict the `jobs` that are scheduled."""
    progress("generating jobs")
    whole = generate("pai2020", jobs=jobs + past_jobs, seed=seed).tables["tasks"]
    earlier, later = _halves(whole, jobs)
    scheduled = _rushed(later, jobs, seed)
    tested = History.of(scheduled)
    # A job is predicted when it came in the trace, from what had ended by then: the rush is the experiment's alone.
    asked = History.of_tasks(later)
    rows = rows_of(asked.jobs, tested.jobs)
    found = predictions_of(History.of_tasks(earlier), asked, models, seed=seed, progress=progress)
    result = prediction_value(
        scheduled,
        pool(),
        {name: values[rows] for name, values in found.items()},
        scenario=Scenario(trace=name_of(scheduled), backfill="greedy"),
        progress=progress,
    )
    return Reproduction(result, seed, _gpu_hours(scheduled.tasks) / GPUS)


def pool() -> Cluster:
    """Return the 6,500 GPUs with CPU and memory to spare."""
    return Cluster("one pool", (NodeGroup("pool", count=GPUS // _POOL, gpus=_POOL),))


def _halves(whole: pl.DataFrame, jobs: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the tasks of earlier jobs as known when the later ones begin, and those of the last `jobs` jobs."""
    tasks = whole.filter(pl.col("start_time").is_not_null() & pl.col("end_time").is_not_null())
    by_job = tasks.group_by("job_id").agg(pl.col("submit_time").min()).sort("submit_time", "job_id")
    last = by_job.tail(jobs)
    origin = last["submit_time"][0]
    later = tasks.join(last, on="job_id", how="semi", maintain_order="left")
    earlier = tasks.join(last, on="job_id", how="anti", maintain_order="left").filter(pl.col("end_time") < origin)
    return earlier, later


def _rushed(tasks: pl.DataFrame, jobs: int, seed: int) -> Trace:
    """Return the jobs in random order, arriving at 1,000 a minute and allowed on any GPU."""
    names = tasks["job_id"].unique(maintain_order=True)
    rng = stream(seed, "pai2020-sjf")
    at = np.sort(rng.uniform(0.0, 60.0 * jobs / JOBS_PER_MINUTE, names.len()))
    arrivals = pl.DataFrame({"job_id": names.gather(rng.permutation(names.len())), "submit_time": at})
    ran = pl.col("end_time") - pl.col("start_time")
    frame = (
        tasks.with_columns(ran.alias("duration_seconds"))
        .drop("submit_time")
        .join(arrivals, on="job_id", how="left", maintain_order="left")
        .with_columns(
            pl.lit(None, pl.Float64).alias("start_time"),
            pl.lit(None, pl.Float64).alias("end_time"),
            pl.lit(None, pl.String).alias("gpu_models_allowed"),
            pl.lit(None, pl.Int64).alias("cpu_milli"),
            pl.lit(None, pl.Int64).alias("memory_mib"),
        )
        .select(tasks.columns)
    )
    from gputwin.traces.dataset import TraceMeta

    return Trace.from_frames({"tasks": frame}, TraceMeta("synthetic:pai2020, rushed"))


def _gpu_hours(tasks: pl.DataFrame) -> float:
    milli = pl.col("instances") * pl.col("gpu_count") * pl.col("gpu_milli") * pl.col("duration_seconds")
    return float(tasks.select(milli.sum()).item() or 0.0) / 1000.0 / 3600.0


__all__ = ["FIFO", "ORACLE", "PUBLISHED", "Reproduction", "pool", "reproduce"]
