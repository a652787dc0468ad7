"""`gputwin tune`: the best configuration of the scheduler within a budget of simulations."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gputwin.cli.console import Json, Quiet, Seed, announce_compilation, emit, progress, say, table

if TYPE_CHECKING:
    from gputwin.optimization.tuning.study import Tuned


def run(
    study: Annotated[Path, typer.Argument(metavar="STUDY.yaml", help="What to tune; see docs/optimization.md.")],
    algorithm: Annotated[
        str | None, typer.Option("--algorithm", help="ucb, thompson, halving, exp3 or random; the study's otherwise.")
    ] = None,
    budget: Annotated[
        int | None, typer.Option("--budget", help="Simulations to spend; a fifth of a full sweep otherwise.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="DIR", help="Directory for simulations (to resume from) and a report."),
    ] = None,
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Find the best configuration with few simulations, and test it against the present one on held-out windows.

    Run it again with the same directory and it goes on where it was.

    Examples:

        gputwin tune study.yaml -o tuned

        gputwin tune study.yaml --algorithm thompson --budget 80 --seed 1 --json
    """
    from dataclasses import replace

    from gputwin.core.errors import UserError
    from gputwin.optimization.tuning.study import tune
    from gputwin.optimization.tuning.study_file import read_study
    from gputwin.report.tuning import STORE_FILE, write_tuning_report

    described = read_study(study)
    if algorithm is not None:
        described = replace(described, algorithm=algorithm)
    if budget is not None:
        if budget < 1:
            raise UserError(f"--budget {budget}: give at least one simulation")
        described = replace(described, budget=budget)
    announce_compilation(quiet or json)
    store = None
    if output is not None:
        output.mkdir(parents=True, exist_ok=True)
        store = output / STORE_FILE
    with progress(quiet or json) as step:
        step("opening the trace")
        # The one that is next is named: "simulation 3 of 20" is under way once two are done.
        told = lambda done, total: step(f"simulation {min(done + 1, total)} of {total}")  # noqa: E731
        result = tune(described, store=store, seed=seed, progress=told)
        if output is not None:
            step("writing the report")
            write_tuning_report(output, result)
    data = {**result.to_json(), "directory": None if output is None else str(output)}
    emit(data, json, lambda: _render(result, output))


def _render(result: Tuned, output: Path | None) -> None:
    from gputwin.report.tuning import headline

    say(headline(result))
    names = result.study.names
    ranked = sorted(range(len(names)), key=lambda i: result.expected[i])[:10]
    rows = [
        [names[i], len(result.scores[i]), f"{result.expected[i]:.3f}", "yes" if i in result.front else "no"]
        for i in ranked
        if result.scores[i]
    ]
    table("Best ten", ["configuration", "windows", "expected loss (present = 1)", "on the Pareto front"], rows)
    say(
        f"chosen: {names[result.chosen]}, after {result.simulations:,} simulations; a full sweep takes {result.full_sweep:,}"
    )
    if output is not None:
        say(f"report: {output / 'tuning.html'}")
