"""Forecasts of the request rate for a run: each uses only what had arrived when it was made.

Candidates are means over recent bins and, where the record is long enough, the day before scaled to the present level.
The one with the least pinball loss on the first part of the record is used. Spread is additive in √rate, as counts have
it; its quantiles are those of the first part's errors, per step ahead.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gputwin.autoscaling.decisions.interface import LoadForecast
from gputwin.autoscaling.serving.world import Floats
from gputwin.core.units import DAY

LEVELS = (0.2, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99)
_RECENT = (1, 3, 5, 15)
_JUDGED = 0.9
_LEVEL_BINS = 15
_LEAST_ORIGINS = 20


@dataclass(frozen=True)
class Outlook:
    """Forecasts made at the start of every bin: rates by bin × quantile × step ahead, requests per second."""

    bin_seconds: float
    model: str
    loss: float
    """Mean pinball loss at 0.9 on the first part, requests per second."""
    rates: Floats

    def at(self, time: float) -> LoadForecast:
        """Return the forecast made at the last bin's end before `time`."""
        rows = self.rates[self._origin(time)]
        quantiles = {level: tuple(row.tolist()) for level, row in zip(LEVELS, rows, strict=True)}
        return LoadForecast(self.made_at(time), self.bin_seconds, quantiles)

    def made_at(self, time: float) -> float:
        """Return when the last forecast before `time` was made, s."""
        return self._origin(time) * self.bin_seconds

    def _origin(self, time: float) -> int:
        return min(int(time / self.bin_seconds + 1e-9), len(self.rates) - 1)


def outlook(arrival: Floats, span: float, first_part: float, bin_seconds: float, horizon_seconds: float) -> Outlook:
    """Return forecasts over the whole span; model and spread are chosen on the requests before `first_part`."""
    bins = math.ceil(span / bin_seconds)
    counts = np.bincount(np.minimum((arrival / bin_seconds).astype(np.int64), bins - 1), minlength=bins)
    rate = counts[:bins] / bin_seconds
    steps = max(1, math.ceil(horizon_seconds / bin_seconds) + 1)
    known = max(int(first_part / bin_seconds), 2)
    best: Outlook | None = None
    for name, centre in _candidates(rate, steps, known, bin_seconds):
        rates, loss = _with_spread(rate, centre, known, bin_seconds)
        if best is None or loss < best.loss:
            best = Outlook(bin_seconds, name, loss, rates)
    assert best is not None
    return best


def _candidates(rate: Floats, steps: int, known: int, bin_seconds: float) -> Iterator[tuple[str, Floats]]:
    """Yield forecasts as origins × steps: entry (o, k) is for bin o + k and uses bins before o."""
    for width in _RECENT:
        if width < known:
            name = "the last bin" if width == 1 else f"the mean of the last {width} bins"
            yield name, np.repeat(_mean_before(rate, width)[:, None], steps, axis=1)
    day = round(DAY / bin_seconds)
    if 2 * day <= known and abs(day * bin_seconds - DAY) < 1e-6:
        recent = _mean_before(rate, _LEVEL_BINS)
        at = np.arange(len(rate))[:, None] + np.arange(steps)[None, :] - day
        before = np.where(at >= 0, _smooth(rate)[np.clip(at, 0, None)], np.nan)
        level = np.concatenate([np.full(day, np.nan), recent[:-day]])
        ratio = np.clip((recent + 1 / DAY) / (level + 1 / DAY), 0.2, 5.0)
        for weight in (1.0, 0.5):
            yesterday = before * ratio[:, None] ** weight
            yield (
                f"the day before, at the present level (power {weight:g})",
                np.where(np.isnan(yesterday), recent[:, None], yesterday),
            )


def _mean_before(rate: Floats, width: int) -> Floats:
    """Return at each bin the mean of the `width` bins before it; 0 at the first."""
    total = np.concatenate([[0.0], np.cumsum(rate)])
    at = np.arange(len(rate))
    low = np.maximum(at - width, 0)
    return np.asarray((total[at] - total[low]) / np.maximum(at - low, 1))


def _smooth(rate: Floats) -> Floats:
    return np.convolve(rate, np.full(5, 0.2), mode="same")


def _with_spread(rate: Floats, centre: Floats, known: int, bin_seconds: float) -> tuple[Floats, float]:
    """Return the forecast's quantiles (origins × levels × steps) and their loss on the first part."""
    bins, steps = centre.shape
    scale = np.sqrt(centre + 1 / bin_seconds)
    rates = np.empty((bins, len(LEVELS), steps))
    losses = []
    for k in range(steps):
        origins = np.arange(1, max(known - k, 2))
        error = (rate[origins + k] - centre[origins, k]) / scale[origins, k]
        if len(origins) < _LEAST_ORIGINS:
            error = np.append(error, [-1.0, 0.0, 1.0])
        offsets = np.quantile(error, LEVELS)
        rates[:, :, k] = np.maximum(centre[:, k, None] + offsets[None, :] * scale[:, k, None], 0.0)
        miss = rate[origins + k] - rates[origins, LEVELS.index(_JUDGED), k]
        losses.append(float(np.mean(np.maximum(_JUDGED * miss, (_JUDGED - 1) * miss))))
    # Three digits: more would only defeat the memory of the queueing model.
    digits = 10.0 ** (2 - np.floor(np.log10(np.maximum(rates, 1e-9))))
    return np.round(rates * digits) / digits, float(np.mean(losses))
