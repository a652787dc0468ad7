"""One table in one file, in the format its name ends in: CSV, Parquet, JSON or JSON lines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import polars as pl

from gputwin.core.atomic import atomic_file
from gputwin.core.errors import InputError, UserError


class _Format(NamedTuple):
    write: Callable[[pl.DataFrame, Path], None]
    read: Callable[[Path], pl.DataFrame]


_LINES = _Format(
    lambda frame, path: frame.write_ndjson(path), lambda path: pl.read_ndjson(path, infer_schema_length=None)
)
_FORMATS = {
    ".csv": _Format(
        lambda frame, path: frame.write_csv(path),
        # Ids of digits stay text, as they are in a trace.
        lambda path: pl.read_csv(
            path, infer_schema_length=None, schema_overrides={"job_id": pl.String, "role": pl.String}
        ),
    ),
    ".parquet": _Format(lambda frame, path: frame.write_parquet(path), pl.read_parquet),
    ".json": _Format(
        lambda frame, path: frame.write_json(path), lambda path: pl.read_json(path, infer_schema_length=None)
    ),
    ".jsonl": _LINES,
    ".ndjson": _LINES,
}
EXTENSIONS = tuple(_FORMATS)


def check_extension(path: Path) -> None:
    """Raise a UserError unless the file's name ends in a known format."""
    _format(path)


def write_frame(frame: pl.DataFrame, path: Path) -> None:
    """Write a table, all or nothing."""
    write = _format(path).write
    with atomic_file(path) as fresh:
        write(frame, fresh)


def read_frame(path: Path) -> pl.DataFrame:
    """Return the table in a file."""
    return _format(path).read(path)


def _format(path: Path) -> _Format:
    found = _FORMATS.get(path.suffix.lower())
    if found is None:
        raise UserError(f"'{path}': the name does not give the format; end it in {', '.join(EXTENSIONS)}")
    return found


def read_given_csv(path: Path, *, remedy: str, text: Sequence[str] = ()) -> pl.DataFrame:
    """Return a small CSV file that the user names besides a trace; columns of `text` stay as they are written."""
    if path.is_dir():
        # Polars would read all files of a folder as one.
        raise InputError("a folder, not a file", file=path, remedy=remedy)
    try:
        return pl.read_csv(path, schema_overrides=dict.fromkeys(text, pl.String))
    except (OSError, pl.exceptions.PolarsError) as error:
        raise InputError(f"not a readable CSV file ({str(error).splitlines()[0]})", file=path, remedy=remedy) from None
