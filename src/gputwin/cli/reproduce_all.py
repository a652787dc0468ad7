"""`gputwin reproduce all`: every published result whose files are there, ours beside theirs."""

from __future__ import annotations

import inspect
import io
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gputwin.cli import reproduce, reproduce_comparison, reproduce_schedulers
from gputwin.cli.console import Json, Quiet, caught_data, emit, say, table

if TYPE_CHECKING:
    from gputwin.studies.reproduce.kept import Kept
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
    "pai2020-sjf": {"jobs": 5_000, "past": 45_000},
    "queueing-models": {"only": ["M/M/1", "M/M/8", "Pollaczek", "SRPT", "Erlang", "gang"]},
    "gavel2020": {"policy": ["fifo", "max_min_fairness_perf"], "rate": [2.0, 4.8]},
    "pollux2021": {"workload": [1, 2]},
    "schedulers": {"jobs": 2_000},
}
"""Parts that show what the whole shows: the whole of these takes an hour."""


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
        bool, typer.Option("--whole", help="All models, policies, rates and jobs, not a part of them: an hour.")
    ] = False,
    keep: Annotated[
        Path | None,
        typer.Option(
            "--keep", metavar="DIR", help="Keep each result here as it ends; what is there is not made again."
        ),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Print every published result and ours side by side, and which are left out since their files are not there.

    Each is printed as it ends, with the time it took. Results that take long are shown in part unless --whole is given; the
    table at the end says which. Without any files the results that need none are printed.

    Examples:

        gputwin reproduce all --data downloads --data papers --keep results

        gputwin reproduce all --only tiresias60 --only fgd2023 --data downloads --json
    """
    from gputwin.core.errors import UserError
    from gputwin.core.units import format_duration
    from gputwin.studies.reproduce.kept import Kept
    from gputwin.studies.reproduce.key_figures import key_figures
    from gputwin.studies.reproduce.sources import RESULTS, located

    folders = data or [Path()]
    for folder in folders:
        if not folder.is_dir():
            raise UserError(f"'{folder}' is no folder; name one with the publishers' files")
    if unknown := set(only or ()) - set(_COMMANDS):
        raise UserError(f"unknown result '{min(unknown)}'; known: {', '.join(_COMMANDS)}")
    rows, found, figures = [], {}, []
    wanted = [result for result in RESULTS if not only or result.name in only]
    for number, result in enumerate(wanted, start=1):
        files, missing = located(result, folders)
        if missing:
            rows.append((result, f"left out: needs {', '.join(missing)}; {result.remedy}"))
            continue
        part = {} if whole else _SHORT.get(result.name, {})
        if not json:
            say(f"\n{number} of {len(wanted)}: {result.name}, {result.shows}")
            sys.stdout.flush()
        begin = time.monotonic()
        try:
            made, was_kept = _made(result.name, {**files, **part}, Kept(keep) if keep else None, quiet or json)
        except UserError as error:
            rows.append((result, f"left out: {error}"))
            continue
        found[result.name] = made["data"]
        figures += [[result.name, *figure] for figure in key_figures(result.name, made["data"])]
        if not json:
            sys.stdout.write(f"{made['text']}\n")
            say("kept from before" if was_kept else f"took {format_duration(time.monotonic() - begin)}")
        rows.append((result, "shown in part: --whole for all" if part else "shown"))
    status = [{"name": result.name, "shows": result.shows, "status": text} for result, text in rows]
    emit({"results": status, "found": found}, json, lambda: _render(rows, figures))


def _made(name: str, options: dict[str, Any], kept: Kept | None, quiet: bool) -> tuple[dict[str, Any], bool]:
    """Return a result as data and as text, and whether it was kept from before."""
    if kept is not None and (before := kept.find(name, options)) is not None:
        return before, True
    made = _run(_COMMANDS[name], options, quiet)
    if kept is not None:
        kept.keep(name, options, made)
    return made, False


def _run(command: Callable[..., None], options: dict[str, Any], quiet: bool) -> dict[str, Any]:
    """Return what a command gives as data, and what it shows a person."""
    own = {name: p.default for name, p in inspect.signature(command).parameters.items()}
    shown = io.StringIO()
    with redirect_stdout(shown), caught_data() as data:
        command(**{**own, **options, "json": False, "quiet": quiet})
    return {"data": data, "text": shown.getvalue().rstrip("\n")}


def _render(rows: list[tuple[Published, str]], figures: list[list[str]]) -> None:
    from gputwin.cli.terminal import print_table
    from gputwin.core.table import Kind, Table

    say()
    table("Published results", ["name", "status", "what"], [[r.name, text, r.shows] for r, text in rows])
    if figures:
        kinds = {"name": Kind.TEXT, "figure": Kind.TEXT, "published": Kind.NUMBER, "ours": Kind.NUMBER}
        print_table(Table("Published figures and ours", kinds, tuple(map(tuple, figures))), full=True)
