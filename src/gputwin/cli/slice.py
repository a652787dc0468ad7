"""`gputwin slice`: the earlier or the later part of a trace."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gputwin.cli.console import Format, Json, Quiet, emit, progress, say
from gputwin.cli.options import TraceArgument


def run(
    trace: TraceArgument,
    output: Annotated[Path, typer.Option("-o", "--output", help="Directory to write the part to.")],
    first: Annotated[
        str | None, typer.Option("--first", help="The first jobs submitted: a share (70%) or a time (14d).")
    ] = None,
    last: Annotated[
        str | None, typer.Option("--last", help="The last jobs submitted: a share (30%) or a time (14d).")
    ] = None,
    format: Format = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Cut a trace at a point in time, to learn from one part and test on the other.

    Both parts keep the trace's clock. `--first` is what was known at the cut: jobs that had not ended then are running
    or waiting there. `--last` holds the jobs submitted from the cut on, as they ended.

    Examples:

        gputwin slice theta --first 70% -o earlier

        gputwin slice theta --last 30% -o later
    """
    from gputwin.core.units import format_duration
    from gputwin.traces.locate import open_trace
    from gputwin.traces.slicing import before, cut_time, running_at, since

    with progress(quiet or json) as step:
        opened = open_trace(trace, format, step)
        cut = cut_time(opened, first=first, last=last)
        part = (since if first is None else before)(opened, cut).save(output)
        open_jobs = running_at(opened, cut)
    data = {
        "tasks": part.tasks.height,
        "tasks_of_trace": opened.tasks.height,
        "cut_seconds": cut,
        "jobs_not_ended_at_cut": open_jobs,
        "fingerprint": part.meta.fingerprint,
        "trace_directory": str(output),
    }

    def render() -> None:
        kept = "known only as far as they had run" if last is None else "left out"
        say(
            f"{part.tasks.height:,} of {opened.tasks.height:,} tasks, cut {format_duration(cut)} after the trace's time "
            f"zero; {open_jobs:,} jobs submitted before had not ended then and are {kept}"
        )
        say(f"trace: {output}")

    emit(data, json, render)
