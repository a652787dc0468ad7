"""Which jobs to learn from and which to be tested on: in time order first, by shuffled jobs second."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from gputwin.core.errors import UserError
from gputwin.core.rng import stream
from gputwin.profiling.jobs import Flags, History, Ints

FIRST_SHARE = 0.4
BLOCKS = 6
FOLDS = 10


@dataclass(frozen=True)
class Split:
    """One test: what was known, the rows tested on, and what becomes known while they arrive."""

    past: History
    test: Ints
    meanwhile: History | None


def rolling_origin(
    history: History, *, first: float = FIRST_SHARE, blocks: int = BLOCKS, online: bool = False
) -> Iterator[Split]:
    """Yield an expanding window: each block of jobs is predicted from what was known when its first job arrived.

    Jobs that still ran then are censored. With `online`, models that learn as jobs finish see each end when it comes.
    """
    jobs, outcomes = history.jobs, history.outcomes
    arrival, job = jobs.arrival, jobs.job
    if np.any(np.diff(arrival) < 0):
        raise ValueError("a history must be in order of arrival")
    edges = np.unique(np.linspace(int(history.size * first), history.size, blocks + 1).astype(np.int64))
    if edges.size < 2 or edges[0] == 0:
        raise UserError(f"{history.size} jobs are too few to test a model on; a trace needs some dozens")
    for begin, end in pairwise(edges):
        test = np.arange(begin, end)
        origin = float(arrival[begin])
        begun = outcomes.start < origin
        begun[test] = False
        begun &= ~np.isin(job, job[test])
        past = history.take(begun).as_of(origin)
        if not past.outcomes.finished.any():
            continue
        yield Split(past, test, _meanwhile(history, origin, outcomes.end, np.arange(history.size) < end, online))


def _meanwhile(history: History, origin: float, end: np.ndarray, arrived: Flags, online: bool) -> History | None:
    """Return the jobs that end after the origin, the block's own among them: each is visible from its end only."""
    later = arrived & (end >= origin) & np.isfinite(end)
    return history.take(later) if online and later.any() else None


def grouped_folds(history: History, *, folds: int = FOLDS, seed: int = 0) -> Iterator[Split]:
    """Yield shuffled folds in which all tasks of a job are on one side. The past then holds later jobs too."""
    job = history.jobs.job
    number = int(job.max()) + 1
    if number < folds:
        raise UserError(f"{number} jobs are too few for {folds} folds; a trace needs some dozens")
    fold = stream(seed, "folds").permutation(number)[job] % folds
    for k in range(folds):
        yield Split(history.take(fold != k), np.flatnonzero(fold == k), None)
