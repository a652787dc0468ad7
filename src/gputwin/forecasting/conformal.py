"""Intervals and quantiles that hold what they promise, for any model, from its own past errors.

Split conformal prediction (Vovk et al. 2005; Lei et al., "Distribution-free predictive inference for regression", 2018)
on a moving window of past errors, with the level steered by what was covered lately (Gibbs and Candès, "Adaptive
conformal inference under distribution shift", NeurIPS 2021). An error counts only once its target is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gputwin.forecasting.models._model import interpolated
from gputwin.forecasting.series import Floats

WINDOW = 1000
_STEP = 0.01
_REFRESH = 20
"""Rows after which the window of past errors is sorted anew."""
_TAILS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Shares of the miss that may go to the lower side; the one with the shortest intervals is taken."""


class Band(NamedTuple):
    """Lower and upper end per row, and whether the actual value lay between."""

    low: Floats
    high: Floats
    inside: np.ndarray

    @property
    def coverage(self) -> float:
        """Return the share of rows covered."""
        return float(self.inside.mean()) if len(self.inside) else float("nan")


def band(point: Floats, actual: Floats, lead: int, start: int, coverage: float, floor: float = -np.inf) -> Band:
    """Return the intervals of rows `start …` that are to cover a share `coverage` of one series' actual values.

    Rows are consecutive origins. The interval of row i stands on errors of rows up to i − lead, all known by then.
    """
    errors = actual - point
    miss = 1 - coverage
    tail = _shortest_tail(point, errors, start - lead + 1, miss, floor)
    low, high = np.full(len(point), np.nan), np.full(len(point), np.nan)
    inside = np.zeros(len(point), dtype=bool)
    level = miss
    ordered = np.zeros(1)
    warm = max(0, start - WINDOW)
    for i in range(warm, len(point)):
        known = i - lead + 1
        if i == warm or (i - warm) % _REFRESH == 0:
            recent = errors[max(0, known - WINDOW) : max(known, 0)]
            recent = recent[np.isfinite(recent)]
            ordered = np.sort(recent) if len(recent) else np.zeros(1)
        used = min(max(level, 0.0), 1.0)
        low[i] = max(point[i] + _ranked(ordered, used * tail, upper=False), floor)
        high[i] = max(point[i] + _ranked(ordered, 1 - used * (1 - tail), upper=True), floor)
        inside[i] = low[i] <= actual[i] <= high[i]
        if known - 1 >= warm and np.isfinite(errors[known - 1]):
            level += _STEP * (miss - (not inside[known - 1]))
    return Band(low[start:], high[start:], inside[start:])


def _ranked(ordered: Floats, level: float, upper: bool) -> float:
    """Return the conformal quantile of sorted errors: the (n+1)-th part is beyond all that was seen."""
    count = len(ordered)
    rank = int(np.ceil(level * (count + 1))) - 1 if upper else int(np.floor(level * (count + 1))) - 1
    return float(ordered[min(max(rank, 0), count - 1)])


def _shortest_tail(point: Floats, errors: Floats, known: int, miss: float, floor: float) -> float:
    """Return the share of the miss given to the lower side that made past intervals shortest.

    Where half of the values are zero, nothing lies below, and the whole miss belongs to the upper side.
    """
    rows = slice(max(0, known - WINDOW), max(known, 0))
    at, past = point[rows], errors[rows]
    past = past[np.isfinite(past)]
    if len(past) < 2:
        return 0.5
    widths = []
    for tail in _TAILS:
        low, high = np.quantile(past, [miss * tail, 1 - miss * (1 - tail)])
        widths.append(float(np.mean(np.maximum(at + high, floor) - np.maximum(at + low, floor))))
    # The middle one, unless another is clearly shorter: estimates of extremes are rough.
    best = int(np.argmin(widths))
    return _TAILS[best] if widths[best] < 0.95 * widths[2] else 0.5


def residual_quantiles(
    mean: Floats, errors: Floats, known: Sequence[int], steps: Sequence[int], levels: Sequence[float], floor: Floats
) -> dict[float, Floats]:
    """Return level → steps × series: the forecast plus that quantile of past errors at the same lead.

    `errors` are rows × known leads × series, NaN where the target is not known yet; between leads on straight lines.
    """
    result: dict[float, Floats] = {}
    past = errors[-2 * WINDOW :]
    for level in sorted(levels):
        if not 0 < level < 1:
            raise ValueError(f"quantile levels lie between 0 and 1, not {level}")
        _, leads, wide_count = errors.shape
        offset = np.full((leads, wide_count), np.nan)
        for i in range(leads):
            for j in range(wide_count):
                ordered = np.sort(past[np.isfinite(past[:, i, j]), i, j][-WINDOW:])
                if len(ordered):
                    offset[i, j] = _ranked(ordered, level, upper=level >= 0.5)
        wide = interpolated(offset[None], known, steps)[0]
        result[level] = np.maximum(mean + wide, floor)
    return result
