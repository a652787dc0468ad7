"""What perfect foresight would pay: the cheapest course of replicas for a known demand, by dynamic programming.

Time goes in bins, within which the number of replicas is constant. A replica costs its price while it is there and while
it boots; stopping is free and at once. Work is a fluid in units of one replica and bin: it needs no replica of its own,
may wait, and costs the penalty once it is older than allowed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gputwin.core.units import HOUR

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
_MOST_LEVELS = 600
_FORBIDDEN = 1e15


@dataclass(frozen=True)
class Foresight:
    """The cheapest course: replicas in each bin, and what it costs."""

    replicas: Integers
    compute: float
    penalty: float

    @property
    def total(self) -> float:
        """Return compute and penalty."""
        return self.compute + self.penalty


def cheapest_course(
    work: Floats,
    bin_seconds: float,
    *,
    boot_seconds: float,
    price_per_hour: float,
    penalty_per_second: float = math.inf,
    work_per_request: float = 1.0,
    allowed_seconds: float = 0.0,
    minimum: int = 0,
    first: int = 0,
) -> Foresight:
    """Return the cheapest number of replicas per bin for `work`, the replica-seconds of work that arrive in each bin.

    Work may wait for `allowed_seconds` freely; beyond that each request in it costs the penalty per second (infinite: no
    work may be older). `first` replicas are there before the first bin. Work is rounded down to whole units over time, and
    none of it need be done by the end, so the course costs no more than the best real one on the same bins.
    """
    total = np.floor(np.cumsum(work) / bin_seconds + 1e-9).astype(np.int64)
    units = np.diff(total, prepend=0)
    # Work that came within the allowed time, this bin's included, is not late.
    young = math.ceil(allowed_seconds / bin_seconds - 1e-9) if math.isfinite(allowed_seconds) else len(units)
    before = np.concatenate([[0], total])
    at = np.arange(len(units)) + 1
    free = before[at] - before[np.maximum(at - young, 0)]
    levels = int(min(1.5 * float(free.max(initial=0)) + 2, _MOST_LEVELS)) if young else 1
    most = max(int(units.max(initial=0)), minimum, first, 1)
    late_cost = min(penalty_per_second * bin_seconds * bin_seconds / max(work_per_request, 1e-12), _FORBIDDEN)
    chosen, penalty = _course(
        units,
        free,
        most,
        minimum,
        first,
        levels,
        boot_seconds * price_per_hour / HOUR,
        price_per_hour / HOUR * bin_seconds,
        late_cost,
    )
    starts = np.maximum(np.diff(chosen, prepend=first), 0).sum()
    compute = (float(chosen.sum()) * bin_seconds + float(starts) * boot_seconds) * price_per_hour / HOUR
    return Foresight(chosen, compute, float(penalty))


@njit(cache=True)
def _course(
    units: Integers,
    free: Integers,
    most: int,
    minimum: int,
    first: int,
    levels: int,
    up_cost: float,
    keep_cost: float,
    late_cost: float,
) -> tuple[Integers, float]:
    bins = units.size
    value = np.full((most + 1, levels), np.inf)
    value[first, 0] = 0.0
    # Where each state came from: replicas before, and waiting units before.
    came_from = np.zeros((bins, most + 1, levels, 2), dtype=np.int16)
    best = np.empty(most + 1)
    source = np.empty(most + 1, dtype=np.int64)
    for t in range(bins):
        after = np.full((most + 1, levels), np.inf)
        for b in range(levels):
            # Fewer replicas before: each one more is a start.
            low, at = np.inf, 0
            for n in range(most + 1):
                low += up_cost
                if value[n, b] < low:
                    low, at = value[n, b], n
                best[n], source[n] = low, at
            # More before: stopping is free.
            low, at = np.inf, most
            for n in range(most, -1, -1):
                if value[n, b] < low:
                    low, at = value[n, b], n
                if low < best[n]:
                    best[n], source[n] = low, at
                if n < minimum or best[n] == np.inf:
                    continue
                left = max(b + units[t] - n, 0)
                late = max(left - free[t], 0)
                level = min(left, levels - 1)
                cost = best[n] + n * keep_cost + late * late_cost
                if cost < after[n, level]:
                    after[n, level] = cost
                    came_from[t, n, level, 0], came_from[t, n, level, 1] = source[n], b
        value = after
    n, b = 0, 0
    for i in range(most + 1):
        for j in range(levels):
            if value[i, j] < value[n, b]:
                n, b = i, j
    penalty = 0.0
    chosen = np.zeros(bins, dtype=np.int64)
    for t in range(bins - 1, -1, -1):
        chosen[t] = n
        before = came_from[t, n, b]
        penalty += max(max(before[1] + units[t] - n, 0) - free[t], 0) * late_cost
        n, b = before[0], before[1]
    return chosen, penalty
