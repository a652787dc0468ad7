"""How verbs talk: results on stdout (tables for people, one JSON object for programs), the rest on stderr."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from gputwin.simulation.cluster import Cluster
    from gputwin.traces.dataset import Trace

PIPED_WIDTH = 120

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout and nothing else.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress on stderr.")]
Seed = Annotated[int, typer.Option("--seed", help="Seed of everything random.")]
Format = Annotated[str | None, typer.Option("--format", help="Format of raw input; detected when not given.")]


def emit(data: Mapping[str, Any], as_json: bool, render: Callable[[], None]) -> None:
    """Print `data` as JSON, or call `render` to show it to a person."""
    if as_json:
        # Escaped, so that it is the same JSON whatever encoding the terminal or pipe has.
        sys.stdout.write(json.dumps(_plain(data), allow_nan=False) + "\n")
    else:
        render()


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


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print a table; columns whose cells are all numbers, or look like it, are set right."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    grid = Table(title=escape(title), title_justify="left", title_style="bold", header_style="bold")
    for i, name in enumerate(columns):
        cells = [str(row[i]) for row in rows]
        numeric = bool(cells) and all(c[:1].isdigit() or c[:1] in "-–." for c in cells)
        grid.add_column(escape(name), justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        grid.add_row(*(escape(str(cell)) for cell in row))
    # Rich takes what is not a terminal for one of 80 columns.
    piped = not sys.stdout.isatty() and "COLUMNS" not in os.environ
    Console(soft_wrap=False, width=PIPED_WIDTH if piped else None).print(grid)


def say(text: str = "") -> None:
    """Print a line of the result."""
    sys.stdout.write(text + "\n")


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


@contextmanager
def progress(quiet: bool) -> Iterator[Callable[[str], None]]:
    """Yield a function that shows the current step on stderr while a spinner turns; silent where quiet or piped."""
    if quiet or not sys.stderr.isatty():
        yield lambda step: None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=None)
        yield lambda step: bar.update(task, description=step)
