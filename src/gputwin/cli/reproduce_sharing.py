"""`gputwin reproduce sharing`: how many GPUs a trace needs for the same waits, by how they are shared."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gputwin.cli.console import Json, Quiet, Seed, emit, progress, say, table


def add_to(app: typer.Typer) -> None:
    """Add this command to `gputwin reproduce`."""
    app.command("sharing")(sharing)


def sharing(
    trace: Annotated[str, typer.Option("--trace", help="A trace whose jobs ask for shares of GPUs.")] = (
        "synthetic:pai2020?jobs=20000"
    ),
    cluster: Annotated[
        str, typer.Option("--cluster", help="Its node types, in the proportions that are kept.")
    ] = "pai2020",
    target: Annotated[str, typer.Option("--target", help="Waits to be had, as in p95_wait=10m.")] = "p95_wait=10m",
    interference: Annotated[
        Path | None, typer.Option("--interference", help="A table of pairs instead of the built-in one.")
    ] = None,
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """GPUs needed for the same waits: not shared, shared in fractions, with interference, in time slices.

    Takes about five minutes of CPU with 20,000 jobs.

    Examples:

        gputwin reproduce sharing

        gputwin reproduce sharing --interference simulation_throughputs.json.gz --target p95_wait=1h --json
    """
    from gputwin.studies.sharing import compare_sharing, words

    with progress(quiet or json) as step:
        found = compare_sharing(
            trace,
            cluster,
            target,
            seed=seed,
            interference="" if interference is None else str(interference),
            progress=step,
        )

    def render() -> None:
        say(found.conclusion())
        columns = [
            "GPUs are",
            "GPUs needed",
            "ratio",
            "p95 wait",
            "mean wait",
            "mean completion",
            "slowed by neighbours",
        ]
        table(f"{found.jobs:,} jobs of {trace}, {found.target}", columns, [words(way) for way in found.ways])

    emit(found.to_json(), json, render)
