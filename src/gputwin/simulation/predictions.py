"""What the scheduler believes of durations: the truth, what was requested, or predictions."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from gputwin.core.errors import InputError, UserError, shorten
from gputwin.traces.framefile import read_frame


def read_predictions(path: Path) -> pl.DataFrame:
    """Return the predictions in a file of `gputwin predict`."""
    try:
        return _by_mean(read_frame(path))
    except (OSError, ValueError, pl.exceptions.PolarsError) as error:
        remedy = "make one with: gputwin predict MODEL TRACE -o FILE.parquet"
        raise InputError(f"not a file of predictions ({shorten(error, 100)})", file=path, remedy=remedy) from None


def _by_mean(predictions: pl.DataFrame) -> pl.DataFrame:
    """Return what the scheduler goes by: the mean of each task's duration, where the predictions have it."""
    known = [c for c in ("mean_seconds", "predicted_seconds") if c in predictions.columns]
    return predictions.select("job_id", "role", pl.coalesce(known or "predicted_seconds").alias("predicted_seconds"))


def believed(tasks: pl.DataFrame, predict: str | pl.DataFrame) -> pl.Series:
    """Return how long the scheduler believes each task runs, s."""
    if isinstance(predict, pl.DataFrame):
        task = ["job_id", "role"]
        wanted = _by_mean(predict).with_columns(pl.col("predicted_seconds").cast(pl.Float64)).unique(task)
        found = tasks.select(task).join(wanted, on=task, how="left", maintain_order="left")["predicted_seconds"]
        unknown = int((found.is_null() | ~found.is_finite() | (found < 0)).sum())
        if unknown:
            raise UserError(f"the predictions have no duration for {unknown:,} tasks; make them from the same trace")
        return found
    if predict not in ("oracle", "requested"):
        raise UserError(
            f"unknown prediction '{predict}'; known: oracle, requested, a file of predictions, a saved model's folder"
        )
    if predict == "oracle":
        return tasks["runtime"]
    limit = tasks.select(pl.when(pl.col("requested_seconds") > 0).then("requested_seconds")).to_series()
    if limit.null_count() == limit.len():
        raise UserError(
            "the trace has no requested times, so a scheduler cannot go by them; take --predict oracle, a saved model's "
            "folder or a file of predictions"
        )
    return limit.fill_null(limit.max())
