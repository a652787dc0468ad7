"""How much longer jobs will run: draws from a duration model, given how long each has run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from gputwin.core.errors import UserError
from gputwin.profiling.distribution import Grid, Mass
from gputwin.profiling.jobs import SHORTEST_SECONDS, Floats, History, Ints, Submitted
from gputwin.profiling.model import DurationModel, fit
from gputwin.studies.eta.record import Record

MODEL = "online"
"""Kind of the model that is fitted to the record itself: it learns as jobs end."""
KEPT = 0.98
"""Limits are taken to end jobs where this share of those that ended stayed within theirs."""
GRACE = 1.02
"""Schedulers kill a job a little after its limit."""


@dataclass(frozen=True)
class Durations:
    """A duration model and whether time limits end jobs; all as known at some time."""

    model: DurationModel
    limits_hold: bool
    shift: float = 0.0
    """s; what to add to the record's times to get the model's clock."""

    def draw(self, record: Record, jobs: Ints, at: Floats, draws: int, random: np.random.Generator) -> Floats:
        """Return [job, draw]: s each of the jobs, given by row, runs on after its own time `at`, or runs in all.

        A job counts as running where it had started by `at`; what ended later than `at` is not looked at.
        """
        first = np.searchsorted(record.job_of_task, jobs, side="left")
        count = np.searchsorted(record.job_of_task, jobs, side="right") - first
        rows = np.repeat(first - np.cumsum(count) + count, count) + np.arange(count.sum())
        owner = np.repeat(np.arange(jobs.size), count)
        asked = Submitted.of(record.tasks[rows])
        known = pl.Series("arrival_time", at[owner] + self.shift)
        asked = Submitted(asked.frame.with_columns(known))
        ran = np.maximum(at - record.start[jobs], 0.0)[owner]
        grid = self.model.grid
        mass = grid.given_ran(self.model.distributions(asked), ran)
        total = _sampled(grid, mass, ran, draws, random)
        if self.limits_hold:
            most = GRACE * record.limit[jobs][owner]
            total = np.fmin(total, np.where(ran < most, most, np.inf)[:, None])
        left = np.maximum(total - ran[:, None], SHORTEST_SECONDS)
        longest = np.zeros((jobs.size, draws))
        np.maximum.at(longest, owner, left)
        return longest


def _sampled(grid: Grid, mass: Mass, ran: Floats, draws: int, random: np.random.Generator) -> Floats:
    """Return [task, draw]: durations, s, log-uniform within their bin and longer than what has run already."""
    below = np.cumsum(mass, axis=1, dtype=np.float64)
    below /= below[:, -1:]
    u = random.random((len(mass), draws))
    bins = np.stack([np.searchsorted(row, x, side="right") for row, x in zip(below, u, strict=True)])
    bins = np.minimum(bins, mass.shape[1] - 1)
    low = np.maximum(grid.least[bins], ran[:, None])
    high = np.maximum(grid.most[bins], low)
    low = np.maximum(low, 1e-3)
    return np.asarray(low * (np.maximum(high, low) / low) ** random.random(u.shape))


def learned(record: Record, at: float, *, seed: int = 0) -> Durations:
    """Return durations as learned from what the record held by `at`; the memory of ends goes on, each from its time."""
    tasks = record.tasks
    try:
        everything = History.of_tasks(tasks)
        past = everything.as_of(at)
        if not past.outcomes.finished.any():
            raise UserError("nobody had ended")
    except UserError:
        raise UserError(
            f"no job had ended by {at:,.0f} s, so nobody knows how long jobs run; take a later --at, or give a saved "
            "model: --profile DIR"
        ) from None
    model = fit(MODEL, past, seed=seed)
    later = ~((everything.outcomes.end <= at) & everything.outcomes.finished)
    return Durations(model.observing(everything.take(later)), limits_hold(record, at))


def limits_hold(record: Record, at: float) -> bool:
    """Return whether jobs that had ended by `at` stayed within the time they asked for."""
    ran = record.ran_by(at)
    told = ~np.isnan(ran) & ~np.isnan(record.limit)
    if not told.any():
        return bool((~np.isnan(record.limit)).any())
    within = ran[told] <= GRACE * record.limit[told]
    return bool(within.mean() >= KEPT)
