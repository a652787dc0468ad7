"""What a duration model is: it has learned from a history and says how long jobs will run, from submit-time facts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import polars as pl

from gputwin.core.errors import UserError
from gputwin.core.registry import Registry
from gputwin.profiling.distribution import MASS, Grid, Mass
from gputwin.profiling.jobs import Floats, History, Submitted
from gputwin.profiling.survival import censoring_weights

CHUNK = 131_072
INTERVAL = (0.1, 0.5, 0.9)
"""Quantiles reported by default: the ends of an 80 % interval around the median."""


class Lesson(NamedTuple):
    """What every model starts from: the finished jobs, their weights against censoring, and the grid they span."""

    past: History
    weights: Floats
    grid: Grid


class DurationForecast(NamedTuple):
    """One number to plan with, quantiles, and the mean, s, per job."""

    seconds: Floats
    quantiles: Floats
    mean: Floats


class DurationModel(ABC):
    """A fitted model. `predict` and `predict_quantiles` are in s; `explain` says where a prediction comes from."""

    grid: Grid
    is_cautious: ClassVar[bool] = False
    """Whether its distributions are no more than the few outcomes seen (`Grid.quantiles`)."""

    @abstractmethod
    def distributions(self, jobs: Submitted) -> Mass:
        """Return how likely each bin of the grid is, for each job."""

    @abstractmethod
    def explain(self, jobs: Submitted) -> pl.DataFrame:
        """Return reasons: `row`, `reason`, `value`, and `factor`, by which the reason multiplies the duration."""

    def observing(self, known: History) -> DurationModel:
        """Return the model as it stands once it learns how further jobs end; unchanged where it learns only once."""
        return self

    def forecast(
        self, jobs: Submitted, levels: Sequence[float] = INTERVAL, ran: Floats | None = None
    ) -> DurationForecast:
        """Return prediction, quantiles and mean in one go; `ran` are the s each job has run already (0: not begun)."""
        seconds, mean, quantiles = np.empty(jobs.size), np.empty(jobs.size), np.empty((jobs.size, len(levels)))
        for rows, part in _chunks(jobs):
            mass = self.distributions(part)
            if ran is not None:
                mass = self.grid.given_ran(mass, ran[rows])
            seconds[rows] = self.point(part, mass)
            quantiles[rows] = self.grid.quantiles(mass, np.asarray(levels, np.float64), cautious=self.is_cautious)
            mean[rows] = mass @ self.grid.values.astype(MASS)
        if ran is not None:
            seconds, mean = np.maximum(seconds, ran), np.maximum(mean, ran)
            quantiles = np.maximum(quantiles, ran[:, None])
        return DurationForecast(seconds, quantiles, mean)

    def predict(self, jobs: Submitted) -> Floats:
        """Return how long each job is expected to run, s."""
        return self.forecast(jobs, ()).seconds

    def predict_mean(self, jobs: Submitted) -> Floats:
        """Return the mean of each job's duration, s: what shortest-job-first should go by (Rothkopf, 1966)."""
        return self.forecast(jobs, ()).mean

    def predict_quantiles(self, jobs: Submitted, levels: Sequence[float] = INTERVAL) -> Floats:
        """Return quantiles of each job's duration, s, at ascending levels."""
        return self.forecast(jobs, levels).quantiles

    def point(self, jobs: Submitted, mass: Mass) -> Floats:
        """Return the one number to plan with, s: the duration of least expected cost."""
        return self.grid.cheapest(mass)


def _chunks(jobs: Submitted) -> Iterator[tuple[slice, Submitted]]:
    """Yield the jobs in pieces whose distributions take some tens of megabytes."""
    if jobs.size <= CHUNK:
        yield slice(0, jobs.size), jobs
        return
    for first in range(0, jobs.size, CHUNK):
        yield slice(first, first + CHUNK), Submitted(jobs.frame.slice(first, CHUNK))


@dataclass(frozen=True)
class ModelKind:
    """A kind of model: how it is fitted, the rule it follows and where that comes from."""

    name: str
    rule: str
    fit: Callable[[Lesson, int], DurationModel]
    source: str = ""
    has_spread: bool = True
    """Whether it knows how far off it may be; without, its interval means nothing."""


MODELS: Registry[ModelKind] = Registry("duration model", "gputwin.profiling.models")


def fit(name: str, past: History, *, seed: int = 0) -> DurationModel:
    """Return the model called `name`, fitted to a history; jobs that still run count as at least as long as so far."""
    kind = MODELS.get(name)
    weights = censoring_weights(past.outcomes.duration, past.outcomes.finished)
    finished = past.outcomes.finished
    if not finished.any():
        raise UserError("no job of the trace has finished, so no duration can be learned")
    ended = past if finished.all() else past.take(finished)
    weights = weights[finished]
    return kind.fit(Lesson(ended, weights, Grid.of(ended.outcomes.duration, weights)), seed)
