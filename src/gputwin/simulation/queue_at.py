"""Every tenant's queue in a run at one moment: who waits, runs and has ended, waits so far, and who was stopped."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from gputwin.core.units import WHOLE_GPU_MILLI
from gputwin.simulation.cluster_at import held_at
from gputwin.simulation.result import SimulationResult

WAIT_BUCKETS = (1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0, 640.0, 1280.0, 2560.0, 5120.0, 10240.0)
"""Bounds of the counts of waits, s."""
_ENDS = ("finished", "rate_changed")


@dataclass(frozen=True)
class QueueMoment:
    """The queues at `time` (s of the trace's clock), one row per tenant.

    `queues`: tenant, pending, inadmissible, active, admitted, finished, wait_sum, wait_le_B for every bucket B;
    `holding`: tenant, gpu_model, gpus; `evictions`: tenant, reason, count so far.
    """

    time: float
    queues: pl.DataFrame
    holding: pl.DataFrame
    evictions: pl.DataFrame


def queues_at(result: SimulationResult, time: float) -> QueueMoment:
    """Return all queues of a run at `time`."""
    jobs = result.jobs.with_row_index("job").with_columns(pl.col("tenant").fill_null("unknown"))
    never = pl.col("outcome") == "never_fits"
    held = held_at(result, pl.lit(time))
    running = pl.col("job").is_in(held["job"].unique().to_list())
    ended = pl.col("end_time").fill_null(float("inf")) <= time
    started = pl.col("start_time").fill_null(float("inf")) <= time
    wait = pl.col("wait_seconds").filter(started)
    queues = (
        jobs.filter(pl.col("submit_time") <= time)
        .group_by("tenant")
        .agg(
            (~never & ~running & ~ended).sum().alias("pending"),
            never.sum().alias("inadmissible"),
            running.sum().alias("active"),
            started.sum().alias("admitted"),
            (ended & (pl.col("outcome") == "finished")).sum().alias("finished"),
            wait.sum().alias("wait_sum"),
            *((wait <= bound).sum().alias(f"wait_le_{bound:g}") for bound in WAIT_BUCKETS),
        )
        .sort("tenant")
    )
    models = result.nodes.with_row_index("node").select("node", pl.col("gpu_model").fill_null("unnamed"))
    owners = jobs.select("job", "tenant")
    gpus = (pl.col("gpu_count").cast(pl.Int64) * pl.col("gpu_milli")).sum() / WHOLE_GPU_MILLI
    holding = (
        held.join(models, on="node")
        .join(owners, on="job")
        .group_by("tenant", "gpu_model")
        .agg(gpus.alias("gpus"))
        .sort("tenant", "gpu_model")
    )
    evictions = (
        result.segments.with_columns(pl.col("why").cast(pl.String).alias("reason"))
        .filter(~pl.col("reason").is_in(_ENDS) & (pl.col("end_time") <= time))
        .join(owners, on="job")
        .group_by("tenant", "reason")
        .agg(pl.len().alias("count"))
        .sort("tenant", "reason")
    )
    return QueueMoment(time, queues, holding, evictions)
