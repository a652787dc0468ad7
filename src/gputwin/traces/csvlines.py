"""What the lines of a CSV file show that its parser does not: a cut, too few or too many fields, a quote left open.

Polars fills a line that is too short with nulls, and when a quote is never closed it does not say where it opened.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import numpy as np
import polars as pl

from gputwin.core.errors import InputError
from gputwin.traces.sources import Source

_CHUNK = 1 << 22
_TAIL_BYTES = 1 << 16
_COMMA = ord(",")
_LONE_QUOTE_ENDS = (b',"', b'\n"')


def check_names(source: Source, columns: frozenset[str]) -> None:
    """Raise where the header's quotes do not pair, or name one of `columns` twice."""
    if source.head.split(b"\n", 1)[0].count(b'"') % 2:
        raise _open_quote(source, 1)
    for name in columns:
        if source.header.count(name) > 1:
            raise InputError(
                "the header names the column twice", file=source.label, row=1, field=name, remedy="remove one of them"
            )


def check_last_line(source: Source, width: int) -> None:
    """Raise where the last line has no end and too few fields: the file was cut."""
    tail = _tail(source)
    if tail.endswith(b"\n") or b"\n" not in tail:
        return
    last = tail.rsplit(b"\n", 1)[1]
    fields = last.count(b",") + 1
    if fields < width and b'"' not in last:
        raise InputError(
            f"the last line has {fields} of {width} fields and no line end: the file is cut short",
            file=source.label,
            remedy="copy or download it again",
        )


def ends_in_lone_quote(source: Source) -> bool:
    """Return whether the last field may be a lone quote, on which Polars 2.1 panics where a number should be."""
    return _tail(source)[-2:] in _LONE_QUOTE_ENDS


def short_lines(source: Source, width: int, lines: int) -> pl.DataFrame:
    """Return `_row` and `fields` of the lines with fewer than `width` fields; blank ones are none of them.

    `lines` is how many the file has. Counting separators is fast and nearly always enough.
    """
    found: list[tuple[int, int]] = []
    if width > 1 and _count_commas(source.path) != lines * (width - 1):
        for row, record in _records(source, strict=False):
            if record and len(record) < width:
                found.append((row, len(record)))
    return pl.DataFrame(found, schema={"_row": pl.UInt32, "fields": pl.UInt32}, orient="row")


def blame(source: Source, width: int) -> InputError | None:
    """Return the error that names the first line that is no CSV line of at most `width` fields, or None."""
    try:
        for row, record in _records(source, strict=True):
            if len(record) > width:
                return InputError(
                    f"more than {width} fields",
                    file=source.label,
                    row=row,
                    remedy="quote fields that contain commas, or pass --lenient to cut the line",
                )
    except InputError as error:
        return error
    return None


def _open_quote(source: Source, row: int) -> InputError:
    return InputError(
        "a quote is never closed, or closed too early",
        file=source.label,
        row=row,
        remedy='close it, or write quotes inside a field twice ("")',
    )


def _records(source: Source, *, strict: bool) -> Iterator[tuple[int, list[str]]]:
    """Yield the line each record starts on and its fields; unless `strict`, as far as they can be told apart."""
    with source.path.open("rb") as raw:
        reader = csv.reader(_decoded(source, raw, strict), strict=strict)
        while True:
            row = reader.line_num + 1
            try:
                record = next(reader)
            except StopIteration:
                return
            except csv.Error:
                if strict:
                    raise _open_quote(source, row) from None
                return
            yield row, record


def _decoded(source: Source, raw: IO[bytes], strict: bool) -> Iterator[str]:
    for row, line in enumerate(raw, start=1):
        try:
            yield line.decode()
        except UnicodeDecodeError:
            if strict:
                raise InputError(
                    "the text is not UTF-8",
                    file=source.label,
                    row=row,
                    remedy="convert the file to UTF-8, or pass --lenient to keep what can be read",
                ) from None
            yield line.decode(errors="replace")


def _count_commas(path: Path) -> int:
    with path.open("rb") as f:
        return sum(
            int(np.count_nonzero(np.frombuffer(chunk, np.uint8) == _COMMA))
            for chunk in iter(lambda: f.read(_CHUNK), b"")
        )


def _tail(source: Source) -> bytes:
    with source.path.open("rb") as f:
        f.seek(max(0, source.path.stat().st_size - _TAIL_BYTES))
        return f.read()
