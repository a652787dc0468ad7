"""Who ran beside a job on the same GPUs, and for how long."""

from __future__ import annotations

from typing import Any

import polars as pl

from gputwin.core.units import format_duration
from gputwin.simulation.engine.state.records import WHOLE
from gputwin.simulation.result import SimulationResult


def neighbours_of(result: SimulationResult, row: int, most: int = 5) -> list[dict[str, Any]]:
    """Return the jobs that ran on a GPU of job `row` while it did: s beside it, and the GPUs they asked for.

    Sorted by seconds × share of a GPU asked for, the most first: who pressed most.
    """
    times = result.segments.with_row_index("segment").select("segment", "start_time", "end_time")
    placed = result.placements.select("segment", "job", "node", "devices").join(times, on="segment")
    mine = placed.filter(pl.col("job") == row).unique(["segment", "node", "devices"])
    others = placed.filter(pl.col("job") != row).join(mine.select("node").unique(), on="node", how="semi")
    both = mine.join(others, on="node", suffix="_other").filter((pl.col("devices") & pl.col("devices_other")) != 0)
    seconds = pl.min_horizontal("end_time", "end_time_other") - pl.max_horizontal("start_time", "start_time_other")
    asked = (pl.col("gpu_milli") / WHOLE / pl.col("instances")).alias("gpus")
    jobs = result.jobs.with_row_index("job_other").select("job_other", "job_id", "tenant", asked)
    return (
        both.with_columns(seconds.alias("seconds"))
        .filter(pl.col("seconds") > 0)
        .unique(["segment", "segment_other"])
        .group_by("job_other")
        .agg(pl.col("seconds").sum())
        .join(jobs, on="job_other")
        .sort(pl.col("seconds") * pl.col("gpus"), "job_id", descending=[True, False])
        .head(most)
        .select("job_id", "tenant", "gpus", "seconds")
        .to_dicts()
    )


def slow_words(slowed: float, neighbours: list[dict[str, Any]]) -> list[str]:
    """Return the sentence that says how much neighbours slowed a job, and which of them most; none where they did not."""
    if slowed <= 0 or not neighbours:
        return []
    top = neighbours[0]
    more = f" ({len(neighbours) - 1} more in --json)" if len(neighbours) > 1 else ""
    return [
        f"Jobs on the same GPU slowed it by {format_duration(slowed)}; the one that pressed most was job {top['job_id']} "
        f"({top['tenant']}), which asked for {top['gpus']:.2g} GPUs an instance and ran beside it for "
        f"{format_duration(top['seconds'])}{more}."
    ]
