"""Classical models, fitted by statsforecast and rolled forward over any number of origins by our own recursions.

AutoETS (Hyndman et al. 2002), AutoARIMA (Hyndman and Khandakar 2008), Theta (Assimakopoulos and Nikolopoulos 2000),
MSTL (Bandara, Hyndman and Bergmeir 2021). The library chooses form and parameters on the latest bins of the history; a
state then follows the series with those parameters, so that thousands of origins cost one pass. The tests hold
our recursions against the library's own forecasts.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from gputwin.core.extras import require
from gputwin.forecasting.models._model import MODELS, Model, Spec
from gputwin.forecasting.models.baselines import smoothed
from gputwin.forecasting.series import DemandSeries, Floats, Integers

LATEST = 2000
"""Bins that form and parameters are chosen on."""
_LATEST_THETA = 500


class _Statistical(Model):
    """A model per series, fitted by the library on the latest bins."""

    shortest = 12
    latest = LATEST

    def _learn(self, series: DemandSeries, leads: Sequence[int]) -> None:
        library = require("statsforecast.models", extra="stats")
        self.origin_ = max(0, len(series) - self.latest)
        self.fitted_ = []
        for j in range(len(series.names)):
            values = np.ascontiguousarray(series.values[self.origin_ :, j])
            with warnings.catch_warnings():
                # Convergence warnings of single candidates; the best of them is taken.
                warnings.simplefilter("ignore")
                self.fitted_.append(self._fit_one(library, values, series))

    @abstractmethod
    def _fit_one(self, library: Any, values: Floats, series: DemandSeries) -> dict[str, Any]:
        """Return what the library learned of one series."""

    @abstractmethod
    def _predict_one(self, fitted: dict[str, Any], values: Floats, at: Integers, leads: Sequence[int]) -> Floats:
        """Return the forecast of one series at each position and lead."""

    def predict_at(self, series: DemandSeries, origins: Integers, leads: Sequence[int]) -> Floats:
        """Return the state's forecast at each origin."""
        columns = []
        for j, fitted in enumerate(self.fitted_):
            values = series.values[self.origin_ :, j]
            # Before the bins it was fitted on there is no state.
            at = np.maximum(origins - self.origin_, 0)
            columns.append(self._predict_one(fitted, values, at, leads))
        return np.stack(columns, axis=2)


def ets_states(values: Floats, alpha: float, beta: float, phi: float, level: float, trend: float) -> Floats:
    """Return (bins+1) × 2: level and trend before each bin (Hyndman et al. 2008, table 2.2, error correction form).

    Multiplicative errors lead to the same point forecasts for no, additive and damped trends.
    """
    if beta == 0.0:
        levels = smoothed(values[:, None], np.array([alpha]), np.array([level]))
        return np.concatenate([levels, np.zeros_like(levels)], axis=1)
    states = np.empty((len(values) + 1, 2))
    states[0] = level, trend
    for i, value in enumerate(values):
        expected = level + phi * trend
        error = value - expected
        level, trend = expected + alpha * error, phi * trend + beta * error
        states[i + 1] = level, trend
    return states


def _damped(phi: float, leads: Sequence[int]) -> Floats:
    """Return φ + φ² + … + φ^lead for each lead."""
    ahead = np.asarray(leads, dtype=np.float64)
    return ahead if phi == 1.0 else phi * (1 - phi**ahead) / (1 - phi)


def _ets_parameters(model: dict[str, Any]) -> dict[str, Any]:
    alpha, beta, _, phi = (float(x) for x in model["par"][:4])
    kind = model["components"]
    has_trend = kind[1] != "N"
    first = model["states"][0]
    return {
        "alpha": alpha,
        "beta": beta if has_trend else 0.0,
        "phi": phi if has_trend and kind[3] == "D" and np.isfinite(phi) else 1.0,
        "level": float(first[0]),
        "trend": float(first[1]) if has_trend else 0.0,
    }


