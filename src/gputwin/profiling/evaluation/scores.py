"""Scores of predictions: errors in seconds and as ratios, quantiles, and the order that shortest-job-first needs."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from gputwin.profiling.jobs import Floats

LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
"""Quantiles that are tested; the outermost are the ends of the 80 % interval."""


@dataclass(frozen=True)
class Scores:
    """How good predictions of finished jobs are; shares are of jobs, errors in s."""

    jobs: int
    mae_seconds: float
    median_error_seconds: float
    within_25_percent: float
    within_2x: float
    pinball_seconds: float
    """Mean over the quantiles 0.1, 0.2, … 0.9: about half the CRPS."""
    coverage: float
    """Share of jobs inside their 80 % interval."""
    rank_correlation: float
    """Spearman's, between predicted and actual: what decides how good shortest-job-first can be."""

    def to_json(self) -> dict[str, Any]:
        """Return the scores as plain data."""
        return asdict(self)


def score(actual: Floats, predicted: Floats, quantiles: Floats) -> Scores:
    """Return the scores of predictions and quantiles (`LEVELS`) against what happened."""
    error = np.abs(predicted - actual)
    ratio = np.maximum(predicted / actual, actual / predicted)
    slack = 1e-9 * actual
    inside = (actual >= quantiles[:, 0] - slack) & (actual <= quantiles[:, -1] + slack)
    return Scores(
        jobs=actual.size,
        mae_seconds=float(error.mean()),
        median_error_seconds=float(np.median(error)),
        within_25_percent=float((error <= 0.25 * actual).mean()),
        within_2x=float((ratio <= 2.0).mean()),
        pinball_seconds=float(np.mean([pinball(actual, quantiles[:, k], q) for k, q in enumerate(LEVELS)])),
        coverage=float(inside.mean()),
        rank_correlation=rank_correlation(predicted, actual),
    )


def pinball(actual: Floats, quantile: Floats, level: float) -> float:
    """Return the mean pinball loss of one quantile, s (Koenker and Bassett, 1978)."""
    gap = actual - quantile
    return float(np.mean(np.maximum(level * gap, (level - 1.0) * gap)))


def rank_correlation(predicted: Floats, actual: Floats) -> float:
    """Return Spearman's rank correlation; 0 where either is constant."""
    from scipy.stats import rankdata

    if predicted.size < 2 or np.ptp(predicted) == 0 or np.ptp(actual) == 0:
        return 0.0
    return float(np.corrcoef(rankdata(predicted), rankdata(actual))[0, 1])
