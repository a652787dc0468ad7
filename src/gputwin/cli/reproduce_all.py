"""`gputwin reproduce all`: every published result whose files are there, ours beside theirs."""

from __future__ import annotations

import inspect
import io
import json as json_format
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gputwin.cli import reproduce, reproduce_comparison, reproduce_schedulers
from gputwin.cli.console import Json, Quiet, emit, say, table

if TYPE_CHECKING:
    from gputwin.studies.reproduce.sources import Published

_COMMANDS: dict[str, Callable[..., None]] = {
    "fgd2023": reproduce.fgd2023,
    "pai2020-sjf": reproduce.pai2020_sjf,
    "queueing-models": reproduce.queueing_models,
    "dlrm2025-forecast": reproduce.dlrm2025_forecast,
    "gavel2020": reproduce_schedulers.gavel2020,
    "tiresias60": reproduce_schedulers.tiresias60,
    "pollux2021": reproduce_schedulers.pollux2021,
    "schedulers": reproduce_comparison.schedulers,
}
_SHORT: dict[str, dict[str, Any]] = {
    "gavel2020": {"policy": ["fifo", "max_min_fairness_perf"], "rate": [2.0, 4.8]},
}
"""All of them would take an hour; a part is run unless everything is asked for."""


def add_to(app: typer.Typer) -> None:
    """Add this command to `gputwin reproduce`."""
    app.command("all")(everything)


def everything(
    data: Annotated[
        list[Path] | None,
        typer.Option("--data", metavar="DIR", help="Folder with the publishers' files; repeatable.", show_default="."),
    ] = None,
    only: Annotated[list[str] | None, typer.Option("--only", help="Only these results; repeatable.")] = None,
    whole: Annotated[
        bool, typer.Option("--whole", help="All policies and rates of gavel2020 too: an hour more.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Print every published result beside ours, and which are left out since their files are not there.

    Takes about ten minutes with all files; without any, the two results that need none are printed.

    Examples:

        gputwin reproduce all --data downloads --data papers

        gputwin reproduce all --only tiresias60 --only fgd2023 --data downloads --json
    """
    from gputwin.core.errors import UserError
    from gputwin.studies.reproduce.sources import RESULTS, located

    folders = data or [Path()]
    for folder in folders:
        if not folder.is_dir():
            raise UserError(f"'{folder}' is no folder; name one with the publishers' files")
    if unknown := set(only or ()) - set(_COMMANDS):
        raise UserError(f"unknown result '{min(unknown)}'; known: {', '.join(_COMMANDS)}")
    rows, found = [], {}
    for result in RESULTS:
        if only and result.name not in only:
            continue
        files, missing = located(result, folders)
        if missing:
            rows.append((result, f"left out: needs {', '.join(missing)}; {result.remedy}"))
            continue
        if not json:
            say(f"\n{result.name}: {result.shows}")
            sys.stdout.flush()
        options = {**files, **({} if whole else _SHORT.get(result.name, {}))}
        try:
            found[result.name] = _run(_COMMANDS[result.name], options, json, quiet)
            is_part = not whole and result.name in _SHORT
            rows.append((result, "shown in part: --whole for all" if is_part else "shown"))
        except UserError as error:
            rows.append((result, f"left out: {error}"))
    status = [{"name": result.name, "shows": result.shows, "status": text} for result, text in rows]
    emit({"results": status, "found": found}, json, lambda: _render(rows))


def _run(command: Callable[..., None], options: dict[str, Any], json: bool, quiet: bool) -> Any:
    """Return what a command gives as data; what it shows a person is printed."""
    own = {name: p.default for name, p in inspect.signature(command).parameters.items()}
    arguments = {**own, **options, "json": json, "quiet": quiet}
    if not json:
        command(**arguments)
        return None
    shown = io.StringIO()
    with redirect_stdout(shown):
        command(**arguments)
    return json_format.loads(shown.getvalue())


def _render(rows: list[tuple[Published, str]]) -> None:
    say()
    table("Published results", ["name", "status", "what"], [[r.name, text, r.shows] for r, text in rows])
