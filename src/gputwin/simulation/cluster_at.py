"""The cluster of a run at one moment: who holds each device, how full nodes are, and which gangs would fit.

Placements are intervals, so a moment needs no replay: a device is held by the placements whose segment covers the time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from gputwin.core.errors import UserError
from gputwin.core.units import WHOLE_GPU_MILLI
from gputwin.simulation.result import SimulationResult

GANG_SIZES = (1, 2, 4, 8, 16, 32, 64)
"""Instances of a gang, each with all GPUs of a node."""


@dataclass(frozen=True)
class Moment:
    """The cluster at `time` (s of the trace's clock).

    `devices` one row per held device: node row, device, job row, tenant, milli-GPU of the largest holder and of all;
    `nodes` one row per node with its milli-GPU held and the instances on it.
    """

    time: float
    devices: pl.DataFrame
    nodes: pl.DataFrame
    waiting_jobs: int
    running_jobs: int

    @property
    def allocated(self) -> float:
        """Return the share of all GPUs that is held."""
        total = int(self.nodes["gpu_count"].sum()) * WHOLE_GPU_MILLI
        return float(self.nodes["gpu_milli_held"].sum()) / total if total else 0.0

    def idle_gangs(self) -> pl.DataFrame:
        """Return how many gangs of k whole free nodes fit now, by GPU model: gpu_model, idle_nodes, nodes, gangs_of_k."""
        has_gpus = self.nodes.filter(pl.col("gpu_count") > 0)
        is_idle = pl.col("instances") == 0
        counts = has_gpus.group_by(pl.col("gpu_model").fill_null("unnamed"), maintain_order=True).agg(
            is_idle.sum().cast(pl.Int64).alias("idle_nodes"), pl.len().cast(pl.Int64).alias("nodes")
        )
        return counts.with_columns((pl.col("idle_nodes") // k).alias(f"gangs_of_{k}") for k in GANG_SIZES)


def span_of(result: SimulationResult) -> tuple[float, float]:
    """Return the first submission and the last finite end of a run, s."""
    ends = result.jobs["end_time"].drop_nulls()
    ends = ends.filter(ends.is_finite())
    first = float(result.jobs["submit_time"].min() or 0.0)  # type: ignore[arg-type]
    return first, max(first, float(ends.max())) if ends.len() else first  # type: ignore[arg-type]


def cluster_at(result: SimulationResult, time: float) -> Moment:
    """Return the cluster of a run at `time`, s of the trace's clock."""
    held = held_at(result, pl.lit(time))
    jobs = result.jobs
    owners = jobs.with_row_index("job").select("job", pl.col("tenant").fill_null("unknown"))
    devices = (
        _by_device(held)
        .join(owners, on="job", how="left")
        .sort("gpu_milli", descending=True)
        .group_by("node", "device", maintain_order=True)
        .agg(pl.first("job"), pl.first("tenant"), pl.first("gpu_milli"), pl.col("gpu_milli").sum().alias("held_milli"))
        .sort("node", "device")
    )
    on_node = held.group_by("node").agg(
        (pl.col("gpu_count").cast(pl.Int64) * pl.col("gpu_milli")).sum().alias("gpu_milli_held"),
        pl.len().alias("instances"),
        pl.col("job").n_unique().alias("jobs"),
    )
    nodes = (
        result.nodes.with_row_index("node")
        .join(on_node, on="node", how="left")
        .with_columns(pl.col("gpu_milli_held", "instances", "jobs").fill_null(0))
        .sort("node")
    )
    begun = jobs.filter(pl.col("submit_time") <= time)
    running = held["job"].n_unique()
    done = begun.filter(pl.col("end_time") <= time).height
    never = begun.filter(pl.col("outcome") == "never_fits").height
    return Moment(time, devices, nodes, max(begun.height - running - done - never, 0), running)


def held_at(result: SimulationResult, time: pl.Expr) -> pl.DataFrame:
    """Return the placements that hold something at `time`."""
    segments = result.segments.with_row_index("segment")
    alive = segments.filter((pl.col("start_time") <= time) & (pl.col("end_time").fill_null(np.inf) > time))
    return result.placements.join(alive.select("segment"), on="segment", how="semi")


def _by_device(held: pl.DataFrame) -> pl.DataFrame:
    """Return node, device, job and milli-GPU, one row per placement and device."""
    rows = held.select("node", "devices", "job", "gpu_milli").filter(pl.col("devices") != 0)
    bits = rows["devices"].to_numpy().astype(np.uint64)
    width = int(bits.max()).bit_length() if bits.size else 0
    parts = []
    for device in range(width):
        has = (bits >> np.uint64(device)) & np.uint64(1) == 1
        part = rows.filter(pl.Series(has)).select("node", "job", "gpu_milli")
        parts.append(part.with_columns(pl.lit(device, dtype=pl.Int32).alias("device")))
    schema = {"node": pl.UInt32, "job": pl.UInt32, "gpu_milli": pl.Int32, "device": pl.Int32}
    return pl.concat(parts) if parts else pl.DataFrame(schema=schema)


def jobs_on_node(result: SimulationResult, node: int) -> pl.DataFrame:
    """Return who ran on a node, the earliest first: job_id, tenant, from, until, GPUs there and instances."""
    if not 0 <= node < result.nodes.height:
        raise UserError(f"the run has no node {node}; it has nodes 0 to {result.nodes.height - 1:,}")
    segments = result.segments.with_row_index("segment").select("segment", "start_time", "end_time", "why")
    jobs = result.jobs.with_row_index("job").select("job", "job_id", "tenant")
    gpus = (pl.col("gpu_count").cast(pl.Int64) * pl.col("gpu_milli")).sum() / WHOLE_GPU_MILLI
    return (
        result.placements.filter(pl.col("node") == node)
        .group_by("segment", "job")
        .agg(gpus.alias("gpus"), pl.len().alias("instances"))
        .join(segments, on="segment")
        .join(jobs, on="job")
        .sort("start_time", "job")
        .select("job_id", "tenant", "start_time", "end_time", "gpus", "instances", pl.col("why").cast(pl.String))
    )
