"""Where a bin lies in the day and the week, on the clock of the trace's own zone."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl

from gputwin.core.units import DAY, WEEK
from gputwin.forecasting.series import DemandSeries, Floats, Integers


class Calendar(NamedTuple):
    """Per bin: time of day in [0, 1), day of the week 0–6 (Monday 0 where dates are true), both on the local clock."""

    day_share: Floats
    weekday: Integers

    def features(self) -> Floats:
        """Return bins × 6: sine and cosine of the day, twice a day and of the week."""
        week = (self.weekday + self.day_share) / 7
        angles = 2 * np.pi * np.stack([self.day_share, 2 * self.day_share, week], axis=1)
        return np.concatenate([np.sin(angles), np.cos(angles)], axis=1)


def calendar(series: DemandSeries, first: int, count: int) -> Calendar:
    """Return the calendar of bins `first … first+count-1`, which may lie beyond the series' end.

    A trace without dates has a day that starts at its origin: lengths of day and week are true, their phase is not
    known and not needed. With dates, the zone's summer time is followed: 09:00 stays 09:00.
    """
    seconds = series.start_seconds + series.bin_seconds * np.arange(first, first + count, dtype=np.float64)
    if series.origin_unix_seconds is None:
        weekday = np.floor(np.mod(seconds, WEEK) / DAY).astype(np.int64)
        return Calendar(np.mod(seconds, DAY) / DAY, weekday)
    unix = pl.Series(np.round((seconds + series.origin_unix_seconds) * 1e6).astype(np.int64))
    local = unix.cast(pl.Datetime("us", "UTC")).dt.convert_time_zone(series.zone)
    into_day = (
        local.dt.hour().cast(pl.Float64) * 3600
        + local.dt.minute().cast(pl.Float64) * 60
        + local.dt.second().cast(pl.Float64)
        + local.dt.microsecond().cast(pl.Float64) / 1e6
    )
    return Calendar(into_day.to_numpy() / DAY, local.dt.weekday().cast(pl.Int64).to_numpy() - 1)
