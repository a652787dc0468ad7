"""Who submits and what: tasks per user, instances per task, repetition, kinds of programs and job classes."""

from __future__ import annotations

import narwhals as nw
import numpy as np
import polars as pl

from gputwin.analysis.dimensions import Dimension, labelled
from gputwin.analysis.frames import Frame, aggregate
from gputwin.core.units import HOUR


def owners(frame: Frame, column: str) -> pl.DataFrame:
    """Return totals of each owner (user, tenant, application), most tasks first.

    `owner`, `tasks`, `instances`, `gpu_hours`, shares of all tasks and GPU-hours, `median_wait` s. Tasks whose owner is
    not known count among all tasks.
    """
    totals = aggregate(
        frame,
        [column],
        nw.len().alias("tasks"),
        nw.col("instances").sum().alias("instances"),
        nw.col("gpu_seconds").sum().alias("gpu_hours"),
        nw.col("gpu_seconds").count().alias("_known"),
        nw.col("wait").quantile(0.5, "linear").alias("median_wait"),
    )
    hours = pl.when(pl.col("_known") > 0).then(pl.col("gpu_hours") / HOUR)
    totals = totals.rename({column: "owner"}).with_columns(gpu_hours=hours).drop("_known")
    totals = totals.with_columns(
        (pl.col("tasks") / pl.col("tasks").sum()).alias("task_share"),
        pl.when(pl.col("gpu_hours").sum() > 0)
        .then(pl.col("gpu_hours") / pl.col("gpu_hours").sum())
        .alias("gpu_hour_share"),
    )
    return totals.filter(pl.col("owner").is_not_null()).sort(["tasks", "owner"], descending=[True, False])


def instances_per_task(frame: Frame) -> pl.DataFrame:
    """Return tasks and instances by gang size: `instances`, `tasks`, and shares of tasks and of all instances up to it."""
    sizes = aggregate(frame, ["instances"], nw.len().alias("tasks"))
    held = pl.col("instances") * pl.col("tasks")
    return sizes.with_columns(
        (pl.col("tasks").cum_sum() / pl.col("tasks").sum()).alias("task_share"),
        (held.cum_sum() / held.sum()).alias("instance_share"),
    )


def recurrence(frame: Frame) -> pl.DataFrame:
    """Return how much of the work repeats: groups and tasks by how often the group ran (1, 2–4, 5–19, 20–99, 100+)."""
    sizes = aggregate(frame.filter(~nw.col("group").is_null()), ["group"], nw.len().alias("runs"))
    if sizes.is_empty():
        return pl.DataFrame()
    bounds, labels = np.array([2, 5, 20, 100]), ("1", "2–4", "5–19", "20–99", "100 or more")
    code = np.searchsorted(bounds, sizes["runs"].to_numpy(), side="right")
    found = (
        sizes.with_columns(pl.Series("code", code))
        .group_by("code")
        .agg(pl.len().alias("groups"), pl.col("runs").sum().alias("tasks"))
    )
    return found.sort("code").select(
        pl.Series("runs", [labels[c] for c in sorted(set(code.tolist()))]),
        pl.col("groups").cast(pl.Int64),
        "tasks",
        (pl.col("tasks") / pl.col("tasks").sum()).alias("task_share"),
    )


def composition(frame: Frame, dimension: Dimension) -> pl.DataFrame:
    """Return tasks, GPU-hours and their shares by group of a dimension, most tasks first; runtime median in s."""
    known = frame.filter(~nw.col(dimension.column).is_null())
    found = aggregate(
        known,
        [dimension.column],
        nw.len().alias("tasks"),
        (nw.col("gpu_seconds").sum() / HOUR).alias("gpu_hours"),
        nw.col("runtime").quantile(0.5, "linear").alias("median_runtime"),
    )
    found = found.with_columns(
        (pl.col("tasks") / pl.col("tasks").sum()).alias("task_share"),
        pl.when(pl.col("gpu_hours").sum() > 0)
        .then(pl.col("gpu_hours") / pl.col("gpu_hours").sum())
        .alias("gpu_hour_share"),
    )
    found = labelled(found, dimension)
    return found if dimension.labels else found.sort(["tasks", "group"], descending=[True, False])
