"""`gputwin compile`: machine code for this computer, made before the first simulation needs it."""

from __future__ import annotations

from typing import Annotated

import typer

from gputwin.cli.console import Json, Quiet, emit, progress, say

Every = Annotated[bool, typer.Option("--all", help="Compile the slow rules too, such as conservative backfilling.")]


def run(every: Every = False, json: Json = False, quiet: Quiet = False) -> None:
    """Compile the engine for this machine now, so that no later command has to wait for it.

    Compiles what `gputwin demo` simulates: the schedulers, placements and scaling rules it compares; with --all, also the
    rules that take longest. Takes some minutes the first time and seconds afterwards. Other rules are compiled when they
    are first used. The code is kept in the user's cache folder, or in $GPUTWIN_CACHE.

    Examples:

        gputwin compile

        gputwin compile --all

        GPUTWIN_CACHE=/opt/gputwin gputwin compile --quiet
    """
    from gputwin.report.compile import compile_ahead
    from gputwin.simulation.engine.compiled import cache_folder

    with progress(quiet or json) as step:
        count = compile_ahead(every, step)
    folder = cache_folder()
    data = {"parts": count, "folder": folder}
    emit(data, json, lambda: say(f"Compiled for this machine: {folder}"))
