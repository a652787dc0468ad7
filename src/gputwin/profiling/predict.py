"""A saved model applied to a trace: predictions, intervals and classes as a frame, their errors, reasons for one job.

A job is predicted as if on the day it was submitted: the model knows its history and whatever jobs of the trace had
ended by then, and nothing that happened later.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from gputwin.core.display import Shown
from gputwin.core.errors import UserError
from gputwin.core.units import percent
from gputwin.profiling.alignment import align
from gputwin.profiling.classes.classes import OTHER
from gputwin.profiling.evaluation.scores import LEVELS, Scores, score
from gputwin.profiling.jobs import Flags, Floats, History, Submitted, actual_seconds, has_outcome, ran_so_far
from gputwin.profiling.model import DurationModel
from gputwin.profiling.store import Saved
from gputwin.traces.dataset import Trace

MOST_REASONS = 8
HERE, BASELINE, PROMISED = "the model here", "median of the user's jobs here", "the model in its profile"


@dataclass(frozen=True, repr=False)
class Predictions(Shown):
    """`frame` has one row per task: `predicted_seconds`, an 80 % interval (`low_seconds`, `high_seconds`),
    `mean_seconds`, `ran_seconds` (of tasks that still run), `actual_seconds` (null where unknown) and `class`.

    `scores` are those of the model and of a baseline over jobs whose outcome is known and that the model did not learn
    from, and the model's in its profile; `notes` say what the predictions rest on.
    """

    kind: str
    frame: pl.DataFrame
    scores: dict[str, Scores]
    notes: tuple[str, ...]

    def _title(self) -> str:
        return f"Predictions of {self.frame.height:,} tasks by {self.kind}"

    def _lines(self) -> list[str]:
        scored = [f"{who}: {percent(s.within_2x)} within a factor of two" for who, s in self.scores.items()]
        return [*scored, *self.notes]

    def to_json(self) -> dict[str, Any]:
        """Return what was predicted, in short, as plain data."""
        seconds = self.frame["predicted_seconds"]
        by_class = self.frame.group_by("class").agg(
            pl.len().alias("tasks"), pl.col("predicted_seconds").median().alias("median_predicted_seconds")
        )
        return {
            "model": self.kind,
            "notes": list(self.notes),
            "tasks": self.frame.height,
            "predicted_seconds": {
                "mean": seconds.mean(),
                "p50": seconds.median(),
                "p90": seconds.quantile(0.9, "linear"),
            },
            "scores": {name: scores.to_json() for name, scores in self.scores.items()},
            "by_class": by_class.sort("tasks", "class", descending=[True, False]).to_dicts(),
        }


def predict_trace(saved: Saved, trace: Trace) -> Predictions:
    """Return how long each task of a trace will run, in all; of tasks that still run, given how long they have."""
    asked = _Asked.of(saved, trace)
    seconds, quantiles, mean = asked.model.forecast(asked.jobs, LEVELS, ran=asked.ran)
    classes = [OTHER] * asked.jobs.size
    if saved.classes is not None:
        classes = [saved.classes.name_of(int(k)) for k in saved.classes.classifier.classify(asked.jobs)]
    frame = asked.jobs.frame.select("job_id", "role").with_columns(
        pl.Series("predicted_seconds", seconds),
        pl.Series("low_seconds", quantiles[:, 0]),
        pl.Series("high_seconds", quantiles[:, -1]),
        pl.Series("mean_seconds", mean),
        pl.Series("ran_seconds", asked.ran),
        pl.Series("actual_seconds", asked.actual, nan_to_null=True),
        pl.Series("class", classes, dtype=pl.String),
    )
    return Predictions(saved.kind, frame, _scores(saved, asked, seconds, quantiles), asked.notes)


def explain_job(saved: Saved, trace: Trace, job_id: str) -> pl.DataFrame:
    """Return `role`, `reason`, `value`, `factor` for the tasks of one job, the strongest reasons first."""
    if job_id not in trace.tasks["job_id"]:
        raise UserError(f"the trace has no job '{job_id}'; take one of its job ids")
    asked = _Asked.of(saved, trace)
    jobs = Submitted(asked.jobs.frame.filter(pl.col("job_id") == job_id))
    reasons = asked.model.explain(jobs).group_by("row", maintain_order=True).head(MOST_REASONS)
    roles = jobs.frame.select("role").with_row_index("row").with_columns(pl.col("row").cast(pl.Int64))
    return roles.join(reasons, on="row", how="inner", maintain_order="left").drop("row")


@dataclass(frozen=True)
class _Asked:
    """The tasks of a trace on the model's clock, and the model as it learns from those among them that end."""

    jobs: Submitted
    model: DurationModel
    ran: Floats
    actual: Floats
    learned: Flags
    """Tasks the model may have learned from."""
    notes: tuple[str, ...]

    @classmethod
    def of(cls, saved: Saved, trace: Trace) -> _Asked:
        if trace.tasks.is_empty():
            raise UserError("the trace has no tasks, so there is nothing to predict")
        recorded = saved.recording
        aligned = align(recorded, trace)
        tasks = aligned.apply(trace.tasks)
        jobs = Submitted.of(tasks)
        saved.check(jobs)
        learned = jobs.arrival < recorded.last_arrival
        if recorded.fingerprint == trace.meta.fingerprint:
            learned = np.ones(jobs.size, np.bool_)
        model = saved.model
        if has_outcome(tasks) and not learned.all():
            model = model.observing(_fresh(saved, History.of_tasks(tasks)))
        notes = [aligned.assumption, _hindsight(saved, jobs, learned)]
        return cls(jobs, model, ran_so_far(tasks), actual_seconds(tasks), learned, tuple(n for n in notes if n))


def _fresh(saved: Saved, ended: History) -> History:
    """Return the jobs whose end the model has not learned yet."""
    known = (ended.jobs.arrival < saved.recording.last_arrival) & (ended.outcomes.end <= saved.recording.last_end)
    return ended.take(~known)


def _hindsight(saved: Saved, jobs: Submitted, learned: Flags) -> str | None:
    """Return a warning where the model may know how jobs it is asked about ended; None where it cannot."""
    if learned.all():
        return (
            "the model learned from this very trace or a later one, so its predictions may know how these jobs ended; "
            "predict jobs that came later (see gputwin slice)"
        )
    if learned.any():
        return (
            f"{learned.sum():,} of {jobs.size:,} tasks came before the last one the model learned from, so it may know "
            "how they ended; errors are of the others"
        )
    early = int((jobs.arrival < saved.recording.last_end).sum())
    if early:
        return (
            f"{early:,} of {jobs.size:,} tasks came before the last of the model's jobs had ended, so it learned from a "
            "few ends it could not have known then; gputwin slice --first leaves those out"
        )
    return None


def _scores(saved: Saved, asked: _Asked, seconds: Floats, quantiles: Floats) -> dict[str, Scores]:
    tested = np.flatnonzero(~np.isnan(asked.actual) & ~asked.learned)
    found = {}
    if tested.size:
        actual = asked.actual[tested]
        plain = saved.baseline.forecast(asked.jobs.take(tested), LEVELS)
        found[HERE] = score(actual, seconds[tested], quantiles[tested])
        found[BASELINE] = score(actual, plain.seconds, plain.quantiles)
    if saved.promised is not None:
        found[PROMISED] = saved.promised
    return found
