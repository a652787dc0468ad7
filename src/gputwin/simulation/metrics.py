"""The figures of a run: pure functions of its frames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from gputwin.core.percentiles import percentile
from gputwin.core.units import HOUR, WHOLE_GPU_MILLI
from gputwin.simulation.engine.attribution.causes import CAUSE_NAMES

SUMMARY_KEYS = (
    "jobs",
    "jobs_already_running",
    "jobs_with_wait",
    "outcomes",
    "wait_seconds",
    "jct_seconds",
    "slowdown",
    "bounded_slowdown",
    "makespan_seconds",
    "throughput_jobs_per_hour",
    "allocation",
    "fragmentation",
    "jain_fairness",
    "load_balance",
    "wait_causes_seconds",
    "sla_violations",
    "little_law_relative_error",
    "mean_jobs_running",
)
"""What the summary of every run has."""
_QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}


def summarise(
    jobs: pl.DataFrame,
    segments: pl.DataFrame,
    series: pl.DataFrame,
    placements: pl.DataFrame,
    nodes: pl.DataFrame,
    *,
    job_seconds_waited: float,
    job_seconds_run: float,
    sla_wait_seconds: float | None,
) -> dict[str, Any]:
    """Return the summary record of a run; figures that do not apply are None."""
    finished = jobs.filter(pl.col("outcome") == "finished")
    makespan = _makespan(jobs)
    outcomes = dict(jobs["outcome"].value_counts().sort("outcome").iter_rows())
    return {
        "jobs": jobs.height,
        "jobs_already_running": int(jobs["was_running"].sum()),
        "jobs_with_wait": jobs.height - jobs["wait_seconds"].null_count(),
        "outcomes": outcomes,
        "wait_seconds": spread(jobs["wait_seconds"]),
        "jct_seconds": spread(finished["jct_seconds"]),
        "slowdown": spread(finished["slowdown"]),
        "bounded_slowdown": spread(finished["bounded_slowdown"]),
        "makespan_seconds": makespan,
        "throughput_jobs_per_hour": finished.height / makespan * HOUR if makespan else None,
        "allocation": allocation(series),
        "fragmentation": float(series["gpu_fragmentation"].mean() or 0.0),  # type: ignore[arg-type]
        "jain_fairness": jain_fairness(finished),
        "load_balance": load_balance(segments, placements, nodes),
        "wait_causes_seconds": wait_causes(jobs),
        "sla_violations": None if sla_wait_seconds is None else int((jobs["wait_seconds"] > sla_wait_seconds).sum()),
        "little_law_relative_error": little_law_error(jobs, job_seconds_waited),
        "mean_jobs_running": job_seconds_run / makespan if makespan else None,
    }


def spread(values: pl.Series) -> dict[str, float] | None:
    """Return mean, median, p95 and p99; None for no values."""
    values = values.drop_nulls()
    values = values.filter(values.is_finite())
    if values.is_empty():
        return None
    result = {"mean": float(values.mean())}  # type: ignore[arg-type]
    known = values.cast(pl.Float64).to_numpy()
    for name, q in _QUANTILES.items():
        result[name] = percentile(known, q)
    return result


def _makespan(jobs: pl.DataFrame) -> float | None:
    """Return the time from the first submission to the last end, s."""
    ends = jobs["end_time"].drop_nulls()
    ends = ends.filter(ends.is_finite())
    return None if ends.is_empty() else float(ends.max()) - float(jobs["submit_time"].min())  # type: ignore[arg-type]


def allocation(series: pl.DataFrame) -> dict[str, float]:
    """Return the time-weighted mean share of each resource allocated in the window of the series."""
    columns = [c for c in series.columns if c.endswith("_allocation") or c.startswith("gpu_allocation_")]
    return {c.replace("_allocation", ""): float(series[c].mean() or 0.0) for c in columns}  # type: ignore[arg-type]


def jain_fairness(finished: pl.DataFrame) -> float | None:
    """Return Jain's index (Σx)²/(n·Σx²) over tenants, x = time served / time in the system.

    Jain, Chiu and Hawe, 1984. A tenant that never waits has x = 1; equal treatment gives 1 whatever the demand.
    """
    by_tenant = (
        finished.filter(pl.col("jct_seconds") > 0)
        .group_by("tenant", maintain_order=True)
        .agg((pl.col("duration_seconds").sum() / pl.col("jct_seconds").sum()).alias("x"))
    )
    x = by_tenant["x"].to_numpy()
    return float(x.sum() ** 2 / (x.size * (x**2).sum())) if x.size and (x**2).sum() > 0 else None


def effective_training_time_ratio(jobs: pl.DataFrame, gpu_seconds: pl.Series) -> float | None:
    """Return the share of the GPU time that finished jobs held in which work was done that counted, at full speed.

    `gpu_seconds`: what each job held. The rest went to lost work, saving, restarting, resizing, slow GPUs and sizes that
    scale badly. After Kokolis et al., HPCA'25, without waits.
    """
    done = (
        jobs.with_columns(gpu_seconds.alias("held"))
        .filter((pl.col("outcome") == "finished") & (pl.col("gpu_milli") > 0))
        .with_columns(
            ran=pl.col("jct_seconds") - pl.col("wait_seconds"),
            worked=pl.sum_horizontal("duration_seconds", pl.col("^slow_.*_seconds$")),
            work=pl.col("gpu_milli") / WHOLE_GPU_MILLI * pl.col("duration_seconds"),
        )
        .filter(pl.col("ran") > 0)
    )
    total = float(done["held"].sum())
    # A job that was faster than expected, on better or fewer GPUs, counts for what it held while it worked, no more.
    counted = done.select(pl.min_horizontal("work", pl.col("held") * pl.col("worked") / pl.col("ran")).sum()).item()
    return float(counted) / total if total > 0 else None


def load_balance(segments: pl.DataFrame, placements: pl.DataFrame, nodes: pl.DataFrame) -> float | None:
    """Return 1 − (max − min)/max over GPU nodes of the mean GPU share allocated on each."""
    run = (segments["end_time"] - segments["start_time"]).to_numpy()
    if placements.is_empty() or not np.isfinite(run[~np.isnan(run)]).all():
        return None
    used = (
        placements.select(
            "node",
            (pl.col("gpu_count") * pl.col("gpu_milli") * pl.Series(run[placements["segment"].to_numpy()])).alias("use"),
        )
        .group_by("node")
        .agg(pl.col("use").sum())
    )
    gpus = nodes["gpu_count"].to_numpy()
    load = np.zeros(gpus.size)
    load[used["node"].to_numpy()] = used["use"].to_numpy()
    load = load[gpus > 0] / (gpus[gpus > 0] * WHOLE_GPU_MILLI)
    return float(1 - (load.max() - load.min()) / load.max()) if load.size and load.max() > 0 else None


def wait_causes(jobs: pl.DataFrame) -> dict[str, float] | None:
    """Return the seconds all jobs waited, by cause."""
    columns = {name: f"wait_{name}_seconds" for name in CAUSE_NAMES}
    if columns[CAUSE_NAMES[0]] not in jobs.columns:
        return None
    return {name: float(jobs[column].sum()) for name, column in columns.items()}


def little_law_error(jobs: pl.DataFrame, job_seconds_waited: float) -> float:
    """Return the relative difference of ∫ queue length dt and Σ waits (Little, 1961); 0 up to rounding."""
    total = float(jobs["wait_seconds"].sum())
    return abs(job_seconds_waited - total) / total if total > 0 else abs(job_seconds_waited)


def cost_of_nodes(prices: Sequence[tuple[int, float | None]], makespan_seconds: float | None) -> float | None:
    """Return what all nodes cost until the last job ends, from (nodes, price an hour); None where a price is not known."""
    known = [count * price for count, price in prices if price is not None]
    if makespan_seconds is None or len(known) < len(prices):
        return None
    return sum(known) * makespan_seconds / HOUR
