"""Local time of day and day of the week as arithmetic, so that every engine computes the same."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import narwhals as nw

from gputwin.core.units import DAY, HOUR
from gputwin.traces.dataset import TraceMeta
from gputwin.traces.reader import Clock

_MOST_DAYS = 40_000
_LAST_DATE = 253_370_764_800.0


@dataclass(frozen=True)
class LocalClock:
    """What to add to trace times to get local seconds since a Thursday's midnight (the Unix epoch), by period.

    `offsets` are (from this trace time on, seconds to add); empty where time of day is unknown.
    """

    offsets: tuple[tuple[float, float], ...] = ()

    @classmethod
    def of(cls, meta: TraceMeta, first: float, last: float) -> LocalClock:
        """Return the clock of a trace between two of its times, s; without offsets where the zone means nothing."""
        origin = meta.origin_unix_seconds
        if meta.clock not in (Clock.ABSOLUTE, Clock.WEEKDAY) or origin is None:
            return cls()
        low, high = origin + first, origin + last
        if not (0 <= low <= high < _LAST_DATE) or (high - low) / DAY > _MOST_DAYS:
            return cls()
        zone = _known_zone(meta.zone)
        changes = [low]
        day = low
        while day < high:
            after = min(day + DAY, high)
            if _offset(zone, day) != _offset(zone, after):
                changes.append(_change(zone, day, after))
            day = after
        return cls(tuple((at - origin, origin + _offset(zone, at)) for at in changes))

    @property
    def has_time_of_day(self) -> bool:
        """Return whether hours and weekdays mean something."""
        return bool(self.offsets)

    def seconds(self, time: nw.Expr) -> nw.Expr:
        """Return local seconds since the epoch of times in s."""
        local = time + self.offsets[0][1]
        for (_, before), (begin, offset) in zip(self.offsets, self.offsets[1:], strict=False):
            local = local + (time >= begin).cast(nw.Float64) * (offset - before)
        return local

    def hour(self, time: nw.Expr) -> nw.Expr:
        """Return the local hour, 0 to 23."""
        local = self.seconds(time)
        return ((local - (local / DAY).floor() * DAY) / HOUR).floor().cast(nw.Int64)

    def weekday(self, time: nw.Expr) -> nw.Expr:
        """Return the local day of the week, 1 for Monday."""
        day = (self.seconds(time) / DAY).floor() + 3
        return (day - (day / 7).floor() * 7).cast(nw.Int64) + 1

    def week(self, time: nw.Expr) -> nw.Expr:
        """Return the number of the local week that begins on Monday, counted from the epoch's."""
        return (((self.seconds(time) / DAY).floor() + 3) / 7).floor().cast(nw.Int64)


def _known_zone(zone: str) -> ZoneInfo:
    """Return the zone; UTC where nobody knows it, as in the report's axes."""
    try:
        return ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError):
        return ZoneInfo("UTC")


def _offset(zone: ZoneInfo, unix: float) -> float:
    return (datetime.fromtimestamp(unix, UTC).astimezone(zone).utcoffset() or UTC.utcoffset(None)).total_seconds()


def _change(zone: ZoneInfo, low: float, high: float) -> float:
    """Return the Unix time between two at which the offset changes, to the second."""
    before = _offset(zone, low)
    while high - low > 1:
        middle = math.floor((low + high) / 2)
        low, high = (middle, high) if _offset(zone, middle) == before else (low, middle)
    return float(math.floor(high))
