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
INDEPENDENT = 30
_STEP = 0.03
"""How fast the level is steered; Gibbs and Candès, section 4, use 0.005 to 0.05."""
_REFRESH = 20
"""Rows after which the window of past errors is sorted anew."""
_TAILS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Shares of the miss that may go to the lower side; the one with the shortest intervals is taken."""


class Band(NamedTuple):
    """Lower and upper end per row, whether the actual value lay between, and whether it is known."""

    low: Floats
    high: Floats
    inside: np.ndarray
    known: np.ndarray

    @property
    def coverage(self) -> float:
        """Return the share of rows covered, of those whose actual value is known."""
        return float(self.inside[self.known].mean()) if self.known.any() else float("nan")


def band(point: Floats, actual: Floats, lead: int, start: int, coverage: float, floor: float = -np.inf) -> Band:
    """Return the intervals of rows `start …` that are to cover a share `coverage` of one series' actual values.

    Rows are consecutive origins. The interval of row i stands on errors of rows up to i − lead, all known by then.
    """
    errors = actual - point
    miss = 1 - coverage
    tail = _shortest_tail(point, errors, start - lead + 1, window_of(lead), miss, floor)
    low, high = np.full(len(point), np.nan), np.full(len(point), np.nan)
    inside = np.zeros(len(point), dtype=bool)
    level = miss
    ordered = np.zeros(1)
    window = window_of(lead)
    warm = max(0, start - WINDOW)
    for i in range(warm, len(point)):
        known = i - lead + 1
        if i == warm or (i - warm) % _REFRESH == 0:
            recent = errors[max(0, known - window) : max(known, 0)]
            recent = recent[np.isfinite(recent)]
            ordered = np.sort(recent) if len(recent) else np.zeros(1)
        used = min(max(level, 0.0), 1.0)
        low[i] = max(point[i] + _ranked(ordered, used * tail, lead, upper=False), floor)
        high[i] = max(point[i] + _ranked(ordered, 1 - used * (1 - tail), lead, upper=True), floor)
        inside[i] = low[i] <= actual[i] <= high[i]
        if known - 1 >= warm and np.isfinite(errors[known - 1]):
            level += _STEP * (miss - (not inside[known - 1]))
    return Band(low[start:], high[start:], inside[start:], np.isfinite(actual[start:]))


def window_of(lead: int) -> int:
    """Return how many past errors to stand on: more for long leads, whose errors overlap and say less each."""
    return max(WINDOW, INDEPENDENT * lead)


def _ranked(ordered: Floats, level: float, lead: int, upper: bool) -> float:
    """Return the conformal quantile of sorted errors: of n independent ones, the (n+1)-th part lies beyond all seen.

    Errors of a lead of h steps overlap; n of them count as n / h independent ones.
    """
    count = len(ordered)
    independent = max(count / lead, 1.0)
    tail = (1 - level if upper else level) * (independent + 1) / independent - 1 / independent
    rank = int(np.floor(max(tail, 0.0) * count))
    return float(ordered[max(count - 1 - rank, 0)] if upper else ordered[min(rank, count - 1)])


def _shortest_tail(point: Floats, errors: Floats, known: int, window: int, miss: float, floor: float) -> float:
    """Return the share of the miss given to the lower side that made past intervals shortest.

    Where half of the values are zero, nothing lies below, and the whole miss belongs to the upper side.
    """
    rows = slice(max(0, known - window), max(known, 0))
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
    for level in sorted(levels):
        if not 0 < level < 1:
            raise ValueError(f"quantile levels lie between 0 and 1, not {level}")
        _, leads, wide_count = errors.shape
        offset = np.full((leads, wide_count), np.nan)
        for i in range(leads):
            for j in range(wide_count):
                ordered = np.sort(errors[np.isfinite(errors[:, i, j]), i, j][-window_of(known[i]) :])
                if len(ordered):
                    offset[i, j] = _ranked(ordered, level, known[i], upper=level >= 0.5)
        wide = interpolated(offset[None], known, steps)[0]
        result[level] = np.maximum(mean + wide, floor)
    return result


def rolling_quantiles(
    point: Floats, actual: Floats, lead: int, start: int, levels: Sequence[float], floor: float = -np.inf
) -> Floats:
    """Return rows × levels: quantiles of one series for rows `start …`, each from errors known by then."""
    errors = actual - point
    result = np.empty((len(point) - start, len(levels)))
    window = window_of(lead)
    for low in range(start, len(point), _REFRESH):
        known = max(low - lead + 1, 0)
        recent = errors[max(0, known - window) : known]
        ordered = np.sort(recent[np.isfinite(recent)])
        if len(ordered) == 0:
            ordered = np.zeros(1)
        for k, level in enumerate(levels):
            offset = _ranked(ordered, level, lead, upper=level >= 0.5)
            rows = slice(low - start, min(low + _REFRESH, len(point)) - start)
            result[rows, k] = np.maximum(point[low : low + _REFRESH] + offset, floor)
    return result
