"""What jobs lived through in a run, as frames: segments, where they ran, and the parts of each completion time."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from gputwin.simulation.engine.state.lives import REASONS, SEGMENTS, SPOTS
from gputwin.simulation.engine.state.records import DRAINING, START, UP
from gputwin.simulation.engine.world import FINISHED, RUNS
from gputwin.simulation.held import DEMAND
from gputwin.simulation.run import Run

_FIELDS = {"gpu_model": "slow_model", "spread": "slow_spread", "neighbours": "slow_neighbours", "size": "slow_size"}


def has_changes(run: Run) -> bool:
    """Return whether jobs could be stopped, slowed or resized in this run."""
    return bool(run.world.settings["changes"][0])


def segments_of(run: Run) -> pl.DataFrame:
    """Return who ran when (s), how fast, and why that ended: one row per stretch in one place at one rate.

    `by`, where jobs can be stopped: the row of the job that took its place.

    A job that still runs when the run is over has a last segment that ends with it.
    """
    jobs = run.world.queue.jobs
    if has_changes(run):
        log = run.world.lives.segments[: run.world.lives.counts[SEGMENTS]]
        return pl.DataFrame(
            {
                "job": log["job"].astype(np.uint32),
                "start_time": log["start"],
                "end_time": log["end"],
                "rate": log["rate"],
                "why": pl.Series(REASONS, dtype=pl.Categorical).gather(log["why"]),
                "by": pl.Series(log["by"]).replace(-1, None).cast(pl.UInt32),
            }
        )
    ran = np.flatnonzero((jobs["outcome"] == FINISHED) | (jobs["outcome"] == RUNS))
    return pl.DataFrame(
        {
            "job": ran.astype(np.uint32),
            "start_time": jobs["start"][ran],
            "end_time": jobs["end"][ran],
            "rate": np.ones(ran.size),
            "why": pl.Series(REASONS, dtype=pl.Categorical).gather(np.zeros(ran.size, np.uint32)),
        }
    )


def placements_of(run: Run) -> pl.DataFrame:
    """Return segment row, job row, node row, bit set of devices and the share of each for every placed instance."""
    workload = run.workload
    if has_changes(run):
        lives = run.world.lives
        log, spots = lives.segments[: lives.counts[SEGMENTS]], lives.spots[: lives.counts[SPOTS]]
        segment = np.repeat(np.arange(log.size, dtype=np.uint32), log["spots"])
        job = log["job"][segment].astype(np.uint32)
    else:
        spots = run.world.slots
        instances = workload.shapes["instances"][workload.jobs["shape"]]
        placed = spots["node"] >= 0
        job = np.repeat(np.arange(instances.size, dtype=np.uint32), instances)
        job = job if placed.all() else job[placed]
        outcome = run.world.queue.jobs["outcome"]
        row = np.cumsum((outcome == FINISHED) | (outcome == RUNS)) - 1
        segment = row[job].astype(np.uint32)
        spots = spots if placed.all() else spots[placed]
    # Field by field: whole records of as many requests as there are instances would take gigabytes.
    request = spots["request"].astype(np.uint32)
    cut: dict[str, Any] = {}
    if run.world.settings["mig"][0]:
        cut["first_slice"] = (spots["devices"] >> START).astype(np.uint8)
    if run.changes.sharing is not None and run.changes.sharing.rule.divides:
        cut[DEMAND] = workload.requests["demand"].astype(np.int32)[request]
    return pl.DataFrame(
        {
            "segment": segment,
            "job": job,
            "node": spots["node"].astype(np.uint32),
            "devices": spots["devices"] & ((1 << START) - 1),
            "request": request,
            "gpu_count": workload.requests["gpu_count"].astype(np.int32)[request],
            "gpu_milli": workload.requests["gpu_milli"].astype(np.int32)[request],
            **cut,
        }
    )


def with_lives(jobs: pl.DataFrame, run: Run) -> pl.DataFrame:
    """Return the jobs with their stops and the parts of their completion time.

    duration + waits + slowdowns + lost + overhead = completion time of every finished job, but for rounding; exactly in
    `completion_of`.
    """
    lives, factors = run.world.lives.records, run.world.lives.factors
    columns: dict[str, Any] = {
        "stops": lives["stops"],
        "lost_seconds": lives["lost"],
        "overhead_seconds": lives["overheads"],
        **{f"slow_{name}_seconds": factors[field] for name, field in _FIELDS.items()},
    }
    return jobs.with_columns(pl.Series(name, value) for name, value in columns.items())


def stops_by_reason(segments: pl.DataFrame) -> dict[str, int]:
    """Return how many segments ended for each reason other than the job's end."""
    counts = segments.group_by("why").agg(pl.len()).sort("why")
    return {str(why): int(n) for why, n in counts.iter_rows() if why not in ("finished", "rate_changed")}


def gpus_of_nodes(run: Run) -> np.ndarray[Any, Any]:
    """Return the GPUs of each node of the run's cluster, those that a power cap leaves unused counted."""
    return run.cluster.nodes()["gpu_count"].to_numpy().astype(np.float64)


def capacity_over_time(run: Run, times: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the share of all GPUs that jobs can hold, on nodes that are up or drain, the mean of each bin from `times`."""
    nodes, log = run.world.machines.nodes, run.world.outages.log[: run.world.outages.count[0]]
    gpus, width = nodes["gpu_count"].astype(np.float64), run.bin_seconds
    edges = np.append(times, times[-1] + width)
    lost = np.zeros(edges.size)
    since: dict[int, float] = {}

    def take_out(node: int, begin: float, end: float) -> None:
        lost[:] += gpus[node] * (np.clip(edges, None, end) - np.clip(edges, None, begin)).clip(0.0)

    for time, node, state in log.tolist():
        if state not in (UP, DRAINING):
            since.setdefault(node, time)
        elif node in since:
            take_out(node, since.pop(node), time)
    for node, begin in since.items():
        take_out(node, begin, edges[-1])
    return np.asarray((gpus.sum() - np.diff(lost) / width) / max(gpus_of_nodes(run).sum(), 1.0))
