"""Somebody's own table as columns of text: CSV with any usual separator, Parquet, or JSON lines."""

from __future__ import annotations

import csv
import json
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from gputwin.core.errors import InputError, shorten
from gputwin.traces.jsonlines import read_json_lines
from gputwin.traces.parquetfile import is_parquet, parquet_columns, read_foreign_parquet, read_parquet_sample
from gputwin.traces.quality import QualityLog
from gputwin.traces.sources import Source
from gputwin.traces.tabular import CsvKind, read_csv

_SEPARATORS = ("\t", ";", "|")
_SAMPLE_LINES = 200


def separator_of(source: Source) -> str:
    """Return what separates the fields of the first line: a comma, or another sign where it occurs more often."""
    first = source.head.split(b"\n", 1)[0].decode("utf-8-sig", errors="replace")
    best = max(_SEPARATORS, key=first.count)
    return best if first.count(best) > first.count(",") else ","


def is_json_lines(source: Source) -> bool:
    """Return whether the file starts like a JSON object."""
    return source.head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{"


def column_names(source: Source) -> tuple[str, ...]:
    """Return the names of the table's columns, for JSON lines those of the first lines."""
    if is_parquet(source):
        return parquet_columns(source)
    if is_json_lines(source):
        names: dict[str, None] = {}
        for line in source.head.decode("utf-8-sig", errors="replace").split("\n")[:_SAMPLE_LINES]:
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(record, dict):
                names |= dict.fromkeys(str(key) for key in record)
        return tuple(names)
    source.check_text()
    separator = separator_of(source)
    if separator == ",":
        return source.header
    first = source.head.split(b"\n", 1)[0].decode("utf-8-sig", errors="replace").rstrip("\r")
    try:
        return tuple(name.strip() for name in next(csv.reader([first], delimiter=separator), []))
    except csv.Error:
        return (first,)


def read_text_columns(source: Source, columns: Sequence[str], quality: QualityLog) -> pl.DataFrame:
    """Return the named columns as text and `_row`, the row each stands in; counts the rows read."""
    names = column_names(source)
    missing = [name for name in columns if name not in names]
    if missing and not is_json_lines(source):
        raise InputError(
            f"column {', '.join(repr(shorten(m)) for m in missing)} is missing",
            file=source.label,
            row=1,
            remedy=f"the file has {shorten(', '.join(names), 300)}",
        )
    if is_parquet(source):
        return _from_parquet(source, columns, quality)
    if is_json_lines(source):
        return read_json_lines(source, dict.fromkeys(columns, pl.String()), frozenset(names), quality, any_scalar=True)
    # Columns that the mapping leaves out are left out on purpose.
    kind = CsvKind("table", dict.fromkeys(columns, pl.String), ignored=frozenset(names))
    if (separator := separator_of(source)) == ",":
        return read_csv(source, kind, quality)
    with tempfile.TemporaryDirectory(prefix="gputwin-") as scratch:
        return read_csv(_with_commas(source, separator, Path(scratch) / "table.csv"), kind, quality)


def sample_cells(source: Source) -> dict[str, list[str]]:
    """Return cells of the first rows by column, as text."""
    if is_parquet(source):
        return {name: cells.drop_nulls().to_list() for name, cells in read_parquet_sample(source).to_dict().items()}
    text = source.head.decode("utf-8-sig", errors="replace")
    # The last line may go on beyond the head of the file.
    lines = text.split("\n")[: -1 if source.path.stat().st_size > len(source.head) else None][: _SAMPLE_LINES + 1]
    cells: dict[str, list[str]] = {name: [] for name in column_names(source)}
    if is_json_lines(source):
        for line in lines:
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                continue
            for name, value in record.items() if isinstance(record, dict) else ():
                if name in cells and isinstance(value, str | int | float):
                    cells[name].append(str(value))
        return cells
    try:
        for row in csv.reader(lines[1:], delimiter=separator_of(source)):
            for name, value in zip(cells, row, strict=False):
                cells[name].append(value.strip())
    except csv.Error:
        pass
    return cells


def _from_parquet(source: Source, columns: Sequence[str], quality: QualityLog) -> pl.DataFrame:
    frame = read_foreign_parquet(source, columns)
    if frame.is_empty():
        raise InputError("the file has no rows", file=source.label, remedy="give a file with rows")
    quality.read(source.label, frame.height)
    return frame.with_row_index("_row", offset=1)


def _with_commas(source: Source, separator: str, target: Path) -> Source:
    """Return the table rewritten with commas, so that one reader checks every CSV; lines keep their numbers."""
    with source.path.open("rb") as raw, target.open("w", encoding="utf-8", newline="") as plain:
        lines = (line.decode("utf-8-sig" if i == 0 else "utf-8", errors="replace") for i, line in enumerate(raw))
        rows = csv.reader(lines, delimiter=separator)
        out = csv.writer(plain, lineterminator="\n")
        try:
            for row in rows:
                out.writerow(row)
        except csv.Error as error:
            raise InputError(
                f"not a readable table ({shorten(error)})", file=source.label, row=rows.line_num, remedy="fix the line"
            ) from None
    return replace(source, path=target)
