"""What a model is: `fit`, `update`, `forecast`, and `predict_at` for many origins at once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from gputwin.core.errors import UserError
from gputwin.core.registry import Registry
from gputwin.forecasting.frame import DEFAULT_LEVELS, Forecast, forecast_frame
from gputwin.forecasting.series import DemandSeries, Floats, Integers

CALIBRATION_SHARE = 0.25
"""Share of the history, its end, on which a copy of the model that has not seen it is measured for intervals."""
_MOST_CALIBRATION = 2000


class Model(ABC):
    """A way to forecast. The constructor only stores parameters; what is learned ends in `_`."""

    shortest = 1
    """Bins of history it needs."""

    def fit(self, series: DemandSeries, leads: Sequence[int] = (1,)) -> Self:
        """Learn from all rows of `series`; `leads` are the steps ahead that will be asked for."""
        if len(series) < self.shortest:
            raise UserError(f"a history of {len(series)} bins is too short: {self!r} needs {self.shortest}")
        if not np.isfinite(series.values).all():
            raise UserError("the series has values that are not finite; fill or drop them first")
        self.series_ = series
        self.leads_ = tuple(sorted(set(leads)))
        self._learn(series, self.leads_)
        return self

    def update(self, series: DemandSeries) -> Self:
        """Go on from a longer history with what was learned before; nothing is learned anew."""
        if len(series) < len(self.series_) or series.names != self.series_.names:
            raise UserError("an update must continue the same series")
        self.series_ = series
        return self

    def _learn(self, series: DemandSeries, leads: Sequence[int]) -> None:  # noqa: B027
        """Learn parameters; models without any have nothing to do."""

    @abstractmethod
    def predict_at(self, series: DemandSeries, origins: Integers, leads: Sequence[int]) -> Floats:
        """Return origins × leads × series: the value expected `lead` steps ahead, from rows before each origin."""

    def fresh(self) -> Self:
        """Return an unfitted copy with the same parameters."""
        return type(self)(**self.parameters())

    def parameters(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return {k: v for k, v in vars(self).items() if not k.endswith("_")}

    def state(self) -> dict[str, Any]:
        """Return what was learned as arrays, numbers and text, for saving."""
        return {k: v for k, v in vars(self).items() if k.endswith("_") and k != "series_"}

    def restore(self, state: Mapping[str, Any], series: DemandSeries) -> Self:
        """Take over a saved state and the history to go on from."""
        vars(self).update(state)
        self.series_ = series
        return self

    def forecast(self, horizon: int, levels: Sequence[float] = DEFAULT_LEVELS) -> Forecast:
        """Return the forecast of the next `horizon` bins, with conformal quantiles.

        The quantiles come from the errors of a copy fitted on the earlier part of the history (split conformal).
        """
        from gputwin.forecasting.conformal import residual_quantiles

        if horizon < 1:
            raise UserError(f"a horizon has at least one step, not {horizon}")
        series, steps = self.series_, tuple(range(1, horizon + 1))
        mean = self.predict_at(series, np.array([len(series)]), steps)[0]
        cut = max(self.shortest, int(len(series) * (1 - CALIBRATION_SHARE)), len(series) - _MOST_CALIBRATION)
        grid = lead_grid(horizon)
        errors = np.full((0, len(grid), len(series.names)), np.nan)
        if levels and cut < len(series):
            past = self.fresh().fit(series.head(cut), grid)
            origins = np.arange(cut, len(series), dtype=np.int64)
            errors = actuals_at(series, origins, grid) - past.predict_at(series, origins, grid)
        floor = floor_of(series)
        quantiles = residual_quantiles(mean, errors, grid, steps, levels, floor)
        frame = forecast_frame(series, steps, [repr(self)] * len(series.names), np.maximum(mean, floor), quantiles)
        origin = series.start_seconds + series.bin_seconds * len(series)
        return Forecast(series.target, series.bin_seconds, origin, tuple(sorted(levels)), frame, series.notes)

    def __repr__(self) -> str:
        return type(self).__name__


@dataclass(frozen=True)
class Spec:
    """A named model: how to make it, how simple it is, when it makes sense."""

    name: str
    make: Callable[..., Model]
    summary: str
    complexity: int
    """Order of simplicity: of two that do as well, the lower one is preferred."""
    extra: str | None = None
    """Extra of gputwin it needs."""
    module: str | None = None
    """Package that the extra brings."""
    costly: int = 0
    """How rarely it is refitted in backtests: 0 at every refit, 1 at a few, 2 only where past and test begin."""
    suits: Callable[[DemandSeries], bool] = field(default=lambda series: True)
    is_default: bool = True
    """Whether a backtest that names no models includes it."""


MODELS: Registry[Spec] = Registry("forecasting model", "gputwin.forecasting.models")


def floor_of(series: DemandSeries) -> Floats:
    """Return the lowest sensible value per series: zero for what was never negative."""
    return np.where(series.values.min(axis=0) >= 0, 0.0, -np.inf)


def lead_grid(horizon: int) -> tuple[int, ...]:
    """Return the steps ahead that direct models learn: all up to 4, then spaced by about 1.4, up to the horizon."""
    grid, lead = {1, horizon}, 1.0
    while lead < horizon:
        grid.add(int(lead))
        lead = max(lead + 1, lead * 1.4)
    return tuple(sorted(grid))


def interpolated(values: Floats, known: Sequence[int], wanted: Sequence[int]) -> Floats:
    """Return origins × wanted × series, between the known leads on straight lines and level beyond them."""
    if tuple(known) == tuple(wanted):
        return values
    at = np.asarray(known, dtype=np.float64)
    to = np.clip(np.asarray(wanted, dtype=np.float64), at[0], at[-1])
    above = np.clip(np.searchsorted(at, to), 1, max(len(at) - 1, 1))
    if len(at) == 1:
        return np.repeat(values, len(to), axis=1)
    share = ((to - at[above - 1]) / (at[above] - at[above - 1]))[None, :, None]
    return values[:, above - 1] * (1 - share) + values[:, above] * share


def actuals_at(series: DemandSeries, origins: Integers, leads: Sequence[int]) -> Floats:
    """Return origins × leads × series: what happened; NaN where it is missing or lies beyond the series' end."""
    at = origins[:, None] + np.asarray(leads, dtype=np.int64)[None, :] - 1
    row = np.clip(at, 0, len(series) - 1)
    known = np.broadcast_to((at < len(series))[:, :, None], (*at.shape, len(series.names)))
    if series.missing is not None:
        known = known & ~series.missing[row]
    return np.where(known, series.values[row], np.nan)
