"""`gputwin split`: a trace in two parts, to learn from the earlier and test on the later."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gputwin.cli.console import Format, Json, Quiet, emit, progress, say
from gputwin.cli.options import TraceArgument, keep_apart


def run(
    trace: TraceArgument,
    output: Annotated[Path, typer.Option("-o", "--output", help="Directory for the two parts, train and test.")],
    at: Annotated[str, typer.Option("--at", help="Size of the earlier part: a share (70%) or a time (14d).")] = "70%",
    format: Format = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Split a trace by time into train (what was known at the cut) and test (jobs submitted from the cut on).

    Nothing in train knows what came later: a job that had not ended at the cut is running or waiting there.

    Examples:

        gputwin split theta -o parts

        gputwin split theta --at 14d -o parts
    """
    from gputwin.core.units import format_duration
    from gputwin.traces.locate import open_trace
    from gputwin.traces.slicing import before, cut_time, running_at, since

    keep_apart(trace, output / "train", output / "test")
    with progress(quiet or json) as step:
        opened = open_trace(trace, format, step)
        cut = cut_time(opened, first=at)
        train, test = before(opened, cut), since(opened, cut)
        train, test = train.save(output / "train"), test.save(output / "test")
        open_jobs = running_at(opened, cut)
    untimed = opened.requests["submit_time"].null_count() if opened.has("requests") else 0
    data = {
        "requests_without_time": untimed,
        "cut_seconds": cut,
        "jobs_not_ended_at_cut": open_jobs,
        **{
            name: {
                "tasks": part.tasks.height,
                "requests": part.requests.height,
                "trace_directory": str(output / name),
            }
            for name, part in (("train", train), ("test", test))
        },
    }

    def render() -> None:
        kind = "tasks" if opened.tasks.height else "requests"
        counts = f"{train.frame(kind).height:,} {kind} to learn from, {test.frame(kind).height:,} to test on"
        say(f"{counts}; cut {format_duration(cut)} after the trace's time zero")
        if untimed:
            say(f"{untimed:,} requests have no time: they are neither before nor after the cut, and left out")
        if open_jobs:
            say(f"{open_jobs:,} jobs had not ended at the cut: in train they run or wait, in test they are left out")
        say(f"traces: {output / 'train'}, {output / 'test'}")

    emit(data, json, render)
