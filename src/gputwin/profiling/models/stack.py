"""A pool of models, each weighted by how likely it held what happened to jobs after those it had learned from."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from gputwin.profiling.distribution import MASS, Grid, Mass
from gputwin.profiling.jobs import Floats, History, Ints, Submitted
from gputwin.profiling.model import MODELS, DurationModel, Lesson, ModelKind

MEMBERS = ("forest", "online", "signature-median")
HELD_OUT = 0.25
_LEAST = 40
_ROUNDS = 50


@dataclass(frozen=True)
class Stack(DurationModel):
    """Members in the order of `MEMBERS`, and the share of each in the pool."""

    grid: Grid
    members: tuple[DurationModel, ...]
    shares: Floats

    def distributions(self, jobs: Submitted) -> Mass:
        """Return the weighted mean of the members' distributions."""
        parts = [m.distributions(jobs) * MASS(w) for m, w in zip(self.members, self.shares, strict=True) if w > 0]
        pooled: Mass = np.sum(parts, axis=0, dtype=MASS)
        return pooled

    def observing(self, known: History) -> Stack:
        """Return the pool of members that observe."""
        return replace(self, members=tuple(m.observing(known) for m in self.members))

    def explain(self, jobs: Submitted) -> pl.DataFrame:
        """Return the reasons of the member with the largest share."""
        return self.members[int(self.shares.argmax())].explain(jobs)


def fit(lesson: Lesson, seed: int) -> Stack:
    """Return the pool: members fitted to all jobs, weighted on the last quarter by members fitted to the rest."""
    members = tuple(MODELS.get(name).fit(lesson, seed) for name in MEMBERS)
    return Stack(lesson.grid, members, _shares(lesson, seed))


def _shares(lesson: Lesson, seed: int) -> Floats:
    arrival, job = lesson.past.jobs.arrival, lesson.past.jobs.job
    order = np.argsort(arrival, kind="stable")
    later = order[int(arrival.size * (1 - HELD_OUT)) :]
    earlier = np.flatnonzero(~np.isin(job, job[later]))
    if later.size < _LEAST or earlier.size < _LEAST:
        return np.full(len(MEMBERS), 1.0 / len(MEMBERS))
    start = Lesson(lesson.past.take(earlier), lesson.weights[earlier], lesson.grid)
    rest = lesson.past.take(later)
    bins = lesson.grid.bins(np.log(rest.outcomes.duration))
    held = [MODELS.get(name).fit(start, seed).observing(rest).distributions(rest.jobs) for name in MEMBERS]
    return pool_shares([_likelihood(mass, bins) for mass in held], lesson.weights[later])


def _likelihood(mass: Mass, bins: Ints) -> Floats:
    """Return how likely what happened was, smoothed over the neighbouring bins: a near miss is not an impossibility."""
    rows = np.arange(bins.size)
    last = mass.shape[1] - 1
    near = [mass[rows, np.clip(bins + step, 0, last)] for step in (-2, -1, 0, 1, 2)]
    return np.asarray(np.mean(near, axis=0, dtype=np.float64)) + 1e-4


def pool_shares(likelihoods: list[Floats], weights: Floats) -> Floats:
    """Return the shares of a mixture that make what happened most likely (EM; Smyth and Wolpert, 1999, section 3)."""
    table = np.column_stack(likelihoods)
    shares = np.full(table.shape[1], 1.0 / table.shape[1])
    for _ in range(_ROUNDS):
        parts = table * shares
        shares = np.asarray(np.average(parts / parts.sum(axis=1, keepdims=True), axis=0, weights=weights))
    return shares


KIND = MODELS.add(
    ModelKind(
        "stack",
        f"a pool of {', '.join(MEMBERS)}, weighted by likelihood on later jobs",
        fit,
        "Smyth and Wolpert, Linearly Combining Density Estimators via Stacking, Machine Learning 1999",
    )
)
