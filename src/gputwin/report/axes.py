"""Axes of durations: logarithmic, marked in seconds, minutes, hours and days."""

from __future__ import annotations

import math
from typing import Any

import polars as pl

from gputwin.core.units import DAY, HOUR, MINUTE, WEEK

_DURATION_TICKS = {
    **{s: f"{s:g} s" for s in (0.001, 0.01, 0.1, 1, 10)},
    **{n * MINUTE: f"{n} min" for n in (1, 10)},
    **{HOUR: "1 h", 6 * HOUR: "6 h", DAY: "1 d", WEEK: "1 w", 30 * DAY: "30 d", 365 * DAY: "1 y"},
}

_FINE_TICKS = {
    **{s: f"{s:g} s" for s in (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30)},
    **{n * MINUTE: f"{n} min" for n in (1, 3, 10, 30)},
    **{n * HOUR: f"{n} h" for n in (1, 3, 10)},
    **{n * DAY: f"{n} d" for n in (1, 3, 10, 30, 100, 365)},
}
_UNITS = ((DAY, "days"), (HOUR, "hours"), (MINUTE, "minutes"), (1.0, "seconds"))
_FEW_POWERS = 4
_NARROW = 60.0
"""Where the largest is less than this many times the smallest, finer marks are needed."""


def duration_axis(title: str, values: pl.Series) -> dict[str, Any]:
    """Return a log axis for positive durations in s, marked in seconds, minutes, hours and days."""
    is_narrow = values.len() and float(values.max()) / float(values.min()) < _NARROW  # type: ignore[arg-type]
    ticks = {s: text for s, text in (_FINE_TICKS if is_narrow else _DURATION_TICKS).items() if _near(s, values)}
    return {"title": title, "type": "log", "tickvals": list(ticks), "ticktext": list(ticks.values())}


def count_axis(title: str, values: pl.Series) -> dict[str, Any]:
    """Return a log axis for positive counts, marked at 1, 2, 5, 10, 20, 50 and so on, at 1, 10, 100 where that is many."""
    if values.is_empty():
        return {"title": title, "type": "log"}
    powers = range(math.floor(math.log10(float(values.min()))), math.ceil(math.log10(float(values.max()))) + 1)  # type: ignore[arg-type]
    steps = (1, 2, 5) if len(powers) <= _FEW_POWERS else (1,)
    ticks = [step * 10.0**power for power in powers for step in steps]
    return {"title": title, "type": "log", "tickvals": ticks, "ticktext": [f"{tick:,g}" for tick in ticks]}


def duration_unit(values: pl.Series) -> tuple[float, str]:
    """Return the unit in which durations read best on a linear axis: its seconds, and its name."""
    largest = float(values.abs().max() or 0.0)  # type: ignore[arg-type]
    return next((size, name) for size, name in _UNITS if largest >= 2 * size or size == 1)


def _near(tick: float, values: pl.Series) -> bool:
    """Return whether a tick lies within the values, or just outside."""
    return bool(values.len() and values.min() / 12 <= tick <= values.max() * 12)  # type: ignore[operator]
