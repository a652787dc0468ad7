"""Distributions of durations on a common grid: what models predict, and the numbers people ask of it.

A model says how likely each bin of a log-spaced grid is. From that come quantiles and one number to plan with: the
duration of least expected cost, where cost is the absolute error plus a price for being off by more than twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numba
import numpy as np
from numpy.typing import NDArray

from gputwin.profiling.jobs import Floats, Ints

BINS = 96
MASS = np.float32
Mass = NDArray[np.float32]
"""[job, bin]: how likely each duration is; rows sum to 1."""
FACTOR = 2.0
LEAST_LEFT = 1e-6
"""Probability below which what a model says of jobs that ran so long is rounding."""


@dataclass(frozen=True)
class Grid:
    """Bins of durations: `edges` between them (log s, evenly spaced), and of each the typical, least and most value (s).

    `price` in s is what missing a duration by more than twice costs besides the error itself.
    """

    edges: Floats
    values: Floats
    least: Floats
    most: Floats
    price: float

    @classmethod
    def of(cls, duration: Floats, weights: Floats) -> Grid:
        """Return the grid that spans these durations; the price is their median, so that units do not matter."""
        low, high = np.log(duration.min()), np.log(duration.max())
        width = max(high - low, 1e-6) / BINS
        edges = low + np.arange(1, BINS) * width
        bins = np.searchsorted(edges, np.log(duration), side="left")
        count = np.bincount(bins, weights, BINS)
        total = np.bincount(bins, weights * np.log(duration), BINS)
        centres = low + (np.arange(BINS) + 0.5) * width
        typical = np.exp(np.divide(total, count, out=centres, where=count > 0))
        bounds = np.exp(np.concatenate([[low], edges, [high]]))
        least, most = bounds[1:].copy(), bounds[:-1].copy()
        np.minimum.at(least, bins, duration)
        np.maximum.at(most, bins, duration)
        least, most = np.where(count > 0, least, bounds[:-1]), np.where(count > 0, most, bounds[1:])
        order = np.argsort(duration, kind="stable")
        half = np.searchsorted(np.cumsum(weights[order]), 0.5 * weights.sum())
        return cls(edges, typical, least, most, float(duration[order[min(half, duration.size - 1)]]))

    def bins(self, log_duration: Floats) -> Ints:
        """Return the bin each log duration falls into; what is outside the grid counts as at its end."""
        return np.searchsorted(self.edges, log_duration, side="left").astype(np.int64)

    def histogram(self, log_duration: Floats, weights: Floats) -> Mass:
        """Return the distribution of these log durations, one row."""
        counts = np.bincount(self.bins(log_duration), weights, BINS)
        result: Mass = (counts / counts.sum()).astype(MASS)[None]
        return result

    @cached_property
    def _near(self) -> tuple[Ints, Ints]:
        """Return, for each value, the first and one past the last value within a factor of two of it."""
        low = np.searchsorted(self.values, self.values / FACTOR, side="left")
        high = np.searchsorted(self.values, self.values * FACTOR, side="right")
        return low.astype(np.int64), high.astype(np.int64)

    def cheapest(self, mass: Mass) -> Floats:
        """Return the duration of least expected cost of each row, s."""
        result = np.empty(len(mass))
        low, high = self._near
        _cheapest(mass, self.values, low, high, self.price, result)
        return result

    def given_ran(self, mass: Mass, ran: Floats) -> Mass:
        """Return the distributions given that each job has run for `ran` s: what it has outlived is out.

        Of the bin it is in, the part beyond `ran` is left. Where nothing is left, the job is said to be about to end.
        """
        first = np.minimum(np.searchsorted(self.most, ran, side="right"), BINS - 1)
        left = np.where(np.arange(BINS) >= first[:, None], mass, MASS(0.0))
        rows, width = np.arange(ran.size), self.most[first] - self.least[first]
        beyond = np.divide(self.most[first] - ran, width, out=np.ones_like(ran), where=width > 0)
        left[rows, first] *= np.clip(beyond, 0.0, 1.0)
        total = left.sum(axis=1)
        spent = np.flatnonzero(total < LEAST_LEFT)
        left[spent] = 0.0
        left[spent, first[spent]] = total[spent] = 1.0
        result: Mass = (left / total[:, None]).astype(MASS)
        return result

    def quantiles(self, mass: Mass, levels: Floats, *, cautious: bool = False) -> Floats:
        """Return the quantiles at ascending `levels` of each row, s.

        An interval holds the bins it ends in whole, so a bin counts as reached when half of its mass is (Parzen,
        Statistical Science 2004: the mid-distribution function): else intervals would hold more than they promise.
        `cautious` quantiles end in the bin in which the level is reached, which makes up for distributions that are no
        more than the few outcomes seen.
        """
        bins = np.empty((len(mass), len(levels)), np.int64)
        _quantile_bins(mass, levels, 1.0 if cautious else 0.5, bins)
        ends = [self.least if q < 0.5 else self.most if q > 0.5 else self.values for q in levels]
        return np.column_stack([end[bins[:, k]] for k, end in enumerate(ends)]) if ends else np.empty((len(mass), 0))


@numba.njit(cache=True)
def _cheapest(
    mass: Mass, values: Floats, low: Ints, high: Ints, price: float, result: Floats
) -> None:  # pragma: no cover - compiled
    bins = values.size
    below = np.empty(bins + 1)
    for i in range(len(mass)):
        below[0] = 0.0
        mean = 0.0
        for k in range(bins):
            below[k + 1] = below[k] + mass[i, k]
            mean += mass[i, k] * values[k]
        whole = below[bins]
        # E|y − v| grows by (P(y ≤ v) − P(y > v)) per second as v moves up.
        error = mean - whole * values[0]
        best = np.inf
        for k in range(bins):
            if k:
                error += (values[k] - values[k - 1]) * (2.0 * below[k] - whole)
            cost = error + price * (whole - below[high[k]] + below[low[k]])
            if cost < best:
                best = cost
                result[i] = values[k]


@numba.njit(cache=True)
def _quantile_bins(mass: Mass, levels: Floats, share: float, result: Ints) -> None:  # pragma: no cover - compiled
    bins = mass.shape[1]
    below = np.empty(bins)
    # A level that just touches the next bin does not reach into it.
    slack = 1e-6 if share < 1.0 else -1e-6
    for i in range(len(mass)):
        whole = 0.0
        for k in range(bins):
            below[k] = whole
            whole += mass[i, k]
        half = 0
        while half + 1 < bins and below[half + 1] < 0.5 * whole - 1e-6:
            half += 1
        for q in range(levels.size):
            level = levels[q] * whole
            k = half
            if levels[q] < 0.5:
                k = 0
                while k < half and (mass[i, k] <= 0.0 or below[k] + share * mass[i, k] < level - 1e-6):
                    k += 1
            elif levels[q] > 0.5:
                k = bins - 1
                while k > half and (mass[i, k] <= 0.0 or below[k] + (1.0 - share) * mass[i, k] > level + slack):
                    k -= 1
            result[i, q] = k
