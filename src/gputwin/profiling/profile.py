"""profile(): from a trace to its job classes and a duration model that was tested on jobs it had not seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from gputwin.core.display import Shown
from gputwin.core.errors import UserError
from gputwin.core.units import percent
from gputwin.profiling.alignment import Recording
from gputwin.profiling.calibration import Calibrated
from gputwin.profiling.classes.classes import Classes, find_classes
from gputwin.profiling.evaluation.evaluate import Evaluation, evaluate_in_time
from gputwin.profiling.jobs import History
from gputwin.profiling.model import MODELS, DurationModel, fit
from gputwin.profiling.notebook import profile_html
from gputwin.profiling.predict import predict_trace
from gputwin.profiling.store import Saved, save, telling_columns
from gputwin.traces.dataset import Trace

CANDIDATES = ("median", "user-median", "signature-median", "last-two", "cluster", "online", "forest")
BASELINE = "user-median"
REASON_ROWS = 500


@dataclass(frozen=True, repr=False)
class Profile(Shown):
    """What was found: classes, each model's test, the model chosen and fitted to the whole trace, and its reasons."""

    history: History
    classes: Classes
    evaluations: tuple[Evaluation, ...]
    chosen: str
    model: DurationModel
    baseline: DurationModel
    recording: Recording
    importance: pl.DataFrame
    """`reason` and `factor`: by how much a feature moves predictions, as the geometric mean of its factors' sizes."""

    def _title(self) -> str:
        return f"Profile of {self.history.size:,} tasks: {len(self.classes.classes)} classes, model {self.chosen}"

    def _lines(self) -> list[str]:
        return [f"{e.model}: {percent(e.scores.within_2x)} within a factor of two" for e in self.evaluations]

    @property
    def evaluation(self) -> Evaluation:
        """Return the chosen model's test."""
        return next(e for e in self.evaluations if e.model == self.chosen)

    def by_class(self) -> dict[str, Any]:
        """Return the chosen model's scores by job class."""
        frame = self.evaluation.predictions
        names = [self.classes.name_of(int(self.classes.labels[row])) for row in frame["row"]]
        named = frame.with_columns(pl.Series("class", names, dtype=pl.String))
        return Evaluation(self.chosen, self.evaluation.protocol, named).by("class")

    def durations_by_class(self) -> dict[str, tuple[float, float, float] | None]:
        """Return the 10 %, 50 % and 90 % quantile of each class's finished tasks, s; None where none has finished."""
        ran, ended = self.history.outcomes.duration, self.history.outcomes.finished
        found: dict[str, tuple[float, float, float] | None] = {}
        for entry in self.classes.classes:
            members = ran[ended & (self.classes.labels == entry.number)]
            low, middle, high = np.quantile(members, (0.1, 0.5, 0.9)) if members.size else (0.0, 0.0, 0.0)
            found[entry.name] = (float(low), float(middle), float(high)) if members.size else None
        return found

    def saved(self) -> Saved:
        """Return the model as it is saved."""
        return Saved(
            self.chosen,
            self.model,
            self.classes,
            self.recording,
            telling_columns(self.history.jobs),
            self.baseline,
            self.evaluation.scores,
        )

    def predict(self, trace: Trace) -> pl.DataFrame:
        """Return how long the tasks of another trace will run (`Predictions.frame`); `simulate(predict=…)` takes it."""
        return predict_trace(self.saved(), trace).frame

    def save(self, path: Path | str) -> Path:
        """Save the model, for `gputwin predict` and `gputwin simulate --predict`, and return the folder."""
        return save(self.saved(), Path(path))

    def _repr_html_(self) -> str:
        """Return the profile as a notebook shows it."""
        return profile_html(self)

    def to_json(self) -> dict[str, Any]:
        """Return the result as plain data."""
        found, ran = self.classes, self.durations_by_class()
        return {
            "tasks": self.history.size,
            "classes": [{**asdict(c), "duration_seconds": ran[c.name]} for c in found.classes],
            "noise_share": float((found.labels < 0).mean()),
            "rows_clustered": found.rows_clustered,
            "clustering": {**asdict(found.settings), **_trial(found)},
            "classifier_accuracy": found.accuracy,
            "models": [e.to_json() for e in self.evaluations],
            "chosen": self.chosen,
            "by_class": {name: scores.to_json() for name, scores in self.by_class().items()},
            "trace_fingerprint": self.recording.fingerprint,
        }


def _trial(found: Classes) -> dict[str, float]:
    best = found.trials[0]
    return {"silhouette": best.silhouette, "noise": best.noise, "stability": best.stability}


def profile(
    trace: Trace,
    *,
    models: Sequence[str] = CANDIDATES,
    seed: int = 0,
    progress: Callable[[str], None] = lambda step: None,
) -> Profile:
    """Return classes and the model with the least pinball loss in time order, online, fitted to the whole trace."""
    for name in models:
        MODELS.get(name)
    history = History.of(trace)
    progress("clustering")
    classes = find_classes(trace, history.jobs, seed=seed)
    tests = tuple(evaluate_in_time(history, models, online=True, seed=seed, progress=progress))
    if not tests:
        raise UserError(
            f"{history.size} tasks are too few to test a model on: none had ended before the last ones came"
        )
    best = min(tests, key=lambda e: e.scores.pinball_seconds)
    chosen = best.model
    progress(f"fitting {chosen} to all jobs")
    model = Calibrated(fit(chosen, history, seed=seed), best.calibration)
    baseline = fit(BASELINE, history, seed=seed)
    recording = Recording.of(trace.meta, history)
    return Profile(history, classes, tests, chosen, model, baseline, recording, _importance(model, history))


def _importance(model: DurationModel, history: History) -> pl.DataFrame:
    last = history.jobs.frame.tail(REASON_ROWS)
    reasons = model.explain(type(history.jobs)(last))
    size = pl.col("factor").log().abs()
    return (
        reasons.filter(pl.col("reason") != "typical job")
        .group_by("reason")
        .agg((size.sum() / last.height).exp().alias("factor"))
        .sort("factor", "reason", descending=[True, False])
    )
