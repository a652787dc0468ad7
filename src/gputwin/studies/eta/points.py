"""Points of a back-test: at a moment, a pending job, what the simulation says of its start, and what happened.

A job counts as held where one that asks for no less (the same request, a gang and a time limit at least as large, no
higher priority) came later and has started: first come, first served with any backfilling cannot do that, so something
that the trace does not show holds it (a user's limit, a dependency, a reservation). Held jobs are left out of the
simulation: nobody knows when they will be released.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gputwin.core.units import MINUTE
from gputwin.profiling.jobs import Flags, Floats, Ints
from gputwin.studies.eta.ahead import Future, Rules, look_ahead
from gputwin.studies.eta.durations import Durations, learned
from gputwin.studies.eta.record import Moment, Record

NEW, WAITING, HELD = range(3)
STATES = ("just submitted", "waiting", "held")
JUST_SECONDS = MINUTE
"""s; who has waited no longer counts as just submitted."""
LEVELS = (0.1, 0.5, 0.9)
"""The interval holds 80 %; between its ends is the median."""
BLOCK = 50
"""Moments after which durations are learned anew."""


@dataclass(frozen=True)
class Points:
    """One row per moment and pending job; times in s. `wait` is how long it waited on from then (infinite: not seen)."""

    at: Floats
    job: Ints
    state: Ints
    waited: Floats
    instances: Floats
    overtaken: Floats
    user_wait: Floats
    """How long the user's job waited that started last; 0: none has."""
    user_ahead: Floats
    """Jobs of the user that wait longer already."""
    user_waited: Floats
    """How long the first of the user's other pending jobs has waited."""
    user_running: Floats
    simulated: Floats
    """[point, level]: quantiles of the simulated time until the start; NaN where held or it never starts."""
    wait: Floats

    @property
    def size(self) -> int:
        """Return the number of points."""
        return self.at.size

    def take(self, rows: Ints | Flags) -> Points:
        """Return these rows."""
        return Points(*(getattr(self, name)[rows] for name in self.__dataclass_fields__))

    @classmethod
    def together(cls, parts: Sequence[Points]) -> Points:
        """Return all points one after the other."""
        return cls(*(np.concatenate([getattr(p, name) for p in parts]) for name in cls.__dataclass_fields__))


def overtaken(record: Record, moment: Moment, rules: Rules) -> Ints:
    """Return by how many jobs that ask for no less each pending one was overtaken; 0 where the rules may do that."""
    counts = np.zeros(moment.pending.size, np.int64)
    scheduler = rules.scheduler
    if scheduler.order not in ("fifo", "priority") or scheduler.fairness is not None or not counts.size:
        return counts
    first = int(moment.pending[0])
    later = np.arange(first, np.searchsorted(record.submit, moment.at, side="right"))
    later = later[record.start[later] <= moment.at]
    limit = np.where(np.isnan(record.limit), np.inf, record.limit)
    size, kind, priority = record.instances, record.kind, record.workload.jobs["priority"]
    for k, job in enumerate(moment.pending):
        rivals = later[np.searchsorted(later, job) :]
        no_less = (kind[rivals] == kind[job]) & (size[rivals] >= size[job]) & (limit[rivals] >= limit[job])
        came_later = record.submit[rivals] > record.submit[job]
        counts[k] = int((no_less & came_later & (priority[rivals] <= priority[job])).sum())
    return counts


def points_of(record: Record, moments: Sequence[Moment], rules: Rules, durations: Durations | None = None) -> Points:
    """Return the points of moments in time order; durations are learned anew every `BLOCK` moments unless given."""
    parts = []
    for first in range(0, len(moments), BLOCK):
        block = moments[first : first + BLOCK]
        model = durations or learned(record, block[0].at, seed=rules.seed)
        parts += [p for p, _ in points_at(record, block, model, rules)]
    return Points.together(parts)


def points_at(
    record: Record, moments: Sequence[Moment], durations: Durations, rules: Rules, *, explained: bool = False
) -> list[tuple[Points, Future]]:
    """Return the points of each moment, those not held first, and what was simulated for these."""
    counts = [overtaken(record, m, rules) for m in moments]
    free = [replace(m, pending=m.pending[c == 0]) for m, c in zip(moments, counts, strict=True)]
    futures = look_ahead(record, free, durations, rules, explained=explained)
    return [(_points(record, m, c, future), future) for m, c, future in zip(moments, counts, futures, strict=True)]


def _points(record: Record, moment: Moment, counts: Ints, future: Future) -> Points:
    held = counts > 0
    jobs = np.concatenate([future.moment.pending, moment.pending[held]])
    quantiles = np.full((jobs.size, len(LEVELS)), np.nan)
    if future.moment.pending.size:
        # A job that never starts in some future has no quantile there.
        waits = np.where(np.isnan(future.wait), np.inf, future.wait)
        found = np.quantile(waits, LEVELS, axis=1, method="inverted_cdf").T
        quantiles[: future.moment.pending.size] = np.where(np.isinf(found), np.nan, found)
    waited = moment.at - record.submit[jobs]
    state = np.where(waited <= JUST_SECONDS, NEW, WAITING)
    state[future.moment.pending.size :] = HELD
    return Points(
        np.full(jobs.size, moment.at),
        jobs,
        state,
        waited,
        record.instances[jobs].astype(np.float64),
        np.concatenate([np.zeros(future.moment.pending.size), counts[held]]).astype(np.float64),
        *_of_users(record, moment, jobs),
        quantiles,
        record.start[jobs] - moment.at,
    )


def _of_users(record: Record, moment: Moment, jobs: Ints) -> tuple[Floats, Floats, Floats, Floats]:
    """Return what the users of pending jobs do: last wait, jobs ahead, longest wait of the others, running jobs."""
    user, size = record.users[jobs], jobs.size
    last, ahead, waited = np.zeros(size), np.zeros(size), np.zeros(size)
    waiting: dict[int, list[int]] = {}
    for job in moment.pending:
        waiting.setdefault(int(record.users[job]), []).append(int(job))
    for k, job in enumerate(jobs):
        start, wait = record.starts_of[int(user[k])]
        known = np.searchsorted(start, moment.at, side="right")
        last[k] = wait[known - 1] if known else 0.0
        others = [j for j in waiting[int(user[k])] if j != job]
        ahead[k] = sum(j < job for j in others)
        waited[k] = moment.at - record.submit[others[0]] if others else 0.0
    running = np.bincount(record.users[moment.running], minlength=int(record.users.max()) + 1)
    return last, ahead, waited, running[user].astype(np.float64)
