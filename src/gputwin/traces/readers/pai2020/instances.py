"""Instances: one row each, named like the worker that sensors and machine metrics know it by."""

from __future__ import annotations

import polars as pl

from gputwin.traces.quality import QualityLog
from gputwin.traces.readers.pai2020.tables import INSTANCE, IS_RUNNING, Published, with_status

_WORKER = ("job_id", "role", "instance_id")


def instances_of(published: Published, joined: pl.DataFrame) -> pl.DataFrame:
    """Return the instances of the instance table, then those of the joined sample; `inst_id` names their job."""
    parts = [_from_table(part, published.quality) for part in published.parts(INSTANCE)]
    if joined.height:
        parts.append(_from_joined(joined))
    return _told_apart(pl.concat(parts)).drop("inst_name")


def _identity() -> tuple[pl.Expr, ...]:
    # Instances that wait have no worker yet.
    worker = pl.coalesce("worker_name", "inst_name").alias("instance_id")
    job, role, node = (pl.col(c) for c in ("job_name", "task_name", "machine"))
    return job.alias("job_id"), role.alias("role"), worker, node.alias("node_id"), pl.col("inst_name", "inst_id")


def _from_table(frame: pl.DataFrame, quality: QualityLog) -> pl.DataFrame:
    return with_status(frame, INSTANCE, quality).select(
        "_row", *_identity(), "status", "start_time", "end_time", IS_RUNNING
    )


def _from_joined(frame: pl.DataFrame) -> pl.DataFrame:
    """Return one row per instance. The sample's times are its task's, so the instance's own are unknown."""
    unknown = (pl.lit(None, pl.Float64).alias(c) for c in ("start_time", "end_time"))
    named = frame.select("_row", *_identity(), "status", *unknown, IS_RUNNING)
    return named.unique([*_WORKER, "inst_name"], keep="first", maintain_order=True)


def _told_apart(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the frame with a name of its own for each instance.

    A few workers serve several instances of their task, one after the other. The first keeps the worker's name, which
    is what usage is filed under; the others add their instance name.
    """
    shared = frame["instance_id"].hash().is_duplicated()
    if not shared.any():
        return frame
    suspects = frame.select(pl.int_range(pl.len()).alias("_index"), *_WORKER, "inst_name").filter(shared)
    others = suspects.filter(pl.col("inst_name") != pl.col("inst_name").first().over(_WORKER))
    names = others["instance_id"] + "/" + others["inst_name"]
    return frame.with_columns(frame["instance_id"].scatter(others["_index"], names))
