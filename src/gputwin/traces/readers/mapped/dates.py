"""Columns of dates, found by their cells: for tables whose column names say nothing about time."""

from __future__ import annotations

import re
from itertools import pairwise, permutations

import polars as pl

from gputwin.traces.cells import Column, known, times
from gputwin.traces.quality import QualityLog
from gputwin.traces.readers.mapped.mapping import Meaning

_FORMATS = {
    re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}"): "",
    re.compile(r"\d{1,2}\.\d{1,2}\.\d{4} \d{1,2}:\d{2}:\d{2}$"): "%d.%m.%Y %H:%M:%S",
    re.compile(r"\d{1,2}\.\d{1,2}\.\d{4} \d{1,2}:\d{2}$"): "%d.%m.%Y %H:%M",
}
"""How a date begins, and the unit that reads it."""
_SLASHES = re.compile(r"(\d{1,2})/(\d{1,2})/\d{4} \d{1,2}:\d{2}(:\d{2})?$")
_LAST_MONTH = 12
_FIELDS = {1: ("submit",), 2: ("start", "end"), 3: ("submit", "start", "end")}
_IN_ORDER = 0.95


def date_forms(cells: dict[str, list[str]]) -> dict[str, str]:
    """Return by column of dates the unit that reads them, as %d/%m/%Y %H:%M."""
    slashes = _dates_with_slashes(cells)
    return {name: read[0].unit for name, values in cells.items() if (read := _dates(name, values, slashes)) is not None}


def dated_columns(cells: dict[str, list[str]], has_durations: bool = False) -> dict[str, tuple[Meaning, str]]:
    """Return which columns of dates are probably submit, start and end, by their order in time; none where that is open.

    Two are start and end, or submit and start where another column says how long jobs ran.
    """
    dates = _dates_with_slashes(cells)
    found = {name: read for name, values in cells.items() if (read := _dates(name, values, dates)) is not None}
    fields = ("submit", "start") if has_durations and len(found) == len(_FIELDS[2]) else _FIELDS.get(len(found))
    if fields is None:
        return {}
    for order in permutations(found):
        if all(_come_in_order(found[a][1], found[b][1]) for a, b in pairwise(order)):
            why = (
                "its cells are dates"
                if len(order) == 1
                else f"its cells are dates, number {{}} of {len(order)} in time"
            )
            return {
                field: (found[name][0], why.format(i + 1))
                for i, (field, name) in enumerate(zip(fields, order, strict=True))
            }
    return {}


def _known(values: list[str]) -> pl.DataFrame:
    """Return the cells as a frame, those that say that nothing is known as null."""
    rows = pl.int_range(len(values), dtype=pl.UInt32, eager=True)
    return known(pl.DataFrame({"_row": rows, "cell": pl.Series(values, dtype=pl.String)}))


def _dates_with_slashes(cells: dict[str, list[str]]) -> str:
    """Return how dates such as 13/02/2024 begin, day or month first; "" where no cell of the table shows it.

    Day and month change places between countries: a number above 12 says which is the day, else the one that changes
    more often is.
    """
    first, second = set(), set()
    for values in cells.values():
        filled = _known(values)["cell"].drop_nulls().to_list()
        matches = [_SLASHES.match(value.strip()) for value in filled]
        if filled and all(matches):
            first |= {int(m[1]) for m in matches if m}
            second |= {int(m[2]) for m in matches if m}
    days, months = (max(numbers, default=0) > _LAST_MONTH for numbers in (first, second))
    if days == months:
        days, months = len(first) > len(second), len(second) > len(first)
    return "" if days == months else "%d/%m/%Y" if days else "%m/%d/%Y"


def _form(filled: list[str], slashes: str) -> str | None:
    """Return the unit that reads these dates; None where they are anything else, or may be two things."""
    if slashes and all(found := [_SLASHES.match(value) for value in filled]):
        seconds = {bool(m[3]) for m in found if m}
        return f"{slashes} %H:%M{':%S' if seconds == {True} else ''}" if len(seconds) == 1 else None
    return next((u for pattern, u in _FORMATS.items() if all(pattern.match(v) for v in filled)), None)


def _dates(name: str, values: list[str], slashes: str) -> tuple[Meaning, pl.Series] | None:
    """Return how a column's dates are read, and their seconds; None for a column of anything else."""
    frame = _known(values)
    filled = [value.strip() for value in frame["cell"].drop_nulls()]
    unit = _form(filled, slashes) if filled else None
    if unit is None:
        return None
    seconds = times(Column(frame, "cell", "", QualityLog(lenient=True)), unit, None).seconds
    return (Meaning(name, unit), seconds) if seconds.is_not_null().any() else None


def _come_in_order(first: pl.Series, second: pl.Series) -> bool:
    if first.len() != second.len():
        return False
    is_later = (second >= first).drop_nulls()
    return bool(is_later.len() and float(is_later.mean() or 0.0) >= _IN_ORDER)  # type: ignore[arg-type]
