"""JSON lines: one object per line, read field by field, so that a bad line is named by file, row and field."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import islice

import polars as pl

from gputwin.core.errors import InputError, shorten
from gputwin.traces.quality import EXAMPLES, QualityLog
from gputwin.traces.sources import Source

_BATCH = 1 << 16
_LARGEST_INTEGER = 1 << 63
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
Value = object


def read_json_lines(
    source: Source,
    fields: Mapping[str, pl.DataType],
    unused: frozenset[str],
    quality: QualityLog,
    *,
    any_scalar: bool = False,
) -> pl.DataFrame:
    """Return the `fields` of each line and `_row`, its number; counts the rows read.

    With `any_scalar` every field is text, and numbers, true and false are taken as written.

    A line or value of the wrong form is an error that names it, or unknown where the log is lenient (rule F03).
    Other keys than `fields` and `unused` are reported (rule F02).
    """
    source.check_text()
    lines = _Lines(source, fields, unused, quality)
    if any_scalar:
        lines.takers = dict.fromkeys(fields, ("text or a number", _scalar))
    records = lines.records()
    schema: dict[str, pl.DataType] = {"_row": pl.UInt32(), **fields}
    parts = [pl.DataFrame(schema=schema)]
    while batch := list(islice(records, _BATCH)):
        parts.append(pl.DataFrame(batch, schema=schema, orient="row"))
    frame = pl.concat(parts)
    if frame.is_empty():
        raise InputError("the file has no rows", file=source.label, remedy="give a file with rows")
    quality.read(source.label, frame.height)
    lines.report()
    return frame


class _Lines:
    """The lines of one file, and what was found wrong with them so far."""

    def __init__(
        self, source: Source, fields: Mapping[str, pl.DataType], unused: frozenset[str], quality: QualityLog
    ) -> None:
        self.source = source
        self.quality = quality
        self.known = unused | set(fields)
        self.takers = {name: _taker(dtype) for name, dtype in fields.items()}
        self.surplus: set[str] = set()
        self.bad: dict[str, list[tuple[int, str]]] = {}

    def records(self) -> Iterator[tuple[Value, ...]]:
        """Yield the row number and the fields of each line that is not blank."""
        with self.source.path.open("rb") as file:
            for row, line in enumerate(file, start=1):
                if line.strip():
                    record = self._object(row, line)
                    self.surplus.update(record.keys() - self.known)
                    yield row, *(self._field(row, record, name) for name in self.takers)

    def report(self) -> None:
        """Put what was found into the log."""
        for name, cells in self.bad.items():
            examples = pl.DataFrame(cells[:EXAMPLES], schema={"_row": pl.UInt32, name: pl.String}, orient="row")
            self.quality.find("F03", self.source.label, len(cells), detail=name, examples=examples)
        names = shorten(", ".join(sorted(self.surplus)), 200)
        self.quality.find("F02", self.source.label, len(self.surplus), detail=names)

    def _object(self, row: int, line: bytes) -> dict[str, Value]:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            record = None
        if isinstance(record, dict):
            return record
        self._refuse(row, "line", line.decode(errors="replace"), "a JSON object")
        return {}

    def _field(self, row: int, record: dict[str, Value], name: str) -> Value:
        value = record.get(name)
        if value is None:
            return None
        wanted, take = self.takers[name]
        taken = take(value)
        if taken is None:
            self._refuse(row, name, str(value), wanted)
        return taken

    def _refuse(self, row: int, field: str, value: str, wanted: str) -> None:
        if not self.quality.lenient:
            raise InputError(
                f"'{shorten(value)}' is not {wanted}",
                file=self.source.label,
                row=row,
                field=None if field == "line" else field,
                remedy="fix the line, or pass --lenient to treat such values as unknown",
            )
        self.bad.setdefault(field, []).append((row, shorten(value)))


def _number(value: Value) -> float | int | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return value if abs(value) < _LARGEST_INTEGER else None


def _whole(value: Value) -> int | None:
    number = _number(value)
    return int(number) if number is not None and number == int(number) else None


def _wholes(value: Value) -> list[int] | None:
    if not isinstance(value, list):
        return None
    numbers = [number for v in value if (number := _whole(v)) is not None]
    return numbers if len(numbers) == len(value) else None


def _text(value: Value) -> str | None:
    # Half of a surrogate pair is legal in JSON, but no text.
    return value if isinstance(value, str) and not _LONE_SURROGATE.search(value) else None


def _scalar(value: Value) -> str | None:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else _text(value)


def _taker(dtype: pl.DataType) -> tuple[str, Callable[[Value], Value]]:
    """Return what a value of `dtype` is called, and the function that gives it, or None for any other value."""
    if dtype.is_float():
        return "a number", _number
    if dtype.is_integer():
        return "a whole number", _whole
    if isinstance(dtype, pl.List):
        return "a list of whole numbers", _wholes
    return "text", _text
