"""Columns of dates, found by their cells: for tables whose column names say nothing about time."""

from __future__ import annotations

import re
from itertools import pairwise, permutations

import polars as pl

from gputwin.traces.cells import Column, known, times
from gputwin.traces.quality import Ledger
from gputwin.traces.readers.mapped.mapping import Meaning

_FORMATS = {
    re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}"): "",
    re.compile(r"\d{1,2}\.\d{1,2}\.\d{4} \d{1,2}:\d{2}:\d{2}$"): "%d.%m.%Y %H:%M:%S",
    re.compile(r"\d{1,2}\.\d{1,2}\.\d{4} \d{1,2}:\d{2}$"): "%d.%m.%Y %H:%M",
}
"""How a date begins, and the unit that reads it. Day and month between slashes change places between countries."""
_FIELDS = {1: ("submit",), 2: ("start", "end"), 3: ("submit", "start", "end")}
_IN_ORDER = 0.95


def dated_columns(cells: dict[str, list[str]]) -> dict[str, tuple[Meaning, str]]:
    """Return which columns of dates are probably submit, start and end, by their order in time; none where that is open."""
    found = {name: read for name, values in cells.items() if (read := _dates(name, values)) is not None}
    fields = _FIELDS.get(len(found))
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


def _dates(name: str, values: list[str]) -> tuple[Meaning, pl.Series] | None:
    """Return how a column's dates are read, and their seconds; None for a column of anything else."""
    filled = [value.strip() for value in values if value.strip()]
    unit = next((u for pattern, u in _FORMATS.items() if filled and all(pattern.match(v) for v in filled)), None)
    if unit is None:
        return None
    frame = known(pl.DataFrame({"_row": pl.int_range(len(values), dtype=pl.UInt32, eager=True), "cell": values}))
    seconds = times(Column(frame, "cell", "", Ledger(lenient=True)), unit, None).seconds
    return (Meaning(name, unit), seconds) if seconds.is_not_null().any() else None


def _come_in_order(first: pl.Series, second: pl.Series) -> bool:
    if first.len() != second.len():
        return False
    is_later = (second >= first).drop_nulls()
    return bool(is_later.len() and float(is_later.mean() or 0.0) >= _IN_ORDER)  # type: ignore[arg-type]
