"""Intervals from earlier points alone: what happened to the jobs most like this one, of which as much was known.

For a point, the earlier points of the same state are ranked by how near they are: in what the simulation said, how long
the job had waited, its gang size, by how many it was overtaken, and what its user's other jobs do. Of the nearest fifth
(three fifths for held jobs) come the quantiles of the waits that followed (conformal prediction, localised by nearest
neighbours: Lei et al., JASA 2018; Guan, Biometrika 2023), moved along the slope that these waits have in what was
simulated for them (local linear regression: Fan, JASA 1992): else all would be too short while a queue grows beyond
those seen before. Of a job that still waits it is known only that its wait is
longer: Kaplan and Meier's estimate counts it so. Nothing that happened after the point's own time is looked at.
"""

from __future__ import annotations

import numpy as np

from gputwin.profiling.jobs import Flags, Floats
from gputwin.profiling.survival import kaplan_meier
from gputwin.studies.eta.points import LEVELS, Points

LEAST = 50
"""Earlier points of the state below which nothing is calibrated."""
MOST = 3000
"""Earlier points that are looked at: what is older may have been under other rules."""
NEAR = (0.2, 0.2, 0.6)
"""Share of the earlier points that count as near, by state: what is known of a held job says little."""
STEP = 0.003
"""By how much a point that its interval missed moves the share left outside."""
TAILS = (0.01, 0.3)
"""Least and most to leave outside at either end."""
SMALLEST = 30.0
"""s; times are compared as logarithms after adding this: schedulers look at their queue every few seconds."""


def log_time(seconds: Floats) -> Floats:
    """Return times on the scale on which they are compared."""
    return np.asarray(np.log(SMALLEST + np.maximum(seconds, 0.0)))


def features(points: Points, *, simulation: bool = True) -> Floats:
    """Return [point, feature]: where each point stands; without the simulation, only what the trace shows."""
    columns = [
        0.5 * log_time(points.waited),
        np.log2(np.maximum(points.instances, 1.0)),
        0.5 * np.log1p(points.overtaken),
        0.5 * log_time(points.user_wait),
        np.log1p(points.user_ahead),
        0.5 * log_time(points.user_waited),
        0.5 * np.log1p(points.user_running),
    ]
    if simulation:
        columns.append(log_time(np.nan_to_num(points.simulated[:, 1])))
    return np.column_stack(columns)


def calibrated(points: Points, *, simulation: bool = True) -> Floats:
    """Return [point, level]: quantiles (s) of each point's wait from points before it; NaN where those are too few.

    Points are in time order.
    """
    place = features(points, simulation=simulation)
    told = log_time(np.nan_to_num(points.simulated[:, 1])) if simulation else np.zeros(points.size)
    result = np.full((points.size, len(LEVELS)), np.nan)
    for state in np.unique(points.state):
        rows = np.flatnonzero(points.state == state)
        tails = _Tails()
        for k, i in enumerate(rows):
            past = rows[:k][points.at[rows[:k]] < points.at[i]][-MOST:]
            if past.size < LEAST:
                continue
            tails.learn(points, result, float(points.at[i]))
            distance = ((place[past] - place[i]) ** 2).sum(axis=1)
            near = past[np.argsort(distance, kind="stable")[: max(LEAST, int(past.size * NEAR[state]))]]
            seen = points.at[near] + points.wait[near] <= points.at[i]
            waits = np.where(seen, points.wait[near], points.at[i] - points.at[near])
            waits = _moved(waits, seen, told[near], float(told[i]))
            result[i] = _quantiles(waits, seen, np.array([tails.below, LEVELS[1], 1.0 - tails.above]))
            tails.open.append(int(i))
    return result


def _moved(waits: Floats, seen: Flags, told: Floats, here: float) -> Floats:
    """Return waits (s) as their slope in what was simulated (`told`, on the scale of `log_time`) has them at `here`.

    The slope is that of least squares over the waits that were seen, between 0 and 1: 0 where the simulation says nothing.
    """
    apart = told[seen] - told[seen].mean() if seen.any() else np.zeros(0)
    size = float((apart**2).sum())
    if size <= 0:
        return waits
    slope = float(np.clip((apart * log_time(waits[seen])).sum() / size, 0.0, 1.0))
    return np.asarray(np.maximum((SMALLEST + waits) * np.exp(slope * (here - told)) - SMALLEST, 0.0))


class _Tails:
    """Shares to leave below and above the interval, adapted to how often earlier intervals missed on that side.

    Adaptive conformal inference (Gibbs and Candès, NeurIPS 2021), one step per point as soon as it is known whether
    its interval held.
    """

    def __init__(self) -> None:
        self.below, self.above = LEVELS[0], 1.0 - LEVELS[-1]
        self.open: list[int] = []

    def learn(self, points: Points, intervals: Floats, now: float) -> None:
        """Take into account the points of which it is known by `now` whether they started within their interval."""
        if not self.open:
            return
        rows = np.array(self.open)
        ran = now - points.at[rows]
        started = points.wait[rows] <= ran
        low, high = intervals[rows, 0], intervals[rows, -1]
        decided = started | (ran > high)
        self.open = rows[~decided].tolist()
        early = int((started & (points.wait[rows] < low)).sum())
        late = int((decided & (np.minimum(points.wait[rows], ran) > high)).sum())
        count = int(decided.sum())
        self.below = float(np.clip(self.below + STEP * (LEVELS[0] * count - early), *TAILS))
        self.above = float(np.clip(self.above + STEP * ((1.0 - LEVELS[-1]) * count - late), *TAILS))


def _quantiles(waits: Floats, seen: Flags, levels: Floats) -> Floats:
    """Return the quantiles of waits, of which those not `seen` are known to be longer."""
    if not seen.any():
        return np.full(len(LEVELS), np.nan)
    times, remain = kaplan_meier(waits, seen)
    rank = np.searchsorted(1.0 - remain, levels - 1e-9, side="left")
    return times[np.minimum(rank, times.size - 1)]
