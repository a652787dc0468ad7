"""A saved model applied to a trace: predictions, intervals and classes as a frame, and reasons for one job."""

from __future__ import annotations

from typing import Any

import polars as pl

from gputwin.core.errors import UserError
from gputwin.profiling.classes.classes import OTHER
from gputwin.profiling.jobs import Submitted, ran_so_far
from gputwin.profiling.store import Saved
from gputwin.traces.dataset import Trace

MOST_REASONS = 8


def predict_trace(saved: Saved, trace: Trace) -> pl.DataFrame:
    """Return each task's `predicted_seconds`, 80 % interval (`low_seconds`, `high_seconds`), `mean_seconds` and `class`.

    All are of the whole duration; a task that still runs is predicted given that it has run for `ran_seconds` already.
    """
    if trace.tasks.is_empty():
        raise UserError("the trace has no tasks, so there is nothing to predict")
    jobs = Submitted.of(trace.tasks)
    saved.check(jobs)
    ran = ran_so_far(trace.tasks)
    seconds, quantiles, mean = saved.model.forecast(jobs, ran=ran)
    classes = [OTHER] * jobs.size
    if saved.classes is not None:
        numbers = saved.classes.classifier.classify(jobs)
        classes = [saved.classes.name_of(int(k)) for k in numbers]
    return jobs.frame.select("job_id", "role").with_columns(
        pl.Series("predicted_seconds", seconds),
        pl.Series("low_seconds", quantiles[:, 0]),
        pl.Series("high_seconds", quantiles[:, 2]),
        pl.Series("mean_seconds", mean),
        pl.Series("ran_seconds", ran),
        pl.Series("class", classes, dtype=pl.String),
    )


def explain_job(saved: Saved, trace: Trace, job_id: str) -> pl.DataFrame:
    """Return `role`, `reason`, `value`, `factor` for the tasks of one job, the strongest reasons first."""
    tasks = trace.tasks.filter(pl.col("job_id") == job_id)
    if tasks.is_empty():
        raise UserError(f"the trace has no job '{job_id}'; take one of its job ids")
    jobs = Submitted.of(tasks)
    reasons = saved.model.explain(jobs).group_by("row", maintain_order=True).head(MOST_REASONS)
    roles = jobs.frame.select("role").with_row_index("row").with_columns(pl.col("row").cast(pl.Int64))
    return roles.join(reasons, on="row", how="inner", maintain_order="left").drop("row")


def hindsight(saved: Saved, trace: Trace) -> str | None:
    """Return a warning where the model learned from this very trace, None where it did not."""
    if saved.fingerprint != trace.meta.fingerprint:
        return None
    return (
        "the model learned from this very trace, so its predictions know how these jobs ended; for a fair test see what "
        "`gputwin profile` prints, or predict jobs that came later"
    )


def summary_of(saved: Saved, trace: Trace, frame: pl.DataFrame) -> dict[str, Any]:
    """Return what was predicted, in short, as plain data."""
    return {
        "model": saved.kind,
        "trace_fingerprint": saved.fingerprint,
        "warning": hindsight(saved, trace),
        "tasks": frame.height,
        "predicted_seconds": {
            "mean": frame["predicted_seconds"].mean(),
            "p50": frame["predicted_seconds"].median(),
            "p90": frame["predicted_seconds"].quantile(0.9),
        },
        "by_class": frame.group_by("class")
        .agg(pl.len().alias("tasks"), pl.col("predicted_seconds").median().alias("median_predicted_seconds"))
        .sort("tasks", "class", descending=[True, False])
        .to_dicts(),
    }
