"""How verbs talk: results on stdout (conclusion and tables for people, one object for programs), the rest on stderr."""

from __future__ import annotations

import io
import json
import math
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from contextvars import ContextVar
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gputwin.cli.progress import progress
from gputwin.cli.settings import settings
from gputwin.cli.terminal import is_terminal, print_table, wrapped
from gputwin.core.table import Kind, Table

if TYPE_CHECKING:
    import polars as pl

    from gputwin.simulation.cluster import Cluster
    from gputwin.traces.dataset import Trace

__all__ = [
    "Format",
    "Json",
    "Quiet",
    "Seed",
    "announce_compilation",
    "emit",
    "progress",
    "say",
    "show",
    "table",
    "warn",
    "warn_of_overload",
]

SCREENS = 88
"""Lines of two screens; what is longer is shown by --full."""
_LEAST_LINES = 48
_LAST_LINES = 3
_BETWEEN_COLUMNS = "  "
_CAUGHT: ContextVar[dict[str, Any] | None] = ContextVar("caught", default=None)
"""Where the data of a verb go besides, for one that runs others."""
_TABLES: ContextVar[list[Table] | None] = ContextVar("tables", default=None)
"""Where tables go that are wanted as data."""
_NUMBER = re.compile(r"[-–−+]?\.?\d[\d,.]*(?=[\s%]|$)|[-–]?$")
"""A number, with or without a unit after a blank; 4b3f04b6 is none."""

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout and nothing else.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr.")]
Seed = Annotated[int, typer.Option("--seed", help="Seed of everything random.")]
Format = Annotated[
    str | None, typer.Option("--format", help="Format of raw input, detected when not given; or of output, as --as.")
]


def emit(
    data: Mapping[str, Any],
    as_json: bool,
    render: Callable[[], None],
    main: Callable[[], pl.DataFrame] | None = None,
) -> None:
    """Print `data` as JSON, the verb's `main` table as asked for by --as, or call `render` to show it to a person."""
    caught = _CAUGHT.get()
    if caught is not None:
        caught.update(_plain(data))
    wanted = settings().as_
    if as_json or wanted == "json":
        # Escaped, so that it is the same JSON whatever encoding the terminal or pipe has.
        sys.stdout.write(json.dumps(_plain(data), allow_nan=False) + "\n")
    elif wanted in ("csv", "parquet"):
        _write_frame(_first_table(render) if main is None else main(), wanted)
    else:
        _show(render)


@contextmanager
def caught_data() -> Iterator[dict[str, Any]]:
    """Yield a mapping that gets what verbs called inside give as data, however they print it."""
    caught: dict[str, Any] = {}
    token = _CAUGHT.set(caught)
    try:
        yield caught
    finally:
        _CAUGHT.reset(token)


def two_screens() -> int:
    """Return how many lines two screens of this terminal have, at least 2 × 24; 2 × 44 where there is no terminal."""
    return max(2 * shutil.get_terminal_size((80, SCREENS // 2)).lines, _LEAST_LINES)


def _show(render: Callable[[], None]) -> None:
    """Print what `render` does, no longer than two screens unless everything is asked for."""
    shown = io.StringIO()
    with redirect_stdout(shown):
        render()
    lines = shown.getvalue().splitlines()
    most = two_screens()
    if len(lines) > most and not settings().full:
        lines = _cut(lines, most)
    sys.stdout.write("".join(f"{line}\n" for line in lines))


def _cut(lines: list[str], most: int) -> list[str]:
    """Return the first and the last lines, no more than `most`; no rows without their header, no header without rows."""
    last = lines[-_LAST_LINES:]
    while last and _BETWEEN_COLUMNS in last[0].strip():
        last = last[1:]
    kept = most - len(last) - 1
    # Title, header and rule of a table stand one below the other.
    rule = next((n for n in range(kept - 1, min(kept + 2, len(lines))) if set(lines[n].strip()) == {"─"}), None)
    kept = kept if rule is None else rule - 2
    return [*lines[:kept], f"… {len(lines) - kept - len(last):,} more lines: --full", *last]


def _first_table(render: Callable[[], None]) -> pl.DataFrame:
    """Return the first table that `render` shows, its cells as they are read."""
    import polars as pl

    from gputwin.core.errors import UserError

    tables: list[Table] = []
    token = _TABLES.set(tables)
    try:
        with redirect_stdout(io.StringIO()):
            render()
    finally:
        _TABLES.reset(token)
    if not tables:
        raise UserError("this result has no table; see it as text, or with --json")
    return pl.DataFrame(tables[0].rows, schema=dict.fromkeys(tables[0].columns, pl.String), orient="row")


def _write_frame(frame: pl.DataFrame, wanted: str) -> None:
    from gputwin.core.errors import UserError

    if wanted == "csv":
        from gputwin.report.html import as_csv

        sys.stdout.write(as_csv(frame))
        return
    if is_terminal() and sys.stdout is sys.__stdout__:
        raise UserError("Parquet is not text; send it to a file: gputwin … --as parquet > table.parquet")
    sys.stdout.flush()
    frame.write_parquet(sys.stdout.buffer)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if hasattr(value, "item"):
        return _plain(value.item())
    return value


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], note: str = "") -> None:
    """Print a table; columns whose cells are all numbers, or look like it, are set right."""
    cells = tuple(tuple(str(cell) for cell in row) for row in rows)
    show(Table(title, {name: _kind([row[i] for row in cells]) for i, name in enumerate(columns)}, cells, note))


def show(shown: Table) -> None:
    """Print a table as wide as the terminal, with all its rows where everything is asked for."""
    tables = _TABLES.get()
    if tables is not None:
        tables.append(shown)
        return
    print_table(shown, full=settings().full)


def _kind(cells: Sequence[str]) -> Kind:
    is_number = bool(cells) and all(_NUMBER.match(c) for c in cells)
    return Kind.NUMBER if is_number else Kind.TEXT


def say(text: str = "") -> None:
    """Print a line of the result; in a terminal it is wrapped between words."""
    sys.stdout.write(wrapped(text) + "\n")


def warn(text: str) -> None:
    """Print on stderr what a person should know before trusting the result."""
    sys.stderr.write(f"gputwin: note: {text}\n")


def warn_of_overload(trace: Trace, cluster: Cluster, growth: float = 1.0) -> list[str]:
    """Warn, and return the warnings, where the trace offers more work than the cluster can do over its span."""
    from gputwin.simulation.offered import overload

    found = list(overload(trace, cluster, growth))
    for text in found:
        warn(text)
    return found


def announce_compilation(quiet: bool) -> None:
    """Say on stderr, piped or not, why the first simulation ever takes its time."""
    from gputwin.simulation.engine.compiled import is_compiled

    if not quiet and not is_compiled():
        sys.stderr.write("compiling the engine for this machine: about a minute, only this once\n")
