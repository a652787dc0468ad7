"""Operational laws: what must hold of any record of jobs, whatever the distributions (Denning and Buzen, 1978).

Each law's two sides are measured in different ways, so that they check the record: a difference points to jobs that were
under way when the record began or ended, or of times that contradict one another.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gputwin.core.errors import UserError
from gputwin.queueing.distributions import Floats


class Law(NamedTuple):
    """One law on one record."""

    name: str
    says: str
    measured: float
    """By integrating over time."""
    computed: float
    """By the law, from counts and means of jobs."""

    @property
    def difference(self) -> float:
        """Return computed over measured, minus 1."""
        return self.computed / self.measured - 1 if self.measured else 0.0


class Record(NamedTuple):
    """Jobs that were submitted, started and ended at these times, s, on so many servers each.

    Submit is NaN where the wait is not known, end infinite where a job has not ended.
    """

    submit: Floats
    start: Floats
    end: Floats
    servers: Floats


def operational_laws(record: Record, capacity: float, begin: float, until: float, instances: Floats) -> list[Law]:
    """Return Little's, the utilisation and the forced-flow law between two times, for `capacity` servers."""
    if not until > begin:
        raise UserError("operational laws need a time to hold in")
    span = until - begin
    came = (record.submit >= begin) & (record.submit < until)
    went = (record.end > begin) & (record.end <= until)
    wait, run = record.start - record.submit, record.end - record.start
    queued = _overlap(record.submit, record.start, begin, until) / span
    busy = float((_each_overlap(record.start, record.end, begin, until) * record.servers).sum()) / span
    arrivals, departures = float(came.sum()) / span, float(went.sum()) / span
    held = record.servers * run
    return [
        Law("Little", "jobs waiting = arrival rate × mean wait", queued, arrivals * _mean(wait[came])),
        Law(
            "Little",
            "jobs running = departure rate × mean run time",
            _overlap(record.start, record.end, begin, until) / span,
            departures * _mean(run[went]),
        ),
        Law(
            "utilisation",
            "share of GPUs in use = departure rate × mean GPU-seconds / GPUs",
            busy / capacity,
            departures * _mean(held[went]) / capacity,
        ),
        Law(
            "forced flow",
            "instances ended = jobs ended × mean instances per job submitted",
            float(instances[went].sum()) / span,
            departures * _mean(instances[came]),
        ),
    ]


def _mean(values: Floats) -> float:
    return float(values.mean()) if values.size else 0.0


def _each_overlap(first: Floats, last: Floats, begin: float, until: float) -> Floats:
    return np.nan_to_num(np.clip(last, begin, until) - np.clip(first, begin, until))


def _overlap(first: Floats, last: Floats, begin: float, until: float) -> float:
    return float(_each_overlap(first, last, begin, until).sum())
