"""HDBSCAN over jobs' requests and use, its settings found by how well, fully and stably it separates them.

Campello, Moulavi and Sander, PAKDD 2013; Yeo and Johnson, Biometrika 2000; silhouette: Rousseeuw 1987; stability: the
adjusted Rand index (Hubert and Arabie 1985) of clusterings of overlapping samples. No number of clusters is aimed at.
Start, end and duration are not among the features.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gputwin.core.rng import stream
from gputwin.profiling.jobs import Floats, Ints

NOISE = -1
MOST_ROWS = 50_000
"""Rows clustered; of larger traces a sample, the rest assigned: HDBSCAN takes time with the square of the rows."""
SEARCH_ROWS = 2_000
_SHARES = (0.005, 0.01, 0.02, 0.05)
_METRICS = ("euclidean", "manhattan")
TRANSFORMS = ("yeo-johnson", "standard")


@dataclass(frozen=True)
class Settings:
    """How rows are clustered: `share` of the rows a cluster has at least."""

    transform: str
    metric: str
    share: float


@dataclass(frozen=True)
class Trial:
    """One clustering of the search: higher is better, noise share apart."""

    settings: Settings
    clusters: int
    silhouette: float
    noise: float
    stability: float

    @property
    def score(self) -> float:
        """Return the mean of silhouette, share of rows in clusters, and stability; 0 for fewer than two clusters."""
        return (self.silhouette + (1.0 - self.noise) + self.stability) / 3.0 if self.clusters > 1 else 0.0


@dataclass(frozen=True)
class Scaling:
    """The power transform that was fitted: exponents, then mean and spread of each column."""

    transform: str
    exponents: Floats
    mean: Floats
    spread: Floats

    @classmethod
    def of(cls, rows: Floats, transform: str) -> Scaling:
        """Return the transform that makes each column as normal as it can be, or only scales it."""
        exponents = np.ones(rows.shape[1])
        if transform == "yeo-johnson":
            from sklearn.preprocessing import PowerTransformer

            exponents = np.asarray(PowerTransformer(standardize=False).fit(rows).lambdas_, np.float64)
        bent = _bend(rows, exponents)
        spread = bent.std(axis=0)
        return cls(transform, exponents, bent.mean(axis=0), np.where(spread > 1e-12, spread, 1.0))

    def apply(self, rows: Floats) -> Floats:
        """Return the rows transformed."""
        return np.asarray((_bend(rows, self.exponents) - self.mean) / self.spread)


def _bend(rows: Floats, exponents: Floats) -> Floats:
    """Return Yeo and Johnson's power of each column."""
    result = np.empty_like(rows)
    for k, power in enumerate(exponents):
        x = rows[:, k]
        up, down = np.maximum(x, 0.0), np.maximum(-x, 0.0)
        high = np.log1p(up) if abs(power) < 1e-9 else (np.power(up + 1.0, power) - 1.0) / power
        rest = 2.0 - power
        low = np.log1p(down) if abs(rest) < 1e-9 else (np.power(down + 1.0, rest) - 1.0) / rest
        result[:, k] = np.where(x >= 0, high, -low)
    return result


def cluster(scaled: Floats, settings: Settings) -> Ints:
    """Return the cluster of each row, -1 for noise."""
    from sklearn.cluster import HDBSCAN

    size = max(5, round(settings.share * len(scaled)))
    if len(scaled) < 2 * size:
        return np.zeros(len(scaled), np.int64)
    model: Any = HDBSCAN(min_cluster_size=size, min_samples=5, metric=settings.metric, copy=True)
    # Requests repeat: a grain of noise keeps equal rows from standing at distance zero.
    grain = stream(0, "grain").normal(0.0, 1e-6, scaled.shape)
    return np.asarray(model.fit_predict(scaled + grain), np.int64)


def search(rows: Floats, seed: int) -> list[Trial]:
    """Return all settings tried on a sample of the rows, the best first."""
    rng = stream(seed, "search")
    sample = rows[rng.choice(len(rows), min(len(rows), SEARCH_ROWS), replace=False)]
    trials = []
    for transform in TRANSFORMS:
        scaled = Scaling.of(sample, transform).apply(sample)
        for metric in _METRICS:
            for share in _SHARES:
                trials.append(_trial(scaled, Settings(transform, metric, share), rng))
    return sorted(trials, key=lambda t: -t.score)


def _trial(scaled: Floats, settings: Settings, rng: np.random.Generator) -> Trial:
    from sklearn.metrics import adjusted_rand_score, silhouette_score

    found = cluster(scaled, settings)
    clusters = int(found.max()) + 1
    inside = found >= 0
    silhouette = stability = 0.0
    if clusters > 1 and inside.sum() > clusters:
        silhouette = float(silhouette_score(scaled[inside], found[inside], metric=settings.metric))
        kept = np.sort(rng.choice(len(scaled), int(0.8 * len(scaled)), replace=False))
        stability = float(adjusted_rand_score(found[kept], cluster(scaled[kept], settings)))
    return Trial(settings, clusters, silhouette, float(1.0 - inside.mean()), stability)


def stratified(strata: Ints, rows: int, seed: int) -> Ints:
    """Return numbers of at most `rows` rows, each stratum in proportion but with one row at least."""
    if strata.size <= rows:
        return np.arange(strata.size)
    rng = stream(seed, "strata")
    order = rng.permutation(strata.size)
    place = np.empty(strata.size)
    sizes = np.bincount(strata)
    ranked = order[np.argsort(strata[order], kind="stable")]
    first = np.cumsum(sizes) - sizes
    place[ranked] = (np.arange(strata.size) - first[strata[ranked]]) / sizes[strata[ranked]]
    return np.sort(np.argsort(place, kind="stable")[:rows])


def assign(scaled: Floats, medoids: Floats, radii: Floats) -> Ints:
    """Return the cluster of the nearest medoid, relative to the clusters' radii; noise where none reaches."""
    result = np.full(len(scaled), NOISE)
    for begin in range(0, len(scaled), 16_384):
        part = scaled[begin : begin + 16_384]
        apart = np.sqrt(((part[:, None, :] - medoids[None]) ** 2).sum(axis=2)) / radii
        near = apart.argmin(axis=1)
        result[begin : begin + 16_384] = np.where(apart[np.arange(len(part)), near] <= 1.0, near, NOISE)
    return result
