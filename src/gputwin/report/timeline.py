"""How a trace's times are shown: true local dates where its clock has them, else time since the trace began."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import polars as pl

from gputwin.analysis.bins import MOST_BINS, Bins
from gputwin.core.units import DAY, HOUR, MINUTE, format_duration
from gputwin.traces.dataset import Trace
from gputwin.traces.describe import time_bounds
from gputwin.traces.reader import Clock

_UNITS = (("seconds", 1.0, 3 * MINUTE), ("minutes", MINUTE, 3 * HOUR), ("hours", HOUR, 3 * DAY))
_LAST_DATE = 253_370_764_800.0
"""Unix seconds of 9999-01-01, after which dates cannot be written with four digits."""


@dataclass(frozen=True)
class Timeline:
    """The trace's clock: first and last time in s, and the Unix time of zero where time of day is true."""

    first: float
    last: float
    origin: float | None
    zone: str
    has_dates: bool
    shown_span: float
    """s; how much of it an axis shows, which decides the unit of elapsed time."""

    @classmethod
    def of(cls, trace: Trace) -> Timeline:
        """Return the timeline of a trace; a zone nobody knows is shown as UTC."""
        first, last = time_bounds(trace) or (0.0, 0.0)
        if not (math.isfinite(first) and math.isfinite(last)):
            first, last = 0.0, 0.0
        meta = trace.meta
        origin = meta.origin_unix_seconds if meta.clock in (Clock.ABSOLUTE, Clock.WEEKDAY) else None
        if origin is not None and not (origin + first >= 0 and origin + last < _LAST_DATE):
            origin = None
        has_dates = origin is not None and meta.clock == Clock.ABSOLUTE
        return cls(first, last, origin, _known_zone(meta.zone), has_dates, last - first)

    def until(self, time: float) -> Timeline:
        """Return the same timeline for an axis that ends at `time`."""
        return replace(self, shown_span=time - self.first)

    @property
    def span(self) -> float:
        """Return the time from first to last, s."""
        return self.last - self.first

    @property
    def unit(self) -> tuple[str, float]:
        """Return the name and length in s of the unit in which elapsed time is best shown."""
        return next(((name, size) for name, size, up_to in _UNITS if self.shown_span < up_to), ("days", DAY))

    @property
    def axis(self) -> str:
        """Return the title of a time axis."""
        return f"time ({self.zone})" if self.has_dates else f"{self.unit[0]} since the trace began"

    def local(self, time: pl.Expr) -> pl.Expr:
        """Return times as local date-times; only where the clock has a time of day."""
        milliseconds = ((time + (self.origin or 0.0)) * 1000).round().cast(pl.Int64)
        return milliseconds.cast(pl.Datetime("ms", "UTC")).dt.convert_time_zone(self.zone)

    def shown(self, time: pl.Expr) -> pl.Expr:
        """Return times as a time axis takes them: local date and time, or elapsed time in `unit`."""
        if self.has_dates:
            return self.local(time).dt.strftime("%Y-%m-%d %H:%M:%S")
        return (time - self.first) / self.unit[1]

    def words(self, time: float) -> str:
        """Return one time as people say it."""
        elapsed = time - self.first
        # A bin may begin a little before the first event.
        since = f"{format_duration(elapsed)} after the start" if elapsed > 0 else "at the start"
        if self.origin is None:
            return since
        form = "%a %-d %b %Y %H:%M" if self.has_dates else "%A %H:%M"
        text: str = pl.select(self.local(pl.lit(time)).dt.strftime(form)).item()
        return text if self.has_dates else f"{text}, {since}"

    def stretch(self, begin: float, width: str) -> str:
        """Return a stretch of time as people say it: "the first 5 min", "the day from Mon 6 Mar 2023 00:00"."""
        if not self.has_dates and begin <= self.first:
            return f"the first {width}"
        return f"the {width} from {self.words(begin)}"

    def bins(self, first: float, last: float, most: int = MOST_BINS) -> Bins:
        """Return at most `most` bins of a round width that cover [first, last], on round local times."""
        return Bins.covering(first, last, most, self._local_zero())

    def _local_zero(self) -> float:
        """Return a trace time, s, at which a local week begins; the trace's first time where there is no local time."""
        if self.origin is None:
            return self.first
        monday = pl.select(
            self.local(pl.lit(self.first)).dt.truncate("1w").dt.convert_time_zone("UTC").dt.epoch("ms")
        ).item()
        return float(monday) / 1000 - self.origin


def _known_zone(zone: str) -> str:
    try:
        pl.select(pl.lit(0).cast(pl.Datetime("ms", "UTC")).dt.convert_time_zone(zone))
    except pl.exceptions.PolarsError:
        return "UTC"
    return zone
