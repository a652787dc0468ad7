"""`gputwin predict`: how long the jobs of a trace will run, from a saved model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gputwin.cli.console import Format, Json, Quiet, emit, progress, say, table, warn
from gputwin.cli.options import TraceArgument
from gputwin.core.units import percent

if TYPE_CHECKING:
    from gputwin.profiling.predict import Predictions

SHOWN = 20


def run(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Folder of a saved model.")],
    trace: TraceArgument,
    explain: Annotated[str | None, typer.Option("--explain", help="Say why, for this job.")] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="FILE", help="File for the predictions: .csv, .parquet, .json or .jsonl."
        ),
    ] = None,
    format: Format = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Predict durations with an 80 % interval; `gputwin simulate --predict FILE` schedules by them.

    Each job is predicted as on the day it was submitted: from the model's history and from jobs of the trace that had
    ended by then. A task that still runs when the trace ends is predicted given how long it has run. Where outcomes are
    known, errors are printed beside a baseline's and beside those of the profile's test.

    Examples:

        gputwin predict pai-profile/model new-jobs -o predictions.csv

        gputwin predict pai-profile/model new-jobs --explain 296e0a758cf4e2d86d24b5e3
    """
    from gputwin.profiling.predict import explain_job, predict_trace
    from gputwin.profiling.store import load
    from gputwin.traces.framefile import check_extension, write_frame
    from gputwin.traces.locate import open_trace

    if output is not None:
        check_extension(output)
    with progress(quiet or json) as step:
        saved = load(model)
        opened = open_trace(trace, format, step)
        step("predicting")
        found = predict_trace(saved, opened)
        reasons = None if explain is None else explain_job(saved, opened, explain)
        if output is not None:
            write_frame(found.frame, output)
    data = {
        **found.to_json(),
        "trace_fingerprint": saved.recording.fingerprint,
        "predictions": None if output is None else str(output),
        "reasons": None if reasons is None else reasons.to_dicts(),
    }

    def render() -> None:
        if reasons is not None:
            rows = [[r["role"], r["reason"], r["value"], f"× {r['factor']:.2f}"] for r in reasons.to_dicts()]
            table(f"Why {explain} is predicted so", ["role", "reason", "value", "effect"], rows)
        else:
            _show(found)
        for note in found.notes:
            warn(note)
        if output is not None:
            say(str(output))

    emit(data, json, render)


def _show(found: Predictions) -> None:
    shown = found.frame.head(SHOWN).to_dicts()
    numbers = ("ran_seconds", "predicted_seconds", "low_seconds", "high_seconds", "actual_seconds")
    table(
        f"{found.frame.height:,} tasks by {found.kind}, the first {len(shown)}",
        ["job", "role", "class", "ran s", "predicted s", "10 % s", "90 % s", "actual s"],
        [
            [r["job_id"], r["role"], r["class"], *("–" if r[n] is None else f"{r[n]:,.0f}" for n in numbers)]
            for r in shown
        ],
    )
    if found.scores:
        table(
            "Errors, of jobs whose outcome is known",
            ["predicted by", "tasks", "MAE s", "median error s", "within 2×", "80 % interval holds"],
            [
                [
                    name,
                    f"{s.jobs:,}",
                    f"{s.mae_seconds:,.0f}",
                    f"{s.median_error_seconds:,.0f}",
                    f"{s.within_2x:.3f}",
                    percent(s.coverage, 1),
                ]
                for name, s in found.scores.items()
            ],
        )
