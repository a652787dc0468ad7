"""What a tree may look at: lags, rolling statistics, the same time a day and a week before, calendar, covariates.

Row `o` of every matrix belongs to origin `o` and uses rows `0 … o-1` of the series only; `tests/forecasting` changes the
future and checks that no feature moves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gputwin.forecasting.calendar import calendar
from gputwin.forecasting.series import DemandSeries, Floats

LAGS = tuple(range(12))
WINDOWS_SECONDS = (900.0, 1800.0, 3600.0, 7200.0, 21_600.0, 43_200.0, 86_400.0, 604_800.0)
SEASONS_SECONDS = (86_400.0, 2 * 86_400.0, 604_800.0)
_OTHERS = 8
"""Series for which the others' last values are looked at too."""


class Features(NamedTuple):
    """Features of one series at every origin 0 … bins, their names, and the last value before each origin."""

    matrix: Floats
    names: tuple[str, ...]
    last: Floats


def back(values: Floats, bins: int) -> Floats:
    """Return, for every origin 0 … bins of the series, the value `bins` before the last known one; NaN before all."""
    result = np.full(len(values) + 1, np.nan)
    if bins < len(values):
        result[bins + 1 :] = values[: len(values) - bins]
    return result


def window_mean(values: Floats, window: int) -> Floats:
    """Return, for every origin, the mean of the last `window` values, or of as many as there are."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    stop = np.arange(len(sums))
    start = np.maximum(stop - window, 0)
    with np.errstate(invalid="ignore"):
        return np.where(stop > 0, (sums[stop] - sums[start]) / np.maximum(stop - start, 1), np.nan)


def window_deviation(values: Floats, window: int) -> Floats:
    """Return, for every origin, the standard deviation of the last `window` values."""
    # Squares of levels far from zero cancel badly; the deviation does not mind a shift.
    centred = values - values[0]
    variance = window_mean(centred**2, window) - window_mean(centred, window) ** 2
    return np.sqrt(np.maximum(variance, 0.0))


def windows_of(series: DemandSeries) -> tuple[int, ...]:
    """Return rolling windows in bins, from about a quarter of an hour to a week, no two alike."""
    bins = {max(2, round(w / series.bin_seconds)) for w in WINDOWS_SECONDS}
    return tuple(sorted(bins))


def seasonal(values: Floats, lead: int, season: int) -> list[Floats]:
    """Return the value one season before the target, the mean around it, and how far things moved from now to then."""
    ago = season - lead
    then = back(values, ago)
    around = np.full(len(values) + 1, np.nan)
    smooth = window_mean(values, 5)
    ahead = min(2, ago)
    # Origin o knows rows up to o-1, and the window that ends `ago - ahead` rows before that.
    late = ago - ahead
    around[late:] = smooth[: max(0, len(smooth) - late)]
    return [then, around, then - back(values, season)]


def since_change(values: Floats) -> Floats:
    """Return, for every origin, the bins since the value last changed."""
    moved = np.flatnonzero(np.diff(values, prepend=values[:1]) != 0)
    last = np.zeros(len(values) + 1, dtype=np.int64)
    last[moved + 1] = moved + 1
    return np.arange(len(values) + 1, dtype=np.float64) - np.maximum.accumulate(last)


def features(series: DemandSeries, column: int, lead: int, relative: bool) -> Features:
    """Return the features of one series for one lead; levels are differences to the last value where `relative`."""
    values = series.values[:, column]
    last = back(values, 0)
    base = last if relative else np.zeros_like(last)
    windows = windows_of(series)
    table: dict[str, Floats] = {f"lag {k + 1}": back(values, k) - base for k in LAGS if not (relative and k == 0)}
    if relative:
        table["last"] = last
    table |= {f"mean {w}": window_mean(values, w) - base for w in windows}
    table |= {f"deviation {w}": window_deviation(values, w) for w in windows[1::2]}
    table["since change"] = since_change(values)
    seasons = [round(s / series.bin_seconds) for s in SEASONS_SECONDS]
    for season in (s for s in seasons if s >= max(2, lead)):
        then, around, moved = seasonal(values, lead, season)
        table |= {f"then {season}": then - base, f"around {season}": around - base, f"moved {season}": moved}
    if (day := seasons[0]) >= 2:
        known = [back(values, d * day - lead) for d in range(1, 8) if d * day >= lead]
        if known:
            table["same time"] = _mean_of_known(np.stack(known)) - base
    table |= _covariates(series, column, windows)
    clock = calendar(series, lead - 1, len(values) + 1)
    table |= {"time of day": clock.day_share, "weekday": clock.weekday.astype(np.float64)}
    return Features(np.stack(list(table.values()), axis=1), tuple(table), last)


def _mean_of_known(stack: Floats) -> Floats:
    known = np.isfinite(stack)
    count = known.sum(axis=0)
    return np.where(count > 0, np.where(known, stack, 0.0).sum(axis=0) / np.maximum(count, 1), np.nan)


def _covariates(series: DemandSeries, column: int, windows: Sequence[int]) -> dict[str, Floats]:
    table: dict[str, Floats] = {}
    for name, covariate in series.covariates.items():
        own = covariate[:, column]
        table[f"{name} 1"] = back(own, 0)
        table |= {f"{name} {w}": window_mean(own, w) * w for w in windows[:7]}
    others = [j for j in range(len(series.names)) if j != column]
    if 0 < len(others) < _OTHERS:
        for j in others:
            other = series.values[:, j]
            if series.is_level:
                table[f"{series.names[j]} moved"] = back(other, 0) - back(other, windows[0])
            else:
                table[f"{series.names[j]} 1"] = back(other, 0)
                table[f"{series.names[j]} {windows[-3:][0]}"] = window_mean(other, windows[-3:][0])
    return table
