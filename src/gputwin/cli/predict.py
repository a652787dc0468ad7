"""`gputwin predict`: how long the jobs of a trace will run, from a saved model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gputwin.cli.console import Format, Json, Quiet, emit, progress, say, table, warn
from gputwin.cli.options import TraceArgument

SHOWN = 20


def run(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Folder of a saved model.")],
    trace: TraceArgument,
    explain: Annotated[str | None, typer.Option("--explain", help="Say why, for this job.")] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE.parquet", help="File to write predictions to.")
    ] = None,
    format: Format = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Predict durations with an 80 % interval; `gputwin simulate --predict FILE.parquet` schedules by them.

    A task that still runs when the trace ends is predicted given how long it has run.

    Examples:

        gputwin predict pai-profile/model new-jobs -o predictions.parquet

        gputwin predict pai-profile/model new-jobs --explain 296e0a758cf4e2d86d24b5e3
    """
    from gputwin.profiling.predict import explain_job, predict_trace, summary_of
    from gputwin.profiling.store import load
    from gputwin.traces.atomic import atomic_file
    from gputwin.traces.locate import open_trace

    with progress(quiet or json) as step:
        saved = load(model)
        opened = open_trace(trace, format, step)
        step("predicting")
        frame = predict_trace(saved, opened)
        reasons = None if explain is None else explain_job(saved, opened, explain)
        if output is not None:
            with atomic_file(output) as fresh:
                frame.write_parquet(fresh)
    data = {
        **summary_of(saved, opened, frame),
        "predictions": None if output is None else str(output),
        "reasons": None if reasons is None else reasons.to_dicts(),
    }

    def render() -> None:
        if reasons is not None:
            rows = [[r["role"], r["reason"], r["value"], f"× {r['factor']:.2f}"] for r in reasons.to_dicts()]
            table(f"Why {explain} is predicted so", ["role", "reason", "value", "effect"], rows)
        else:
            shown = frame.head(SHOWN).to_dicts()
            columns = ["job", "role", "class", "ran s", "predicted s", "10 % s", "90 % s"]
            numbers = ("ran_seconds", "predicted_seconds", "low_seconds", "high_seconds")
            table(
                f"{frame.height:,} tasks by {saved.kind}, the first {len(shown)}",
                columns,
                [[r["job_id"], r["role"], r["class"], *(f"{r[n]:,.0f}" for n in numbers)] for r in shown],
            )
        if data["warning"]:
            warn(data["warning"])
        if output is not None:
            say(str(output))

    emit(data, json, render)
