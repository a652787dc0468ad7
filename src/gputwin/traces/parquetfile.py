"""Parquet files from strangers: read in a process of their own, since a damaged one can end the process that reads it."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from gputwin.core.errors import InputError, shorten
from gputwin.traces.sources import Source

_MAGIC = b"PAR1"
_SECONDS = 600
_READ = """
import json, sys
import polars as pl
path, target, (columns, rows) = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
try:
    pl.read_parquet(path, columns=columns, n_rows=rows).write_ipc(target)
except BaseException as error:
    sys.exit(str(error).splitlines()[0] if str(error) else type(error).__name__)
"""


def is_parquet(source: Source) -> bool:
    """Return whether the file starts as a Parquet file does."""
    return source.head.startswith(_MAGIC)


def parquet_columns(source: Source) -> tuple[str, ...]:
    """Return the names of the columns."""
    return tuple(_read(source, None, 0).columns)


def read_parquet_sample(source: Source, rows: int = 200) -> pl.DataFrame:
    """Return the first rows of all columns of values, as text."""
    frame = _read(source, None, rows)
    plain = {name: dtype for name, dtype in frame.schema.items() if not _is_nested(dtype)}
    return frame.select(_as_text(source, name, dtype) for name, dtype in plain.items())


def read_foreign_parquet(source: Source, columns: Sequence[str]) -> pl.DataFrame:
    """Return the named columns as text: times in ISO form, durations in seconds."""
    frame = _read(source, columns, None)
    return frame.select(_as_text(source, name, dtype) for name, dtype in frame.schema.items())


def _read(source: Source, columns: Sequence[str] | None, rows: int | None) -> pl.DataFrame:
    with source.path.open("rb") as file:
        file.seek(max(0, source.path.stat().st_size - len(_MAGIC)))
        is_whole = file.read() == _MAGIC
    if not is_whole:
        raise InputError("the Parquet file is cut short", file=source.label, remedy="copy or download it again")
    with tempfile.TemporaryDirectory(prefix="gputwin-") as scratch:
        target = Path(scratch) / "table.arrow"
        wanted = json.dumps([None if columns is None else list(columns), rows])
        arguments = [sys.executable, "-c", _READ, str(source.path), str(target), wanted]
        try:
            done = subprocess.run(arguments, capture_output=True, timeout=_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            raise _damaged(source, "reading it does not end") from None
        if done.returncode or not target.is_file():
            lines = done.stderr.decode(errors="replace").strip().splitlines()
            raise _damaged(source, lines[-1] if lines and done.returncode > 0 else "its reader ended abruptly")
        return pl.read_ipc(target.read_bytes())


def _damaged(source: Source, why: str) -> InputError:
    return InputError(
        f"not a readable Parquet file ({shorten(why, 160)})", file=source.label, remedy="export the file again"
    )


def _is_nested(dtype: pl.DataType) -> bool:
    return dtype.is_nested() or dtype in (pl.Binary, pl.Object)


def _as_text(source: Source, name: str, dtype: pl.DataType) -> pl.Expr:
    column = pl.col(name)
    if _is_nested(dtype):
        raise InputError(
            f"a column of type {shorten(dtype)} is no column of values",
            file=source.label,
            field=name,
            remedy="map another column, or flatten it first",
        )
    if isinstance(dtype, pl.Datetime):
        column = column.dt.cast_time_unit("us")
        if dtype.time_zone is not None:
            return column.dt.convert_time_zone("UTC").dt.to_string("%Y-%m-%dT%H:%M:%S%.6f+00:00")
        return column.dt.to_string("%Y-%m-%dT%H:%M:%S%.6f")
    if isinstance(dtype, pl.Duration):
        return (column.dt.total_microseconds() / 1e6).cast(pl.String) + "s"
    return column.cast(pl.String)
