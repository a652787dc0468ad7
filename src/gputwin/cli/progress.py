"""What a verb does now, on stderr: the step, how much of it is done, and the time left where that is known."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from gputwin.cli.settings import settings
from gputwin.core.steps import PART, share_done


class Step(Protocol):
    """Shows the current step; `done` is the share of it that is finished."""

    def __call__(self, step: str, done: float | None = None) -> None:
        """Show the step."""


def _beginning(step: str) -> str:
    """Return what all parts of a step have in common: "backtest, model " of "backtest, model 3 of 17: ets"."""
    found = PART.search(step)
    return step[: found.start()] if found else step


@contextmanager
def progress(quiet: bool) -> Iterator[Step]:
    """Yield a function that shows the current step on stderr; silent where quiet, and where piped unless verbose."""
    if settings().verbose and not quiet:
        with _spoken() as step:
            yield step
        return
    if quiet or not sys.stderr.isatty():
        yield lambda step, done=None: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn
    from rich.progress import TimeRemainingColumn as Left

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        Left(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=None)
        shown = "starting"

        def show(step: str, done: float | None = None) -> None:
            nonlocal shown
            share = share_done(step) if done is None else done
            begins = _beginning(step)
            if begins != shown:
                shown = begins
                bar.reset(task, total=None if share is None else 1.0)
            bar.update(task, description=step, total=None if share is None else 1.0, completed=share or 0.0)

        yield show


@contextmanager
def _spoken() -> Iterator[Callable[..., None]]:
    """Yield a function that writes each step on a line, after the seconds since the start."""
    begin, last = time.monotonic(), ""

    def show(step: str, done: float | None = None) -> None:
        nonlocal last
        if step != last:
            sys.stderr.write(f"[{time.monotonic() - begin:7.1f} s] {step}\n")
            last = step

    yield show
    sys.stderr.write(f"[{time.monotonic() - begin:7.1f} s] done\n")
