"""`gputwin interference`: a table of pairs, and how well pairs that were not measured can be predicted."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gputwin.cli.console import Json, Quiet, emit, say, table


def run(
    path: Annotated[
        Path, typer.Argument(metavar="TABLE", help="Speeds of pairs, in Gavel's format (JSON, also gzipped).")
    ],
    gpu: Annotated[str, typer.Option("--gpu", help="A GPU of the table.")] = "v100",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Show how much job types on one GPU slow each other, and the error of the model for unmeasured pairs.

    The error is that of a family of types the model never saw beside others than the two probes, beside the error of
    guessing the mean.

    Examples:

        gputwin interference simulation_throughputs.json.gz

        gputwin interference simulation_throughputs.json.gz --gpu p100 --json
    """
    from gputwin.core.errors import UserError
    from gputwin.simulation.interference.summary import summary_of
    from gputwin.simulation.interference.table import read_table

    found = read_table(str(path))
    if gpu not in found.gpus:
        raise UserError(f"{path} has no GPU '{gpu}'; it has: {', '.join(found.gpus)}")
    summary = summary_of(found, found.gpus.index(gpu))

    def render() -> None:
        say(summary.conclusion())
        rows = [
            [
                e.family,
                f"{e.pairs:,}",
                f"{e.error:.3f}",
                f"{e.error_of_mean:.3f}",
                f"{e.error_by_alone:.3f}",
                " and ".join(e.probes),
            ]
            for e in summary.errors
        ]
        columns = ["left out", "pairs", "model", "mean", "from speeds alone", "probes"]
        table("Mean absolute error of the speed next to a neighbour, 1: as alone", columns, rows)
        names = ("light", "medium", "heavy")
        table(
            "Mean speed of a third of the types (row) next to another (column); thirds by how much they slow others",
            ["", *names],
            [[name, *(f"{speed:.2f}" for speed in row)] for name, row in zip(names, summary.thirds, strict=True)],
        )
        table(
            "Types",
            ["type", "third", "mean speed next to others", "mean speed of others next to it"],
            [[t.name, names[t.third], f"{t.suffers:.2f}", f"{t.leaves:.2f}"] for t in summary.types],
        )

    emit(summary.to_json(), json, render)
