"""Medians of jobs alike, from coarse to fine: what a careful person would do with a spreadsheet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
import polars as pl

from gputwin.profiling.distribution import BINS, MASS, Grid, Mass
from gputwin.profiling.jobs import Floats, Submitted
from gputwin.profiling.keys import REPEAT, SIGNATURE, USER, KeyTable, texts
from gputwin.profiling.model import MODELS, DurationModel, Lesson, ModelKind

_MEDIAN = np.array([0.5])


@dataclass(frozen=True)
class Medians(DurationModel):
    """How durations are distributed among all jobs and by value of each key; the finest key that is known counts most.

    A key's n jobs are mixed with what the coarser keys say, worth `strength` jobs: shrinkage. With none, a known key
    speaks alone. An unseen user or group falls back to the coarser keys, at last to all jobs.
    """

    is_cautious: ClassVar[bool] = True

    grid: Grid
    overall: Mass
    tables: Mapping[str, KeyTable]
    counts: Mapping[str, Mass]
    strength: float

    def distributions(self, jobs: Submitted) -> Mass:
        """Return the mixture of the keys' distributions for each job."""
        mass = np.repeat(self.overall, jobs.size, axis=0)
        columns = texts(jobs, list(self.tables))
        for name in reversed(list(self.tables)):
            codes = self.tables[name].codes(columns[name])
            rows = np.flatnonzero(codes >= 0)
            counts = self.counts[name][codes[rows]]
            seen = counts.sum(axis=1, keepdims=True)
            mixed = (counts + self.strength * mass[rows]) / (seen + self.strength)
            mass[rows] = np.where(seen > 0, mixed, mass[rows])
        return mass

    def point(self, jobs: Submitted, mass: Mass) -> Floats:
        """Return the median, s."""
        return self.grid.quantiles(mass, _MEDIAN)[:, 0]

    def explain(self, jobs: Submitted) -> pl.DataFrame:
        """Return the finest key each job is known by, the jobs behind it, and their median over that of all jobs."""
        columns = texts(jobs, list(self.tables))
        reason = np.full(jobs.size, "all jobs", object)
        count = np.full(jobs.size, np.nan)
        for name in reversed(list(self.tables)):
            codes = self.tables[name].codes(columns[name])
            known = codes >= 0
            reason[known] = name
            count[known] = self.counts[name][codes[known]].sum(axis=1)
        typical = self.grid.quantiles(self.overall, _MEDIAN)[0, 0]
        return pl.DataFrame(
            {
                "row": np.arange(jobs.size),
                "reason": pl.Series(reason.tolist(), dtype=pl.String),
                "value": pl.Series(count).fill_nan(None),
                "factor": self.predict(jobs) / typical,
            }
        )


def fit(keys: tuple[str, ...], strength: float, lesson: Lesson, seed: int) -> Medians:
    """Return the medians by these keys, finest first."""
    values = np.log(lesson.past.outcomes.duration)
    bins = lesson.grid.bins(values)
    columns = texts(lesson.past.jobs, keys)
    tables, counts = {}, {}
    for name in keys:
        if columns[name].n_unique() > 1:
            tables[name] = KeyTable.of(name, columns[name])
            codes = tables[name].codes(columns[name])
            seen = codes >= 0
            total = np.bincount(codes[seen] * BINS + bins[seen], lesson.weights[seen], tables[name].size * BINS)
            counts[name] = total.reshape(-1, BINS).astype(MASS)
    return Medians(lesson.grid, lesson.grid.histogram(values, lesson.weights), tables, counts, strength)


_SOURCE = "Weng et al., MLaaS in the Wild, NSDI'22, section 5.2"
for _name, _rule, _keys, _strength in (
    ("median", "the median of all jobs", (), 0.0),
    ("user-median", "the median of the user's jobs, else of all", (USER,), 0.0),
    ("group-median", "the median of the job's repetitions, else of the user's jobs", (REPEAT, USER), 0.0),
    (
        "signature-median",
        "the median of repetitions, mixed with those of same user and request, same request, same user",
        (REPEAT, SIGNATURE, "shape", "line", USER),
        1.0,
    ),
):
    MODELS.add(ModelKind(_name, _rule, partial(fit, _keys, _strength), _SOURCE))