class Ets(_Statistical):
    """AutoETS without season; seasons of a day have too many bins for its states."""

    def _fit_one(self, library: Any, values: Floats, series: DemandSeries) -> dict[str, Any]:
        return _ets_parameters(library.AutoETS(season_length=1, model="ZZN").fit(values).model_)

    def _predict_one(self, fitted: dict[str, Any], values: Floats, at: Integers, leads: Sequence[int]) -> Floats:
        states = ets_states(values, **fitted)[at]
        return states[:, :1] + states[:, 1:] * _damped(fitted["phi"], leads)[None, :]


class Arima(_Statistical):
    """AutoARIMA without season."""

    def _fit_one(self, library: Any, values: Floats, series: DemandSeries) -> dict[str, Any]:
        model = library.AutoARIMA(season_length=1, approximation=True).fit(values).model_
        p, q, _, _, _, d, _ = model["arma"]
        known = {k: float(v) for k, v in model["coef"].items()}
        differencing = np.array([1.0])
        for _ in range(d):
            differencing = np.convolve(differencing, [1.0, -1.0])
        return {
            "ar": np.array([known[f"ar{i + 1}"] for i in range(p)]),
            "ma": invertible(np.array([known[f"ma{i + 1}"] for i in range(q)])),
            "differencing": differencing,
            "mean": known.get("intercept", known.get("mean", 0.0)),
            "drift": known.get("drift", 0.0),
        }

    def _predict_one(self, fitted: dict[str, Any], values: Floats, at: Integers, leads: Sequence[int]) -> Floats:
        trend = fitted["mean"] + fitted["drift"] * np.arange(1, len(values) + max(leads) + 1)
        forecasts = arma_forecasts(
            values - trend[: len(values)], fitted["ar"], fitted["ma"], fitted["differencing"], at, leads
        )
        ahead = at[:, None] + np.asarray(leads, dtype=np.int64)[None, :] - 1
        return np.asarray(forecasts + trend[ahead])


def invertible(ma: Floats) -> Floats:
    """Return the moving-average coefficients of the same process whose innovations can be told from the past.

    Roots inside the unit circle are reflected to outside; autocorrelations stay (Brockwell and Davis 1991, section 4.4).
    """
    if len(ma) == 0:
        return ma
    roots = np.roots(np.concatenate([[1.0], ma])).astype(np.complex128)
    # Roots of the polynomial written from its highest power are the inverses of those of 1 + θ₁B + …
    size = np.abs(roots)
    roots = np.where(size > 1, 1 / np.conj(np.where(size > 0, roots, 1)), roots)
    # On the circle itself a shock would never fade from the filter.
    roots = np.where(np.abs(roots) > 0.999, roots * 0.999 / np.maximum(np.abs(roots), 1e-12), roots)
    return np.real(np.poly(roots))[1:]


def arma_forecasts(
    values: Floats, ar: Floats, ma: Floats, differencing: Floats, at: Integers, leads: Sequence[int]
) -> Floats:
    """Return origins × leads: forecasts of an ARIMA process about zero (Box and Jenkins, chapter 5).

    Innovations before the first bin count as zero; what that makes wrong fades within a few bins.
    """
    from scipy.signal import lfilter

    poly = np.convolve(np.concatenate([[1.0], -ar]), differencing)
    moving = np.concatenate([[1.0], ma])
    shocks = np.asarray(lfilter(poly, moving, values - values[0] * (len(differencing) > 1)))
    shocks[: len(poly) - 1] = 0.0
    order = len(poly) - 1
    past = np.concatenate([np.full(order + 1, values[0]), values])
    blank = np.concatenate([np.zeros(len(moving)), shocks])
    known = [past[at + order + 1 - k] for k in range(1, order + 1)]
    noise = [blank[at + len(moving) - k] for k in range(1, len(moving))]
    wanted = {lead: i for i, lead in enumerate(leads)}
    result = np.empty((len(at), len(leads)))
    for step in range(1, max(leads) + 1):
        value = np.zeros(len(at))
        for k in range(order):
            value = value - poly[k + 1] * known[k]
        for k in range(len(noise)):
            value = value + moving[k + 1] * noise[k]
        known = [value, *known[:-1]] if known else known
        noise = [np.zeros(len(at)), *noise[:-1]] if noise else noise
        if step in wanted:
            result[:, wanted[step]] = value
    return result


