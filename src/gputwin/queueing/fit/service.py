"""Service times: which distribution they follow, judged by likelihood and by their distance to it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gputwin.core.errors import UserError
from gputwin.queueing.distributions import BoundedPareto, Distribution, Floats, Hyperexponential, Lognormal, exponential
from gputwin.queueing.fit.moments import from_two_moments

_SMALLEST = 1e-3
_EM_ROUNDS = 300
_EM_SAMPLE = 20_000


class ServiceFit(NamedTuple):
    """One family fitted to service times."""

    family: str
    distribution: Distribution
    ks: float
    """Largest difference of distribution functions (Kolmogorov–Smirnov)."""
    log_likelihood: float | None
    """Per job; None for fits by moments, which have another aim."""
    parameters: int
    mean_ratio: float
    """Mean of the fit over that of the data."""
    scv_ratio: float
    """Squared variation of the fit over that of the data: what queues feel."""


@dataclass(frozen=True)
class Tail:
    """The upper tail as a power law: share above x falls as x^(−index) from `start` s on."""

    index: float
    start: float
    jobs: int
    ks: float

    @property
    def heavy(self) -> bool:
        """True where the variance of the law is infinite: formulas with E[S²] then say more of the largest job seen."""
        return self.index < 2


def fit_service(times: Floats) -> list[ServiceFit]:
    """Return lognormal, exponential, hyperexponential, bounded Pareto and two-moment fits, nearest (KS) first."""
    times = _clean(times)
    families: dict[str, tuple[Distribution, int, bool]] = {
        "exponential": (exponential(float(times.mean())), 1, True),
        "lognormal": (fit_lognormal(times), 2, True),
        "hyperexponential": (fit_hyperexponential(times), 5, True),
        "phase type, two moments": (from_two_moments(float(times.mean()), _scv(times)), 3, False),
    }
    if times.max() > times.min() * 1.01:
        families["bounded Pareto"] = (fit_bounded_pareto(times), 3, True)
    fits = []
    for family, (distribution, parameters, by_likelihood) in families.items():
        likelihood = _log_likelihood(distribution, times) if by_likelihood else None
        variation = distribution.second_moment / distribution.mean**2 - 1
        fits.append(
            ServiceFit(
                family,
                distribution,
                ks_distance(times, distribution),
                likelihood,
                parameters,
                distribution.mean / float(times.mean()),
                variation / _scv(times) if _scv(times) > 0 else 1.0,
            )
        )
    return sorted(fits, key=lambda fit: fit.ks)


def fit_lognormal(times: Floats) -> Lognormal:
    """Return the lognormal of highest likelihood."""
    logs = np.log(_clean(times))
    return Lognormal(float(logs.mean()), max(float(logs.std()), 1e-9))


def fit_hyperexponential(times: Floats, branches: int = 3) -> Hyperexponential:
    """Return the hyperexponential of highest likelihood found by expectation–maximisation.

    As for phase-type distributions by Asmussen, Nerman and Olsson (1996); branches start at spread quantiles. Long
    samples are thinned evenly in order of size, which leaves the likelihood's shape.
    """
    x = np.sort(_clean(times))
    if x.size > _EM_SAMPLE:
        x = x[np.linspace(0, x.size - 1, _EM_SAMPLE).astype(np.int64)]
    quantiles = np.quantile(x, (np.arange(branches) + 0.5) / branches)
    means = np.maximum(quantiles, _SMALLEST) * np.logspace(-0.2, 0.2, branches)
    shares = np.full(branches, 1 / branches)
    last = -math.inf
    for _ in range(_EM_ROUNDS):
        density = shares / means * np.exp(-x[:, None] / means)
        total = np.maximum(density.sum(axis=1), 1e-300)
        weight = density / total[:, None]
        shares = weight.mean(axis=0)
        means = np.maximum((weight * x[:, None]).sum(axis=0) / np.maximum(weight.sum(axis=0), 1e-300), _SMALLEST)
        now = float(np.log(total).mean())
        if now - last < 1e-8:
            break
        last = now
    order = np.argsort(means)
    return Hyperexponential(tuple(map(float, shares[order])), tuple(map(float, means[order])))


def fit_bounded_pareto(times: Floats) -> BoundedPareto:
    """Return the power law between the least and the largest time, of highest likelihood (Aban et al., 2006)."""
    from scipy import optimize

    x = _clean(times)
    low, high = float(x.min()), float(x.max()) * (1 + 1e-9)
    log_ratio, mean_log = math.log(low / high), float(np.log(x / low).mean())

    def slope(a: float) -> float:
        power = math.exp(a * log_ratio)
        return 1 / a + power * log_ratio / (1 - power) - mean_log

    ends = 1e-6, 50.0
    if slope(ends[0]) <= 0:
        return BoundedPareto(ends[0], low, high)
    if slope(ends[1]) >= 0:
        return BoundedPareto(ends[1], low, high)
    return BoundedPareto(float(optimize.brentq(slope, *ends)), low, high)


def fit_tail(times: Floats, most: float = 0.2, least_jobs: int = 50) -> Tail | None:
    """Return the power law of the upper tail; None for too few jobs.

    Hill's estimator from the start whose law is nearest to the data (Clauset, Shalizi and Newman, "Power-Law
    Distributions in Empirical Data", 2009, section 3), among starts that leave at most the share `most` above.
    """
    x = np.sort(_clean(times))
    n = x.size
    if n * most < least_jobs:
        return None
    best: Tail | None = None
    for above in np.unique(np.geomspace(least_jobs, n * most, 60).astype(np.int64)):
        tail = x[n - above :]
        start = float(tail[0])
        spread = float(np.log(tail / start).sum())
        if spread <= 0:
            continue
        index = above / spread
        law = 1 - (tail / start) ** -index
        steps = np.arange(above) / above
        ks = float(np.maximum(np.abs(law - steps), np.abs(law - steps - 1 / above)).max())
        if best is None or ks < best.ks:
            best = Tail(index, start, int(above), ks)
    return best


def ks_distance(times: Floats, distribution: Distribution) -> float:
    """Return the largest difference of the data's distribution function and the fit's (Kolmogorov–Smirnov)."""
    x = np.sort(_clean(times))
    law = distribution.cdf(x)
    n = x.size
    return float(np.maximum(np.abs(law - np.arange(n) / n), np.abs(law - np.arange(1, n + 1) / n)).max())


def _log_likelihood(distribution: Distribution, times: Floats) -> float:
    match distribution:
        case Hyperexponential(probabilities, means):
            parts = [p / m * np.exp(-times / m) for p, m in zip(probabilities, means, strict=True)]
            return float(np.log(np.maximum(np.sum(parts, axis=0), 1e-300)).mean())
        case Lognormal(mu, sigma):
            z = (np.log(times) - mu) / sigma
            return float((-np.log(times * sigma * math.sqrt(2 * math.pi)) - z**2 / 2).mean())
        case BoundedPareto(a, low, high):
            scale = math.log(a) + a * math.log(low) - math.log1p(-((low / high) ** a))
            return float((scale - (a + 1) * np.log(times)).mean())
        case _:
            raise TypeError(f"no density of {type(distribution).__name__}")


def _clean(times: Floats) -> Floats:
    x = np.asarray(times, np.float64)
    x = x[np.isfinite(x)]
    if x.size == 0:
        raise UserError("no job has a known duration, so there is nothing to fit")
    return np.maximum(x, _SMALLEST)


def _scv(times: Floats) -> float:
    return float(times.var() / times.mean() ** 2)
