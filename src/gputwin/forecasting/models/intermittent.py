"""Intermittent demand: sizes and gaps smoothed apart.

Croston, "Forecasting and stock control for intermittent demands", 1972; Syntetos and Boylan, "The accuracy of
intermittent demand estimates", 2005 (SBA); Teunter, Syntetos and Babai, "Intermittent demand: linking forecasting to
inventory obsolescence", 2011 (TSB).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gputwin.forecasting.models._model import MODELS, Model, Spec
from gputwin.forecasting.models.baselines import level_forecast, smoothed
from gputwin.forecasting.series import DemandSeries, Floats, Integers

_RATES = (0.02, 0.05, 0.1, 0.2, 0.3)


def _held(at: Integers, values: Floats, length: int, first: float) -> Floats:
    """Return length+1 values: before each bin the latest of `values`, which become known after bins `at`."""
    latest = np.zeros(length + 1, dtype=np.int64)
    latest[at + 1] = 1
    return np.concatenate([[first], values])[np.cumsum(latest)]


def croston(values: Floats, alpha: float) -> Floats:
    """Return (bins+1) × series: smoothed size over smoothed gap before each bin; zero until demand was seen."""
    result = np.zeros((len(values) + 1, values.shape[1]))
    for j in range(values.shape[1]):
        at = np.flatnonzero(values[:, j])
        if len(at) == 0:
            continue
        sizes = values[at, j : j + 1]
        gaps = np.diff(at, prepend=-1).astype(np.float64)[:, None]
        rate = np.array([alpha])
        size = smoothed(sizes, rate, sizes[0])[1:, 0]
        gap = smoothed(gaps, rate, gaps[0])[1:, 0]
        result[:, j] = _held(at, size / gap, len(values), 0.0)
    return result


def tsb(values: Floats, alpha: float, beta: float) -> Floats:
    """Return (bins+1) × series: smoothed size times smoothed probability of any demand, before each bin."""
    result = np.zeros((len(values) + 1, values.shape[1]))
    busy = (values != 0).astype(np.float64)
    for j in range(values.shape[1]):
        at = np.flatnonzero(values[:, j])
        if len(at) == 0:
            continue
        sizes = values[at, j : j + 1]
        size = _held(at, smoothed(sizes, np.array([alpha]), sizes[0])[1:, 0], len(values), float(sizes[0, 0]))
        chance = smoothed(busy[:, j : j + 1], np.array([beta]), busy[: at[0] + 1, j : j + 1].mean(axis=0))[:, 0]
        result[:, j] = size * chance
        # Size is known only once demand was seen.
        result[: at[0] + 1, j] = 0.0
    return result


class Croston(Model):
    """Croston's method; `factor` 1 − α/2 with `unbiased` (SBA). α has the least one-step error so far."""

    def __init__(self, unbiased: bool = False) -> None:
        self.unbiased = unbiased

    def _levels(self, values: Floats, alpha: float) -> Floats:
        return croston(values, alpha) * (1 - alpha / 2 if self.unbiased else 1)

    def _learn(self, series: DemandSeries, leads: Sequence[int]) -> None:
        errors = [((series.values - self._levels(series.values, a)[:-1]) ** 2).mean(axis=0) for a in _RATES]
        self.alpha_ = np.array(_RATES)[np.argmin(errors, axis=0)]

    def predict_at(self, series: DemandSeries, origins: Integers, leads: Sequence[int]) -> Floats:
        """Return the demand per bin expected at each origin."""
        columns = [self._levels(series.values[:, j : j + 1], a)[origins, 0] for j, a in enumerate(self.alpha_)]
        return level_forecast(np.stack(columns, axis=1), leads)


class Tsb(Model):
    """TSB: the chance of demand is updated in every bin, so that obsolete demand fades."""

    def _learn(self, series: DemandSeries, leads: Sequence[int]) -> None:
        rates = [(a, b) for a in (0.02, 0.1, 0.3) for b in (0.01, 0.02, 0.05, 0.1, 0.2)]
        errors = [((series.values - tsb(series.values, a, b)[:-1]) ** 2).mean(axis=0) for a, b in rates]
        self.rates_ = np.array(rates)[np.argmin(errors, axis=0)]

    def predict_at(self, series: DemandSeries, origins: Integers, leads: Sequence[int]) -> Floats:
        """Return the demand per bin expected at each origin."""
        columns = [tsb(series.values[:, j : j + 1], a, b)[origins, 0] for j, (a, b) in enumerate(self.rates_)]
        return level_forecast(np.stack(columns, axis=1), leads)


def _intermittent(series: DemandSeries) -> bool:
    return not series.is_level and bool((series.values == 0).mean() > 0.1)


MODELS.add(Spec("croston", Croston, "Croston 1972: size and gap smoothed apart", 3, suits=_intermittent))
MODELS.add(
    Spec(
        "sba", lambda: Croston(unbiased=True), "Syntetos and Boylan 2005: Croston without bias", 3, suits=_intermittent
    )
)
MODELS.add(Spec("tsb", Tsb, "Teunter, Syntetos and Babai 2011: size and probability", 3, suits=_intermittent))