class Theta(_Statistical):
    """The standard Theta model, which is exponential smoothing with half the trend as drift (Hyndman and Billah 2003)."""

    latest = _LATEST_THETA

    def _fit_one(self, library: Any, values: Floats, series: DemandSeries) -> dict[str, Any]:
        model = library.Theta(season_length=1).fit(values).model_
        time = np.arange(len(values), dtype=np.float64)
        slope = float(np.polyfit(time, values, 1)[0]) if len(values) > 1 else 0.0
        return {"alpha": float(model["par"]["alpha"]), "level": float(values[0]), "drift": slope / 2}

    def _predict_one(self, fitted: dict[str, Any], values: Floats, at: Integers, leads: Sequence[int]) -> Floats:
        alpha = fitted["alpha"]
        levels = smoothed(values[:, None], np.array([alpha]), np.array([fitted["level"]]))[at]
        ahead = np.asarray(leads, dtype=np.float64)[None, :] - 1
        return np.asarray(levels + fitted["drift"] * (ahead + (1 - (1 - alpha) ** at[:, None]) / alpha))


class Mstl(_Statistical):
    """MSTL: the day (and the week, where bins are few) taken out by Loess, AutoETS on the rest."""

    shortest = 24
    latest = 4 * LATEST

    def __init__(self, most_season: int = 300) -> None:
        self.most_season = most_season

    def _fit_one(self, library: Any, values: Floats, series: DemandSeries) -> dict[str, Any]:
        seasons = [s for s in series.seasons() if s <= self.most_season and 2 * s <= len(values)]
        if not seasons:
            return {
                **_ets_parameters(library.AutoETS(season_length=1, model="ZZN").fit(values).model_),
                "cycle": np.zeros(1),
            }
        latest = values[-max(8 * seasons[0], 3 * seasons[-1]) :]
        parts = library.MSTL(season_length=seasons).fit(latest).model_
        cycle = np.zeros(1)
        for season in seasons:
            last = parts[f"seasonal{season}" if len(seasons) > 1 else "seasonal"].to_numpy()[-season:]
            # Turned so that position 0 belongs to the first bin after the origin.
            turned = np.roll(last, -((season - len(values) % season) % season))
            cycle = _added(cycle, turned)
        rest = values - np.resize(cycle, len(values))
        model = library.AutoETS(season_length=1, model="ZZN").fit(np.ascontiguousarray(rest[-LATEST:])).model_
        fitted = _ets_parameters(model)
        if len(rest) > LATEST:
            fitted |= {"level": float(rest[0]), "trend": 0.0}
        return {**fitted, "cycle": cycle}

    def _predict_one(self, fitted: dict[str, Any], values: Floats, at: Integers, leads: Sequence[int]) -> Floats:
        rules = {k: v for k, v in fitted.items() if k != "cycle"}
        cycle = fitted["cycle"]
        states = ets_states(values - np.resize(cycle, len(values)), **rules)[at]
        ahead = at[:, None] + np.asarray(leads, dtype=np.int64)[None, :] - 1
        rest = states[:, :1] + states[:, 1:] * _damped(rules["phi"], leads)[None, :]
        return np.asarray(rest + cycle[ahead % len(cycle)])


def _added(first: Floats, second: Floats) -> Floats:
    """Return the sum of two cycles, as long as their common multiple."""
    length = int(np.lcm(len(first), len(second)))
    return np.resize(first, length) + np.resize(second, length)


def _spec(name: str, make: type[Model], summary: str, complexity: int) -> Spec:
    return Spec(name, make, summary, complexity, extra="stats", module="statsforecast", costly=1)


MODELS.add(_spec("auto-ets", Ets, "AutoETS without season (Hyndman et al. 2002)", 6))
MODELS.add(_spec("auto-arima", Arima, "AutoARIMA without season (Hyndman and Khandakar 2008)", 7))
MODELS.add(_spec("theta", Theta, "Theta (Assimakopoulos and Nikolopoulos 2000)", 5))
MODELS.add(_spec("mstl", Mstl, "MSTL: seasons by Loess, AutoETS on the rest (Bandara et al. 2021)", 8))
