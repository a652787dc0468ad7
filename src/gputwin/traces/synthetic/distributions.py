"""Distributions as they are published: quantiles of a continuous quantity, shares of a discrete one.

A quantity is drawn from a standard normal number z or from a uniform number u, so that the caller can make z and u
depend on one another (a Gaussian copula) without changing what each quantity looks like on its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from statistics import NormalDist
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Side = Literal["left", "right"]

# The probabilities at which recipes take quantiles of traces at hand.
KNOTS = (
    0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999, 1,
)  # fmt: skip
_EDGE = 5.0  # where the normal scale is cut: beyond it lies one draw in 1.7 million on each side


@cache
def _normal_table() -> tuple[Floats, Floats]:
    z = np.linspace(-_EDGE, _EDGE, 2001)
    return z, np.array([NormalDist().cdf(x) for x in z])


def normal_cdf(z: Floats) -> Floats:
    """Return the probability that a standard normal number is at most `z`, to six digits."""
    knots, probability = _normal_table()
    return np.interp(z, knots, probability, left=0.0, right=1.0)


def normal_quantile(u: Floats) -> Floats:
    """Return the standard normal number below which the share `u` lies, cut at ±5."""
    knots, probability = _normal_table()
    return np.interp(u, probability, knots)


@dataclass(frozen=True)
class Quantiles:
    """A continuous quantity of which some quantiles are known.

    Between two of them log(1 + value) is linear on the normal scale: a table of two quantiles is a log-normal
    distribution, one of many follows body and tail alike. A value that is repeated is an atom (waits of zero).
    With `whole` the quantity is rounded to whole numbers, as clocks that tick in seconds do.
    """

    probabilities: tuple[float, ...]
    values: tuple[float, ...]
    whole: bool = True

    def __post_init__(self) -> None:
        if len(self.probabilities) != len(self.values) or self.probabilities[0] != 0.0 or self.probabilities[-1] != 1.0:
            raise ValueError("quantiles need one value per probability, from 0 to 1")

    @classmethod
    def at_most(cls, largest: float, *shares: tuple[float, float]) -> Quantiles:
        """Return the distribution of a whole number of which shares at most some values are known: (value, share)."""
        return cls((0.0, *(p for _, p in shares), 1.0), (0.0, *(value + 0.5 for value, _ in shares), largest))

    @cached_property
    def _knots(self) -> tuple[Floats, Floats]:
        inner = [NormalDist().inv_cdf(p) for p in self.probabilities[1:-1]]
        return np.array([-_EDGE, *inner, _EDGE]), np.log1p(np.array(self.values))

    def at(self, z: Floats) -> Floats:
        """Return the value for each standard normal number."""
        knots, logs = self._knots
        values = np.expm1(np.interp(z, knots, logs))
        return np.rint(values) if self.whole else values

    def cdf(self, x: Floats, side: Side = "right") -> Floats:
        """Return P(value ≤ x), or P(value < x) with side="left"."""
        knots, logs = self._knots
        if self.whole:
            x = np.maximum(np.floor(x) + 0.5 if side == "right" else np.ceil(x) - 0.5, 0.0)
        t = np.log1p(x)
        i = np.clip(np.searchsorted(logs, t, side=side), 1, len(logs) - 1)
        step = np.where(logs[i] > logs[i - 1], logs[i] - logs[i - 1], 1.0)
        part = np.clip((t - logs[i - 1]) / step, 0.0, 1.0)
        inside = normal_cdf(knots[i - 1] + part * (knots[i] - knots[i - 1]))
        above = t >= logs[-1] if side == "right" else t > logs[-1]
        below = t < logs[0] if side == "right" else t <= logs[0]
        return np.where(above, 1.0, np.where(below, 0.0, inside))

    def quantile(self, p: Floats) -> Floats:
        """Return the value below which the share `p` lies."""
        return self.at(normal_quantile(p))

    @property
    def points(self) -> Floats:
        """Return the values where the distribution function may bend or jump."""
        return np.rint(self.values) if self.whole else np.array(self.values)

    @property
    def mean(self) -> float:
        """Return the mean."""
        p = (np.arange(200_000) + 0.5) / 200_000
        return float(self.quantile(p).mean())


@dataclass(frozen=True)
class Shares:
    """A quantity with few values, each with its share; shares need not add up to 1. Values ascend."""

    shares_by_value: tuple[tuple[float, float], ...]

    @cached_property
    def values(self) -> Floats:
        """Return the values."""
        return np.array([v for v, _ in self.shares_by_value], dtype=np.float64)

    @cached_property
    def cumulative(self) -> Floats:
        """Return P(value ≤ each value)."""
        total = np.cumsum([s for _, s in self.shares_by_value], dtype=np.float64)
        result: Floats = total / total[-1]
        return result

    def at(self, u: Floats) -> Floats:
        """Return the value for each uniform number."""
        return self.values[pick(self.cumulative, u)]

    def cdf(self, x: Floats, side: Side = "right") -> Floats:
        """Return P(value ≤ x), or P(value < x) with side="left"."""
        return np.concatenate([[0.0], self.cumulative])[np.searchsorted(self.values, x, side=side)]

    def quantile(self, p: Floats) -> Floats:
        """Return the smallest value that at least the share `p` does not exceed."""
        i = np.searchsorted(self.cumulative, np.asarray(p) - 1e-12, side="left")
        return self.values[np.minimum(i, len(self.values) - 1)]

    @property
    def points(self) -> Floats:
        """Return the values where the distribution function jumps."""
        return self.values

    @property
    def mean(self) -> float:
        """Return the mean."""
        return float(self.values @ np.diff(self.cumulative, prepend=0.0))


Distribution = Quantiles | Shares


def pick(cumulative: Floats, u: Floats) -> Ints:
    """Return, for each uniform number, the place in a table of cumulative shares that it falls on."""
    return np.minimum(np.searchsorted(cumulative, u, side="right"), len(cumulative) - 1)


def spread(score: Floats, weight: Floats) -> Floats:
    """Return one number in (0, 1) per row, rising with `score`, that is exactly uniform when rows count by `weight`.

    Groups of jobs differ in size by orders of magnitude. Drawing each group's trait independently would let the few
    largest decide what the trace looks like; placing groups along the cumulative weight does not.
    """
    order = np.argsort(score)
    cumulative = np.cumsum(weight[order])
    u = np.empty(len(score))
    u[order] = (cumulative - weight[order] / 2) / cumulative[-1] if len(score) else cumulative
    return u


def spread_within(score: Floats, weight: Floats, kind: NDArray[Any]) -> Floats:
    """Return `spread` among the rows of each kind: uniform by weight within every kind, not only over all."""
    u = np.empty(len(score))
    for value in np.unique(kind):
        rows = np.flatnonzero(kind == value)
        u[rows] = spread(score[rows], weight[rows])
    return u


def even(rng: np.random.Generator, rows: int) -> Floats:
    """Return uniform numbers in random order, one from each of `rows` equal steps: no tail is missed or drawn twice."""
    u: Floats = (rng.permutation(rows) + rng.random(rows)) / rows
    return u
