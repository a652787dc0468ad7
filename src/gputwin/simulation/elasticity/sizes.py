"""Sizes of all jobs at once: the rules of `allocation.py` on a table of speeds, fast enough for a round of a large cluster.

`speed[j, n]` is the work a second of job j on n GPUs (0 on none), `left[j]` the work it has left. Jobs are in order of
submission. A job has no GPUs, or `least[j]` to `most[j]`; where these are equal they need not be whole.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from gputwin.core.registry import Registry
from gputwin.simulation.elasticity.throughput import Floats

Ints = npt.NDArray[np.int64]
_EPSILON = 1e-9


@dataclass(frozen=True)
class Demand:
    """The jobs that share GPUs at a round."""

    speed: Floats
    left: Floats
    least: Floats
    most: Floats

    def of(self, rows: Ints) -> Demand:
        """Return some of the jobs."""
        return replace(self, speed=self.speed[rows], left=self.left[rows], least=self.least[rows], most=self.most[rows])

    def column(self, gpus: Floats) -> Ints:
        """Return the column of `speed` that holds each job on so many GPUs."""
        column: Ints = np.minimum(np.ceil(gpus), self.speed.shape[1] - 1).astype(np.int64)
        return column

    def seconds_left(self) -> Floats:
        """Return [job, GPUs]: the time it needs on so many, s."""
        with np.errstate(divide="ignore"):
            seconds: Floats = self.left[:, None] / self.speed
        return seconds


def let_in(least: Floats, gpus: float) -> npt.NDArray[np.bool_]:
    """Return who gets its least, in order; who does not fit is passed over."""
    if least.sum() <= gpus + _EPSILON:
        return np.ones(least.size, np.bool_)
    gets = np.zeros(least.size, np.bool_)
    smallest = float(least.min())
    for j, asked in enumerate(least.tolist()):
        if asked <= gpus + _EPSILON:
            gets[j] = True
            gpus -= asked
            if gpus + _EPSILON < smallest:
                break
    return gets


def one_at_a_time(demand: Demand, gain: Floats, gpus: float) -> Floats:
    """Return sizes: the least for each in order, then one GPU at a time to the largest positive gain.

    `gain[j, n]` is that of the GPU that follows n. A gain counts only once those before it were taken, so entries are
    taken in the sequence of the smallest gain up to each: that is the same as looking for the largest gain each time.
    """
    sizes = np.where(let_in(demand.least, gpus), demand.least, 0.0)
    free = int(gpus - sizes.sum() + _EPSILON)
    columns = np.arange(gain.shape[1])
    may = (columns >= demand.least[:, None]) & (columns < demand.most[:, None]) & (sizes[:, None] > 0)
    if free <= 0 or not may.any():
        return sizes
    until = np.minimum.accumulate(np.where(columns >= demand.least[:, None], gain, np.inf), axis=1)
    row, column = np.nonzero(may & (until > 0))
    if row.size > free:
        row = row[np.argsort(-until[row, column], kind="stable")[:free]]
    sizes += np.bincount(row, minlength=sizes.size)
    return sizes


def optimus(demand: Demand, gpus: float) -> Floats:
    """Return sizes where each GPU goes to whose remaining time it shortens most (Optimus, EuroSys'18, section 4.1)."""
    seconds = demand.seconds_left()
    with np.errstate(invalid="ignore"):
        return one_at_a_time(demand, seconds[:, :-1] - seconds[:, 1:], gpus)


def pollux(demand: Demand, gpus: float) -> Floats:
    """Return sizes that raise the harmonic mean of speedups over an equal share (Pollux, OSDI'21, section 4.2)."""
    fair = demand.column(np.clip(max(gpus // max(demand.left.size, 1), 1), demand.least, demand.most))
    equal = demand.speed[np.arange(demand.left.size), fair]
    with np.errstate(divide="ignore", invalid="ignore"):
        inverse = equal[:, None] / demand.speed
        return one_at_a_time(demand, inverse[:, :-1] - inverse[:, 1:], gpus)


def afs(demand: Demand, gpus: float) -> Floats:
    """Return sizes by AFS-L: short jobs first, unless a longer one makes more of the next GPU (NSDI'21, section 4.2).

    Jobs without GPUs come first, the shortest of them before others. Then of all jobs from the shortest to the longest,
    one that makes more of a GPU takes the place of the one found before it. Who gains nothing gets no more.
    """
    rows = np.arange(demand.left.size)
    seconds = demand.seconds_left()
    shortest = np.argsort(seconds[rows, demand.column(demand.least)], kind="stable")
    gets = np.zeros(rows.size, np.bool_)
    gets[shortest] = let_in(demand.least[shortest], gpus)
    sizes = np.where(gets, demand.least, 0.0)
    free = int(gpus - sizes.sum() + _EPSILON)
    able = np.flatnonzero(gets & (demand.most >= demand.least + 1))
    if free <= 0 or not able.size:
        return sizes
    if (demand.most - demand.least)[able].sum() <= free:
        sizes[able] = demand.most[able]
        return sizes
    sizes[able] += _afs_growth(demand.of(able), seconds[able], free)
    return sizes


def _afs_growth(demand: Demand, seconds: Floats, free: int) -> Floats:
    """Return how many GPUs each job gets beyond its least."""
    now, rows = demand.least.astype(np.int64), np.arange(demand.left.size)
    step = np.diff(demand.speed, axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        as_long, as_short = step / demand.speed[:, 1:], step / demand.speed[:, :-1]
    seconds = np.where(np.pad(step > 0, ((0, 0), (0, 1))), seconds, np.inf)
    left, long, short = seconds[rows, now], as_long[rows, now], as_short[rows, now]
    for _ in range(free):
        best = int(left.argmin())
        if left[best] == np.inf:
            break
        while True:
            later = (left > left[best]) | ((left == left[best]) & (rows > best))
            rivals = np.flatnonzero(later & (long > short[best]) & (left < np.inf))
            if not rivals.size:
                break
            best = int(rivals[left[rivals].argmin()])
        now[best] += 1
        if now[best] >= demand.most[best]:
            left[best] = np.inf
        else:
            left[best], long[best], short[best] = (of[best, now[best]] for of in (seconds, as_long, as_short))
    return now - demand.least


@dataclass(frozen=True)
class ElasticPolicy:
    """A named rule for the sizes of elastic jobs; `adapts`: jobs choose their batch size by goodput."""

    name: str
    rule: str
    source: str
    sizes: Callable[[Demand, float], Floats]
    adapts: bool = False


SHRINK = "shrink"
"""The elastic policy without rounds: running jobs are halved to let others in."""
ELASTIC: Registry[ElasticPolicy] = Registry("elastic policy", "gputwin.simulation.elasticity", besides=(SHRINK,))
ELASTIC.add(
    ElasticPolicy(
        "optimus",
        "at each round, one GPU at a time goes to the job whose remaining time it shortens most",
        "Peng et al., Optimus, EuroSys'18, section 4.1",
        optimus,
    )
)
ELASTIC.add(
    ElasticPolicy(
        "afs",
        "at each round, the next GPU goes to the shortest job, unless a longer one makes more of it",
        "Hwang et al., Elastic Resource Sharing for Distributed Deep Learning, NSDI'21, section 4.2",
        afs,
    )
)
ELASTIC.add(
    ElasticPolicy(
        "pollux",
        "at each round, one GPU at a time goes where it raises the harmonic mean of goodputs over an equal share most; "
        "jobs choose their batch by goodput",
        "Qiao et al., Pollux, OSDI'21, section 4.2",
        pollux,
        adapts=True,
    )
)
