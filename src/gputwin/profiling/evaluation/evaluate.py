"""evaluate(): every model on jobs it has not seen, with scores in all, by job class and by how new the jobs are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from gputwin.profiling.calibration import AS_IS, Calibrated, Calibration, PastPredictions
from gputwin.profiling.evaluation.scores import LEVELS, Scores, score
from gputwin.profiling.evaluation.splits import Split, grouped_folds, rolling_origin
from gputwin.profiling.jobs import Floats, History, Submitted
from gputwin.profiling.keys import KEYS, REPEAT, SIGNATURE, USER, KeyTable, texts
from gputwin.profiling.model import MODELS, fit

TIME_ORDER, SHUFFLED = "time-ordered", "shuffled by job"
NOVELTIES = {REPEAT: "repeats a known job", SIGNATURE: "known user and request", USER: "known user"}
NEW = "new to everything"
QUANTILES = tuple(f"q{round(100 * level)}" for level in LEVELS)
"""Columns of predicted quantiles, in the order of `LEVELS`."""
LOW, HIGH = QUANTILES[0], QUANTILES[-1]


@dataclass(frozen=True)
class Evaluation:
    """Predictions of one model for jobs it had not seen, one row each: `row` in the history, `actual`, `predicted`
    and quantiles (`QUANTILES`) in s, and `novelty`.
    """

    model: str
    protocol: str
    predictions: pl.DataFrame
    calibration: Calibration = AS_IS
    """What the test says about the levels to use for later jobs."""

    @property
    def scores(self) -> Scores:
        """Return the scores over all jobs."""
        return _score(self.predictions)

    @property
    def coverage(self) -> float | None:
        """Return the share of jobs inside their 80 % interval; None for a model that knows no spread."""
        return self.scores.coverage if MODELS.get(self.model).has_spread else None

    def by(self, column: str) -> dict[str, Scores]:
        """Return the scores by value of a column, the largest first."""
        parts = self.predictions.partition_by(column, as_dict=True, maintain_order=True)
        ordered = sorted(parts.items(), key=lambda item: -item[1].height)
        return {str(key[0]): _score(part) for key, part in ordered}

    def to_json(self) -> dict[str, Any]:
        """Return the scores as plain data."""
        return {
            "model": self.model,
            "protocol": self.protocol,
            **self.scores.to_json(),
            "by_novelty": {k: v.to_json() for k, v in self.by("novelty").items()},
        }


def _score(frame: pl.DataFrame) -> Scores:
    quantiles = frame.select(QUANTILES).to_numpy()
    return score(frame["actual"].to_numpy(), frame["predicted"].to_numpy(), quantiles)


def evaluate_in_time(
    history: History,
    models: Sequence[str],
    *,
    online: bool = False,
    seed: int = 0,
    progress: Callable[[str], None] = lambda step: None,
) -> list[Evaluation]:
    """Return how the models do when each block of jobs is predicted from what was known before it.

    Quantiles of a block are calibrated by the blocks before it.
    """
    splits = list(rolling_origin(history, online=online))
    return _evaluate(history, models, splits, TIME_ORDER, seed, progress)


def evaluate_shuffled(
    history: History,
    models: Sequence[str],
    *,
    repeats: int = 1,
    seed: int = 0,
    progress: Callable[[str], None] = lambda step: None,
) -> list[Evaluation]:
    """Return how the models do in ten-fold cross-validation grouped by job, shuffled `repeats` times."""
    splits = [split for r in range(repeats) for split in grouped_folds(history, seed=seed + r)]
    return _evaluate(history, models, splits, SHUFFLED, seed, progress)


def _evaluate(
    history: History,
    models: Sequence[str],
    splits: Iterable[Split],
    protocol: str,
    seed: int,
    progress: Callable[[str], None],
) -> list[Evaluation]:
    frames: dict[str, list[pl.DataFrame]] = {name: [] for name in models}
    tested = {name: PastPredictions(history) for name in models if protocol == TIME_ORDER}
    for k, split in enumerate(splits):
        test = split.test[history.outcomes.finished[split.test]]
        if not test.size:
            continue
        jobs = history.jobs.take(test)
        novelty = novelty_of(split.past.jobs, jobs)
        for m, name in enumerate(models):
            progress(f"testing on part {k + 1} ({protocol}), model {m + 1} of {len(models)}: {name}")
            model = fit(name, split.past, seed=seed)
            if split.meanwhile is not None:
                model = model.observing(split.meanwhile)
            if name in tested:
                model = Calibrated(model, tested[name].calibration(float(history.jobs.arrival[split.test[0]])))
                tested[name].add(model.model, split.test)
            seconds, quantiles, _ = model.forecast(jobs, LEVELS)
            actual = history.outcomes.duration[test]
            frames[name].append(_frame(test, actual, seconds, quantiles, novelty))
    return [
        Evaluation(name, protocol, pl.concat(parts), tested[name].calibration() if name in tested else AS_IS)
        for name, parts in frames.items()
        if parts
    ]


def _frame(rows: np.ndarray, actual: Floats, seconds: Floats, quantiles: Floats, novelty: pl.Series) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "row": rows,
            "actual": actual,
            "predicted": seconds,
            **{name: quantiles[:, k] for k, name in enumerate(QUANTILES)},
            "novelty": novelty,
        }
    )


def novelty_of(past: Submitted, jobs: Submitted) -> pl.Series:
    """Return how each job is known from the past: by the finest key that was seen there."""
    names = [name for name in KEYS if name in NOVELTIES]
    seen, new = texts(past, names), texts(jobs, names)
    result = np.full(jobs.size, NEW, object)
    for name in reversed(names):
        result[KeyTable.of(name, seen[name]).codes(new[name]) >= 0] = NOVELTIES[name]
    return pl.Series("novelty", result.tolist(), dtype=pl.String)
