"""Disruption budgets: how many nodes of a pool may leave at once, by reason and by the clock."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

REASONS = ("Empty", "Underutilized", "Drifted")
UNLIMITED = 2**31 - 1
_NAMED = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_BOUNDS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_NAMES: tuple[Mapping[str, int], ...] = (
    {},
    {},
    {},
    {name: i for i, name in enumerate(_MONTHS, 1)},
    {name: i for i, name in enumerate(_WEEKDAYS)},
)
"""Names of cron's fields, in any case."""


@dataclass(frozen=True, slots=True)
class Budget:
    """At most `nodes` (a number or a percentage, rounded up) may leave at once."""

    nodes: str = "10%"
    reasons: tuple[str, ...] = ()
    """Reasons it applies to; empty: all."""
    schedule: str = ""
    """Cron (UTC) at which it becomes active; empty: always."""
    duration_s: float | None = None

    def __post_init__(self) -> None:
        number = self.nodes.removesuffix("%")
        if not number.isdigit() or (self.nodes.endswith("%") and int(number) > 100):
            raise ValueError(f"a budget's nodes are a number or a percentage up to 100%, not '{self.nodes}'")
        unknown = [reason for reason in self.reasons if reason not in REASONS]
        if unknown:
            raise ValueError(f"a budget's reasons are {', '.join(REASONS)}, not '{unknown[0]}'")
        if bool(self.schedule) != (self.duration_s is not None):
            raise ValueError("a budget's schedule and duration come together")
        if self.schedule:
            _fields(self.schedule)

    def allows(self, nodes_in_pool: int) -> int:
        """Return how many nodes may leave."""
        if self.nodes.endswith("%"):
            return math.ceil(nodes_in_pool * int(self.nodes[:-1]) / 100)
        return int(self.nodes)

    def is_active(self, epoch_s: float) -> bool:
        """Return whether the budget applies at this time (seconds since 1970, UTC)."""
        if not self.schedule or self.duration_s is None:
            return True
        minute = math.floor(epoch_s / 60)
        earliest = (epoch_s - self.duration_s) / 60
        fields = _fields(self.schedule)
        while minute > earliest:
            if _hits(fields, minute):
                return True
            minute -= 1
        return False


def allowed(budgets: Sequence[Budget], reason: str, nodes_in_pool: int, leaving: int = 0, epoch_s: float = 0.0) -> int:
    """Return how many more nodes may leave for `reason`: the least of the active budgets, less those leaving already."""
    limits = [
        budget.allows(nodes_in_pool)
        for budget in budgets
        if (not budget.reasons or reason in budget.reasons) and budget.is_active(epoch_s)
    ]
    return max(min(limits) - leaving, 0) if limits else UNLIMITED


def _fields(schedule: str) -> tuple[frozenset[int], ...]:
    parts = _NAMED.get(schedule.strip(), schedule).split()
    if len(parts) != 5:
        raise ValueError(f"the schedule '{schedule}' has not the five fields of cron")
    try:
        return tuple(_values(part, *bounds, names) for part, bounds, names in zip(parts, _BOUNDS, _NAMES, strict=True))
    except ValueError:
        raise ValueError(
            f"the schedule '{schedule}' is no cron expression (numbers, names, *, ranges, lists, steps)"
        ) from None


def _values(part: str, low: int, high: int, names: Mapping[str, int]) -> frozenset[int]:
    def number(text: str) -> int:
        return names[text.lower()] if text.lower() in names else int(text)

    values: set[int] = set()
    for entry in part.split(","):
        span, _, step = entry.partition("/")
        first, dash, last = span.partition("-")
        is_any = first in ("*", "?")
        start = low if is_any else number(first)
        end = number(last) if dash else high if is_any or step else start
        stride = int(step) if step else 1
        if not low <= start <= end <= high or stride < 1:
            raise ValueError(part)
        values.update(range(start, end + 1, stride))
    return frozenset(values)


def _hits(fields: tuple[frozenset[int], ...], minute: int) -> bool:
    at = datetime.datetime.fromtimestamp(minute * 60, tz=datetime.UTC)
    minutes, hours, days, months, weekdays = fields
    if at.minute not in minutes or at.hour not in hours or at.month not in months:
        return False
    weekday = (at.weekday() + 1) % 7
    day_fits, weekday_fits = at.day in days, weekday in weekdays or (weekday == 0 and 7 in weekdays)
    # As in cron, a restricted day of month and a restricted day of week are alternatives.
    if len(days) < 31 and len(weekdays) < 7:
        return day_fits or weekday_fits
    return day_fits and weekday_fits
