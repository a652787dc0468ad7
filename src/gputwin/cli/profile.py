"""`gputwin profile`: what kinds of jobs there are, and a tested model of how long they run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gputwin.cli.console import Format, Json, Quiet, Seed, announce_compilation, emit, progress, say, table, warn
from gputwin.cli.options import TraceArgument
from gputwin.core.units import format_duration, percent, signed_duration

if TYPE_CHECKING:
    from gputwin.studies.prediction_value.study import PredictionValue, RuleOutcome


def run(
    trace: TraceArgument,
    model: Annotated[
        list[str] | None, typer.Option("--model", help="Only test these duration models; repeatable.")
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option("--cluster", help="Where to simulate the value of predictions; made for the jobs if not given."),
    ] = None,
    value: Annotated[
        bool, typer.Option("--value/--no-value", help="Simulate the value of predictions to the scheduler.")
    ] = True,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Folder for the model (model/) and the report (report.html).")
    ] = None,
    format: Format = None,
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Find job classes, test duration models in time order, and keep the best.

    Examples:

        gputwin profile pai_joined_1000_sample.csv -o pai-profile

        gputwin profile "synthetic:pai2020?jobs=20000" --model forest --model online --cluster homogeneous:40x8 --json
    """
    from gputwin.profiling.profile import CANDIDATES, profile
    from gputwin.studies.prediction_value.study import prediction_value_in_time
    from gputwin.studies.prediction_value.verdict import verdict
    from gputwin.traces.locate import open_trace

    with progress(quiet or json) as step:
        opened = open_trace(trace, format, step)
        found = profile(opened, models=model or CANDIDATES, seed=seed, progress=step)
        runs = None
        if value:
            announce_compilation(quiet)
            models = [e.model for e in found.evaluations]
            runs = prediction_value_in_time(opened, cluster, models, seed=seed, progress=step)
        written = {}
        if output is not None:
            from gputwin.report import write_report
            from gputwin.report.report_input import name_of
            from gputwin.report.sections.profile import profile_sections

            step("writing model and report")
            written["model_directory"] = str(found.save(output / "model"))
            sections = profile_sections(found, runs)
            title = f"Profile: {name_of(opened)}"
            written["report"] = str(write_report(output / "report.html", opened, asked=sections, title=title))
    warnings = [] if runs is None else list(runs.warnings)
    for text in warnings:
        warn(text)
    data = {
        **found.to_json(),
        "prediction_value": None if runs is None else {**runs.to_json(), "verdict": verdict(runs)},
        "warnings": warnings,
        **written,
    }

    def render() -> None:
        from gputwin.report.sections.profile import headline

        say(headline(found, runs))
        if runs is None and value:
            say(
                "What predictions are worth was not simulated: no cluster that holds the widest job gets a queue of these."
            )
        classes = found.classes
        table(
            f"{len(classes.classes)} job classes; {classes.rows_clustered:,} of {classes.rows:,} tasks clustered, "
            f"{percent(data['noise_share'])} in no class, {percent(classes.accuracy)} recognised at submit",
            ["class", "tasks", "typical job"],
            [[c.name, f"{c.tasks:,}", c.medoid_job] for c in sorted(classes.classes, key=lambda c: -c.tasks)],
        )
        table(
            f"Duration models, in time order; chosen: {found.chosen}",
            ["model", "mean error", "median error", "within 2×", "80 % interval holds", "rank correlation"],
            [
                [
                    e.model,
                    format_duration(s.mae_seconds),
                    format_duration(s.median_error_seconds),
                    percent(s.within_2x, 1),
                    percent(e.coverage, 1),
                    f"{s.rank_correlation:.3f}",
                ]
                for e in found.evaluations
                for s in [e.scores]
            ],
        )
        if runs is not None:
            value_table(runs)
        for what in written.values():
            say(what)

    emit(data, json, render)


def value_table(value: PredictionValue) -> None:
    """Print runs side by side."""
    table(
        f"The value of predictions: {value.setting}",
        [
            "rule",
            "mean wait",
            "Δ to FIFO (95 % interval)",
            "mean completion",
            "p99 wait of long jobs",
            "oracle's gain kept",
        ],
        [
            [
                o.rule,
                format_duration(o.mean_wait_seconds),
                _difference(o),
                format_duration(o.mean_jct_seconds),
                format_duration(o.long_jobs_p99_wait_seconds),
                "–" if o.gain_kept is None else percent(o.gain_kept, 1),
            ]
            for o in value.outcomes
        ],
    )


def _difference(outcome: RuleOutcome) -> str:
    low, high = outcome.difference_low_seconds, outcome.difference_high_seconds
    if low is None or high is None:
        return signed_duration(outcome.difference_seconds)
    if low == high == 0:
        return "–"
    return f"{signed_duration(outcome.difference_seconds)} ({signed_duration(low)} to {signed_duration(high)})"
