"""`gputwin tune`: the best configuration of the scheduler within a budget of simulations."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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

    A study tunes a scheduler (any field of a scenario) or, with `autoscaler`, thresholds and cool-downs of scaling rules.
    Run it again with the same directory and it goes on where it was.

    Examples:

        gputwin tune study.yaml -o tuned

        gputwin tune study.yaml --algorithm thompson --budget 80 --seed 1 --json
    """
    from dataclasses import replace

    from gputwin.core.errors import UserError
    from gputwin.optimization.tuning.runs import Runs, Simulations
    from gputwin.optimization.tuning.study import tune_runs
    from gputwin.optimization.tuning.study_file import read_file, read_study
    from gputwin.report.tuning import STORE_FILE, write_tuning_report
    from gputwin.studies.scaling_tuning import KEY, scaling_runs

    if budget is not None and budget < 1:
        raise UserError(f"--budget {budget}: give at least one simulation")
    store = None
    if output is not None:
        output.mkdir(parents=True, exist_ok=True)
        store = output / STORE_FILE
    data = read_file(study)
    with progress(quiet or json) as step:
        runs: Runs[Any]
        if KEY in data:
            step("opening the trace")
            runs = scaling_runs(study, data, store=store, seed=seed)
        else:
            described = read_study(study)
            announce_compilation(quiet or json)
            step("opening the trace")
            runs = Simulations(described, store=store, seed=seed)
        runs.study = replace(
            runs.study, algorithm=algorithm or runs.study.algorithm, budget=budget or runs.study.budget
        )
        # The one that is next is named: "simulation 3 of 20" is under way once two are done.
        told = lambda done, total: step(f"simulation {min(done + 1, total)} of {total}")  # noqa: E731
        result = tune_runs(runs, progress=told)
        if output is not None:
            step("writing the report")
            write_tuning_report(output, result)
    said = {**result.to_json(), "directory": None if output is None else str(output)}
    emit(said, json, lambda: _render(result, output))


def _render(result: Tuned, output: Path | None) -> None:
    from gputwin.report.tuning import headline, loss_text

    say(headline(result))
    names = result.study.names
    ranked = sorted(range(len(names)), key=lambda i: result.expected[i])[:10]
    rows = [
        [names[i], len(result.scores[i]), loss_text(result, i), "yes" if i in result.front else "no"]
        for i in ranked
        if result.scores[i]
    ]
    table("Best ten", ["configuration", "windows", "mean loss (present = 1)", "on the Pareto front"], rows)
    say(
        f"chosen: {names[result.chosen]}, after {result.simulations:,} simulations; a full sweep takes {result.full_sweep:,}"
    )
    if output is not None:
        say(f"report: {output / 'tuning.html'}")
