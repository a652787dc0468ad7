"""Quantiles that hold what they promise: a model's levels, corrected by where later outcomes fell in its distributions.

In time order, each tested job has a distribution made before it ran, and the level its outcome reached in it. If a tenth
of the jobs end above level 0.97, the model's 0.97 quantile is what people may call 90 % (conformal prediction: Vovk et
al. 2005; on distributions: Kuleshov et al., ICML 2018). Jobs that still run have reached at least the level of the time
they ran, so the distribution of levels is Kaplan and Meier's: without them, a short record would know short jobs only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import polars as pl

from gputwin.profiling.distribution import Grid, Mass
from gputwin.profiling.jobs import Flags, Floats, History, Ints, Submitted
from gputwin.profiling.model import INTERVAL, DurationForecast, DurationModel
from gputwin.profiling.survival import kaplan_meier

NOMINAL = np.arange(1, 100) / 100
FEWEST = 100
"""Outcomes below which a model's own levels are used."""
MOST_ROWS = 4000
"""Jobs of one part of a test whose distributions are kept."""
_MIDDLE = 1e-3


@dataclass(frozen=True)
class Calibration:
    """`levels` of the model to use for 1 %, 2 %, … 99 %."""

    levels: Floats

    def of(self, levels: Sequence[float]) -> list[float]:
        """Return the model's levels for those asked for; the median stays the model's."""
        return [float(np.interp(q, NOMINAL, self.levels)) if q != 0.5 else q for q in levels]


AS_IS = Calibration(NOMINAL)


@dataclass(frozen=True)
class Calibrated(DurationModel):
    """A model whose quantiles are taken at calibrated levels; all else is the model's."""

    model: DurationModel
    calibration: Calibration

    @property
    def grid(self) -> Grid:  # type: ignore[override]
        """Return the model's grid."""
        return self.model.grid

    def distributions(self, jobs: Submitted) -> Mass:
        """Return the model's distributions."""
        return self.model.distributions(jobs)

    def explain(self, jobs: Submitted) -> pl.DataFrame:
        """Return the model's reasons."""
        return self.model.explain(jobs)

    def observing(self, known: History) -> Calibrated:
        """Return the model that observes, at the same levels."""
        return replace(self, model=self.model.observing(known))

    def forecast(
        self, jobs: Submitted, levels: Sequence[float] = INTERVAL, ran: Floats | None = None
    ) -> DurationForecast:
        """Return the model's prediction and mean, and its quantiles at calibrated levels."""
        return self.model.forecast(jobs, self.calibration.of(levels), ran)


class _Part(NamedTuple):
    rows: Ints
    mass: Mass
    grid: Grid
    is_cautious: bool


@dataclass(frozen=True)
class PastPredictions:
    """Distributions that a model gave to jobs of a history before they ran."""

    history: History
    parts: list[_Part] = field(default_factory=list)

    def add(self, model: DurationModel, rows: Ints) -> None:
        """Keep what a model says of these rows of the history, of some of them where they are many."""
        some = rows[:: -(-rows.size // MOST_ROWS)]
        self.parts.append(_Part(some, model.distributions(self.history.jobs.take(some)), model.grid, model.is_cautious))

    def calibration(self, moment: float = np.inf) -> Calibration:
        """Return the levels to use, from what was known at `moment` (by default, at the end of the record)."""
        found = [self._reached(part, moment) for part in self.parts]
        if sum(int(ended.sum()) for _, ended in found) < FEWEST:
            return AS_IS
        reached = np.concatenate([levels for levels, _ in found])
        ended = np.concatenate([e for _, e in found])
        below, above = NOMINAL < 0.5, NOMINAL > 0.5
        levels = NOMINAL.copy()
        levels[below] = np.minimum(_quantiles(reached[:, 0], ended, NOMINAL[below]), 0.5 - _MIDDLE)
        levels[above] = np.maximum(_quantiles(reached[:, 1], ended, NOMINAL[above]), 0.5 + _MIDDLE)
        return Calibration(levels)

    def _reached(self, part: _Part, moment: float) -> tuple[Floats, Flags]:
        begun = np.flatnonzero(self.history.outcomes.start[part.rows] < moment)
        known = self.history.outcomes.take(part.rows[begun]).as_of(moment)
        return reached_levels(part.grid, part.mass[begun], known.duration, cautious=part.is_cautious), known.finished


def reached_levels(grid: Grid, mass: Mass, seconds: Floats, *, cautious: bool) -> Floats:
    """Return rows × 2: the greatest level whose lower quantile, the least whose upper quantile, holds each duration.

    These are the levels at which `Grid.quantiles` moves past the duration; 1 where no quantile is as long.
    """
    whole = np.cumsum(mass, axis=1, dtype=np.float64)
    last = mass.shape[1] - 1
    likely = mass > 0
    at = np.minimum(grid.bins(np.log(seconds)), last)
    numbers = np.arange(last + 1)
    # Quantiles end in bins that have mass: the last such up to the duration's, and the first such from it on.
    low = np.maximum.accumulate(np.where(likely, numbers, -1), axis=1)
    high = np.minimum.accumulate(np.where(likely, numbers, last + 1)[:, ::-1], axis=1)[:, ::-1]
    rows = np.arange(len(mass))
    low, high = low[rows, at], high[rows, at]
    share = 1.0 if cautious else 0.5
    lower = whole[rows, np.maximum(low, 0)] - (1.0 - share) * mass[rows, np.maximum(low, 0)]
    upper = whole[rows, np.minimum(high, last)] - share * mass[rows, np.minimum(high, last)]
    lower = np.where(low < 0, 0.0, lower)
    upper = np.where((high > last) | (seconds > grid.most[last]), 1.0, upper)
    return np.asarray(np.clip(np.column_stack([lower, upper]), 0.0, 1.0), np.float64)


def _quantiles(reached: Floats, ended: Flags, levels: Floats) -> Floats:
    """Return quantiles of levels, of which those of jobs that still run are known to be at least so high."""
    times, remain = kaplan_meier(reached, ended)
    at = np.searchsorted(1.0 - remain, levels - 1e-9, side="left")
    return np.asarray(np.concatenate([times, [1.0]])[at], np.float64)
