"""Distributions of times with what queueing needs of them: moments, quantiles, Laplace transform, draws."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from gputwin.core.errors import UserError

Floats = NDArray[np.float64]
Complexes = NDArray[np.complex128]
_CELLS = 20_000


class Distribution(Protocol):
    """A distribution of non-negative times, s."""

    @property
    def mean(self) -> float:
        """Return the mean, s."""

    @property
    def second_moment(self) -> float:
        """Return E[X²], s²."""

    def cdf(self, x: Floats) -> Floats:
        """Return the share of times up to x."""

    def quantile(self, share: Floats) -> Floats:
        """Return the times that these shares do not exceed."""

    def transform(self, s: Complexes) -> Complexes:
        """Return E[e^(−sX)]."""

    def draw(self, rng: np.random.Generator, count: int) -> Floats:
        """Return so many independent times."""


def scv(of: Distribution) -> float:
    """Return the squared coefficient of variation: 0 for constant times, 1 for exponential ones."""
    return max(of.second_moment / of.mean**2 - 1, 0.0)


def tail_grid(cells: int = _CELLS) -> tuple[Floats, Floats]:
    """Return shares of times (middles of cells) and the cells' weights, finer and finer towards the tail."""
    head = np.linspace(0, 0.9, cells // 2, endpoint=False)
    tail = 1 - 0.1 * np.logspace(0, -13, cells // 2)
    edges = np.concatenate([head, tail, [1.0]])
    middle = 1 - np.sqrt((1 - edges[:-1]) * np.maximum(1 - edges[1:], (1 - edges[:-1]) / 10))
    return middle, np.diff(edges)


def transform_by_quantiles(of: Distribution, s: Complexes) -> Complexes:
    """Return E[e^(−sX)] by summing over a fine grid of quantiles, for distributions whose transform has no formula."""
    share, weight = tail_grid(4_000)
    times = of.quantile(share)
    return np.asarray((np.exp(-np.multiply.outer(s, times)) * weight).sum(axis=-1), np.complex128)


@dataclass(frozen=True)
class Hyperexponential:
    """Exponential with one of several means, chosen with these probabilities; squared variation of 1 and more."""

    probabilities: tuple[float, ...]
    means: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Return the mean, s."""
        return math.fsum(p * m for p, m in zip(self.probabilities, self.means, strict=True))

    @property
    def second_moment(self) -> float:
        """Return E[X²], s²."""
        return 2 * math.fsum(p * m * m for p, m in zip(self.probabilities, self.means, strict=True))

    def cdf(self, x: Floats) -> Floats:
        """Return the share of times up to x."""
        tail = sum(p * np.exp(-np.maximum(x, 0) / m) for p, m in zip(self.probabilities, self.means, strict=True))
        return np.asarray(1 - tail)

    def quantile(self, share: Floats) -> Floats:
        """Return the times that these shares do not exceed, by bisection on the logarithm of the tail."""
        if len(self.means) == 1:
            return np.asarray(-self.means[0] * np.log1p(-share))
        low, high = np.zeros_like(share), -max(self.means) * np.log1p(-share) + min(self.means)
        for _ in range(90):
            middle = (low + high) / 2
            above = self.cdf(middle) > share
            low, high = np.where(above, low, middle), np.where(above, middle, high)
        return np.asarray((low + high) / 2)

    def transform(self, s: Complexes) -> Complexes:
        """Return E[e^(−sX)]."""
        return np.asarray(sum(p / (1 + m * s) for p, m in zip(self.probabilities, self.means, strict=True)))

    def draw(self, rng: np.random.Generator, count: int) -> Floats:
        """Return so many independent times."""
        branch = rng.choice(len(self.means), count, p=np.array(self.probabilities) / sum(self.probabilities))
        return rng.exponential(np.array(self.means)[branch])


def exponential(mean: float) -> Hyperexponential:
    """Return the exponential distribution of this mean."""
    return Hyperexponential((1.0,), (mean,))


@dataclass(frozen=True)
class ErlangMixture:
    """Sum of k − 1 (with this probability) or k exponential phases of one mean; squared variation up to 1."""

    stages: int
    fewer: float
    """Probability of one phase less."""
    phase_mean: float

    @property
    def mean(self) -> float:
        """Return the mean, s."""
        return (self.stages - self.fewer) * self.phase_mean

    @property
    def second_moment(self) -> float:
        """Return E[X²], s²."""
        k = self.stages
        return (self.fewer * (k - 1) * k + (1 - self.fewer) * k * (k + 1)) * self.phase_mean**2

    def cdf(self, x: Floats) -> Floats:
        """Return the share of times up to x."""
        from scipy import special

        scaled = np.maximum(x, 0) / self.phase_mean
        less = special.gammainc(self.stages - 1, scaled) if self.stages > 1 else np.where(x >= 0, 1.0, 0.0)
        return np.asarray(self.fewer * less + (1 - self.fewer) * special.gammainc(self.stages, scaled))

    def quantile(self, share: Floats) -> Floats:
        """Return the times that these shares do not exceed, by bisection."""
        from scipy import special

        low = np.zeros_like(share)
        high = special.gammaincinv(self.stages, share) * self.phase_mean
        for _ in range(60):
            middle = (low + high) / 2
            above = self.cdf(middle) > share
            low, high = np.where(above, low, middle), np.where(above, middle, high)
        return np.asarray((low + high) / 2)

    def transform(self, s: Complexes) -> Complexes:
        """Return E[e^(−sX)]."""
        phase = 1 / (1 + self.phase_mean * s)
        return np.asarray(self.fewer * phase ** (self.stages - 1) + (1 - self.fewer) * phase**self.stages)

    def draw(self, rng: np.random.Generator, count: int) -> Floats:
        """Return so many independent times."""
        stages = self.stages - (rng.random(count) < self.fewer)
        return rng.standard_gamma(stages) * self.phase_mean


@dataclass(frozen=True)
class Constant:
    """Always the same time."""

    value: float

    @property
    def mean(self) -> float:
        """Return the mean, s."""
        return self.value

    @property
    def second_moment(self) -> float:
        """Return E[X²], s²."""
        return self.value**2

    def cdf(self, x: Floats) -> Floats:
        """Return the share of times up to x."""
        return np.where(x >= self.value, 1.0, 0.0)

    def quantile(self, share: Floats) -> Floats:
        """Return the times that these shares do not exceed."""
        return np.full_like(share, self.value)

    def transform(self, s: Complexes) -> Complexes:
        """Return E[e^(−sX)]."""
        return np.asarray(np.exp(-self.value * s))

    def draw(self, rng: np.random.Generator, count: int) -> Floats:
        """Return so many times."""
        return np.full(count, self.value)


@dataclass(frozen=True)
class Lognormal:
    """Times whose logarithm is normal."""

    log_mean: float
    log_deviation: float

    @property
    def mean(self) -> float:
        """Return the mean, s."""
        return math.exp(self.log_mean + self.log_deviation**2 / 2)

    @property
    def second_moment(self) -> float:
        """Return E[X²], s²."""
        return math.exp(2 * self.log_mean + 2 * self.log_deviation**2)

    def cdf(self, x: Floats) -> Floats:
        """Return the share of times up to x."""
        from scipy import special

        with np.errstate(divide="ignore"):
            return np.asarray(special.ndtr((np.log(np.maximum(x, 0)) - self.log_mean) / self.log_deviation))

    def quantile(self, share: Floats) -> Floats:
        """Return the times that these shares do not exceed."""
        from scipy import special

        return np.asarray(np.exp(self.log_mean + self.log_deviation * special.ndtri(share)))

    def transform(self, s: Complexes) -> Complexes:
        """Return E[e^(−sX)]."""
        return transform_by_quantiles(self, s)

    def draw(self, rng: np.random.Generator, count: int) -> Floats:
        """Return so many independent times."""
        return rng.lognormal(self.log_mean, self.log_deviation, count)


def lognormal(mean: float, squared_variation: float) -> Lognormal:
    """Return the lognormal distribution of this mean and squared coefficient of variation."""
    spread = math.log1p(squared_variation)
    return Lognormal(math.log(mean) - spread / 2, math.sqrt(spread))


@dataclass(frozen=True)
class BoundedPareto:
    """A power law between two times: the share above x falls as x^(−tail)."""

    tail: float
    low: float
    high: float

    def __post_init__(self) -> None:
        if not 0 < self.low < self.high or self.tail <= 0:
            raise UserError("a bounded Pareto distribution needs 0 < low < high and a positive tail index")

    def _moment(self, power: float) -> float:
        a, low, high = self.tail, self.low, self.high
        scale = a * low**a / (1 - (low / high) ** a)
        if math.isclose(a, power):
            return float(scale * math.log(high / low))
        return float(scale * (high ** (power - a) - low ** (power - a)) / (power - a))

    @property
    def mean(self) -> float:
        """Return the mean, s."""
        return self._moment(1)

    @property
    def second_moment(self) -> float:
        """Return E[X²], s²."""
        return self._moment(2)

    def cdf(self, x: Floats) -> Floats:
        """Return the share of times up to x."""
        inside = np.clip(x, self.low, self.high)
        return np.asarray((1 - (self.low / inside) ** self.tail) / (1 - (self.low / self.high) ** self.tail))

    def quantile(self, share: Floats) -> Floats:
        """Return the times that these shares do not exceed."""
        kept = 1 - share * (1 - (self.low / self.high) ** self.tail)
        return np.asarray(self.low * kept ** (-1 / self.tail))

    def transform(self, s: Complexes) -> Complexes:
        """Return E[e^(−sX)]."""
        return transform_by_quantiles(self, s)

    def draw(self, rng: np.random.Generator, count: int) -> Floats:
        """Return so many independent times."""
        return self.quantile(rng.random(count))
