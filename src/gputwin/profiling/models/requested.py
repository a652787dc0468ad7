"""What schedulers use today: the time asked for, and the mean of the user's last two jobs."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from gputwin.profiling.distribution import BINS, MASS, Grid, Mass
from gputwin.profiling.jobs import SHORTEST_SECONDS, Floats, History, Submitted
from gputwin.profiling.keys import USER
from gputwin.profiling.memory import Memory
from gputwin.profiling.model import MODELS, DurationModel, Lesson, ModelKind


@dataclass(frozen=True)
class Single(DurationModel):
    """A model that knows one number per job and no spread around it; `memory` is None for the time asked for."""

    grid: Grid
    typical: float
    memory: Memory | None

    def point(self, jobs: Submitted, mass: Mass) -> Floats:
        """Return the number itself, s."""
        return self._seconds(jobs)[0]

    def distributions(self, jobs: Submitted) -> Mass:
        """Return all of the mass where the number is."""
        mass = np.zeros((jobs.size, BINS), MASS)
        mass[np.arange(jobs.size), self.grid.bins(np.log(self._seconds(jobs)[0]))] = 1.0
        return mass

    def observing(self, known: History) -> Single:
        """Return the model with further outcomes to look back at."""
        return self if self.memory is None else replace(self, memory=self.memory.observing(known))

    def explain(self, jobs: Submitted) -> pl.DataFrame:
        """Return which number was taken."""
        seconds, reason = self._seconds(jobs)
        frame = pl.DataFrame({"row": np.arange(jobs.size), "reason": reason, "value": seconds})
        return frame.with_columns((pl.col("value") / self.typical).alias("factor"))

    def _seconds(self, jobs: Submitted) -> tuple[Floats, list[str]]:
        asked = jobs.frame["requested_seconds"].to_numpy().astype(np.float64)
        limit = np.where(asked > 0, asked, np.nan)
        reason = np.where(np.isnan(limit), "all jobs", "time asked for").astype(object)
        seconds = np.where(np.isnan(limit), self.typical, limit)
        if self.memory is not None:
            codes = self.memory.codes(jobs)[USER]
            last = np.exp(self.memory.by_key[USER].last(codes, jobs.arrival, 2))
            seen = ~np.isnan(last[:, 0])
            mean = np.where(np.isnan(last[:, 1]), last[:, 0], last.mean(axis=1))
            # A job is killed at its limit, so no prediction should exceed it.
            seconds = np.where(seen, np.fmin(mean, limit), seconds)
            reason[seen] = "the user's last two jobs"
        return np.maximum(seconds, SHORTEST_SECONDS), reason.tolist()


def fit_requested(lesson: Lesson, seed: int) -> Single:
    """Return the model that believes the time asked for."""
    return Single(lesson.grid, lesson.grid.price, None)


def fit_last_two(lesson: Lesson, seed: int) -> Single:
    """Return the model that looks at the user's last two finished jobs."""
    return Single(lesson.grid, lesson.grid.price, Memory.of(lesson.past, [USER]))


REQUESTED = MODELS.add(
    ModelKind("requested", "the time asked for, else the median of all jobs", fit_requested, has_spread=False)
)
LAST_TWO = MODELS.add(
    ModelKind(
        "last-two",
        "the mean of the user's last two finished jobs, at most the time asked for",
        fit_last_two,
        "Tsafrir, Etsion and Feitelson, Backfilling Using System-Generated Predictions, TPDS 2007, section 3",
        has_spread=False,
    )
)
