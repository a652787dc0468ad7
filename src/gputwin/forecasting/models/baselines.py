"""The obvious forecasts: zero, mean, last value, last season, drift, window mean, exponential smoothing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gputwin.forecasting.models._model import MODELS, Model, Spec
from gputwin.forecasting.series import DemandSeries, Floats, Integers


def level_forecast(level: Floats, leads: Sequence[int]) -> Floats:
    """Return the same level (origins × series) for every lead."""
    return np.repeat(level[:, None, :], len(leads), axis=1)


def before(series: DemandSeries, origins: Integers, back: int = 1) -> Floats:
    """Return the row `back` bins before each origin; the first row where there is none so old."""
    return series.values[np.clip(origins - back, 0, len(series) - 1)]


def smoothed(values: Floats, alpha: Floats, first: Floats) -> Floats:
    """Return (bins+1) × series: the exponentially smoothed level before each bin, from `first` on."""
    from scipy.signal import lfilter

    levels = np.empty((len(values) + 1, values.shape[1]))
    levels[0] = first
    for j, a in enumerate(alpha):
        levels[1:, j] = lfilter([a], [1, a - 1], values[:, j], zi=np.array([(1 - a) * first[j]]))[0]
    return levels


class Zero(Model):
    """Nothing will come."""

    def predict_at(self, series: DemandSeries, origins: Integers, leads: Sequence[int]) -> Floats:
        """Return zeros."""
        return np.zeros((len(origins), len(leads), len(series.names)))


class Mean(Model):
    """The mean of the history it was fitted on."""

    def _learn(self, series: DemandSeries, leads: Sequence[int]) -> None:
        self.mean_ = series.values.mean(axis=0)

    def predict_at(self, series: DemandSeries, origins: Integers, leads: Sequence[int]) -> Floats:
        """Return the mean everywhere."""
        return np.broadcast_to(self.mean_, (len(origins), len(leads), len(self.mean_))).copy()


class Naive(Model):
    """The last value."""

    def predict_at(self, series: DemandSeries, origins: Integers, leads: Sequence[int]) -> Floats:
        """Return the value before each origin."""
        return level_forecast(before(series, origins), leads)


class SeasonalNaive(Model):
    """The value one season earlier (a day, unless another `season` in seconds is given)."""

    def __init__(self, season_seconds: float = 86_400.0) -> None:
        self.season_seconds = season_seconds

    def predict_at(self, series: DemandSeries, origins: Integers, leads: Sequence[int]) -> Floats:
        """Return the latest known value that lies whole seasons before the target."""
        season = max(1, round(self.season_seconds / series.bin_seconds))
        ahead = np.asarray(leads, dtype=np.int64)
        at = origins[:, None] - 1 + ahead[None, :] - season * (-(-ahead // season))[None, :]
        # Where the history is shorter than a season, the last value is all there is.
        at = np.where(at < 0, origins[:, None] - 1, at)
        return np.asarray(series.values[np.clip(at, 0, len(series) - 1)])


class Drift(Model):
    """The last value, going on along the line from the first to the last."""

    def predict_at(self, series: DemandSeries, origins: Integers, leads: Sequence[int]) -> Floats:
        """Return the line's continuation."""
        last = before(series, origins)
        slope = (last - series.values[0]) / np.maximum(origins - 1, 1)[:, None]
        return np.asarray(last[:, None, :] + slope[:, None, :] * np.asarray(leads, dtype=np.float64)[None, :, None])


class WindowMean(Model):
    """The mean of the last bins; their number is the one that did best in the history, per series and lead."""

    windows = (3, 6, 12, 24, 48, 96, 288, 1008)

    def _learn(self, series: DemandSeries, leads: Sequence[int]) -> None:
        sums = np.concatenate([np.zeros((1, len(series.names))), np.cumsum(series.values, axis=0)])
        windows = [w for w in self.windows if 2 * w <= len(series)] or [1]
        best = np.full((len(leads), len(series.names)), np.inf)
        self.window_ = np.ones(best.shape, dtype=np.int64)
        for i, lead in enumerate(leads):
            origins = np.arange(max(windows), len(series) - lead + 1, dtype=np.int64)
            if len(origins) == 0:
                continue
            actual = series.values[origins + lead - 1]
            for window in windows:
                error = ((actual - (sums[origins] - sums[origins - window]) / window) ** 2).mean(axis=0)
                better = error < best[i]
                best[i, better], self.window_[i, better] = error[better], window

    def predict_at(self, series: DemandSeries, origins: Integers, leads: Sequence[int]) -> Floats:
        """Return the window's mean before each origin."""
        sums = np.concatenate([np.zeros((1, len(series.names))), np.cumsum(series.values, axis=0)])
        result = np.empty((len(origins), len(leads), len(series.names)))
        for i, lead in enumerate(leads):
            row = min(int(np.searchsorted(self.leads_, lead)), len(self.leads_) - 1)
            for j, window in enumerate(self.window_[row]):
                low = np.maximum(origins - window, 0)
                result[:, i, j] = (sums[origins, j] - sums[low, j]) / np.maximum(origins - low, 1)
        return result


class ExponentialSmoothing(Model):
    """Simple exponential smoothing (Brown 1959); the rate is the one with the least one-step error so far."""

    rates = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9)

    def _learn(self, series: DemandSeries, leads: Sequence[int]) -> None:
        values = series.values
        wide = values.shape[1]
        self.first_ = values[: min(len(values), 10)].mean(axis=0)
        errors = [
            ((values - smoothed(values, np.full(wide, a), self.first_)[:-1]) ** 2).mean(axis=0) for a in self.rates
        ]
        self.alpha_ = np.array(self.rates)[np.argmin(errors, axis=0)]

    def predict_at(self, series: DemandSeries, origins: Integers, leads: Sequence[int]) -> Floats:
        """Return the smoothed level before each origin."""
        return level_forecast(smoothed(series.values, self.alpha_, self.first_)[origins], leads)


def _has_day(series: DemandSeries) -> bool:
    return len(series.seasons()) > 0


def _has_week(series: DemandSeries) -> bool:
    return len(series.seasons()) > 1


MODELS.add(Spec("zero", Zero, "nothing will come", 0, suits=lambda s: not s.is_level))
MODELS.add(Spec("mean", Mean, "mean of the history", 1))
MODELS.add(Spec("naive", Naive, "the last value", 1))
MODELS.add(Spec("seasonal-naive", SeasonalNaive, "the value a day before", 2, suits=_has_day))
MODELS.add(Spec("weekly-naive", lambda: SeasonalNaive(604_800.0), "the value a week before", 2, suits=_has_week))
MODELS.add(Spec("drift", Drift, "the line through the first and last value", 2))
MODELS.add(Spec("window-mean", WindowMean, "mean of the last bins, as many as did best", 3))
MODELS.add(Spec("ses", ExponentialSmoothing, "simple exponential smoothing (Brown 1959)", 3))
