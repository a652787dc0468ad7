"""`gputwin slice`: part of a trace, by time, tenant, GPU model or chance."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gputwin.cli.console import Format, Json, Quiet, Seed, emit, progress, say
from gputwin.cli.options import TraceArgument, keep_apart


def run(
    trace: TraceArgument,
    output: Annotated[Path, typer.Option("-o", "--output", help="Directory to write the part to.")],
    first: Annotated[
        str | None, typer.Option("--first", help="The first jobs submitted: a share (70%) or a time (14d).")
    ] = None,
    last: Annotated[
        str | None, typer.Option("--last", help="The last jobs submitted: a share (30%) or a time (14d).")
    ] = None,
    since: Annotated[
        str | None,
        typer.Option("--since", help="Jobs submitted from then on: a date, or a time after the first job (2d)."),
    ] = None,
    until: Annotated[
        str | None, typer.Option("--until", help="Jobs submitted before then, as they were known then.")
    ] = None,
    tenant: Annotated[list[str] | None, typer.Option("--tenant", help="Jobs of this tenant; repeatable.")] = None,
    model: Annotated[
        list[str] | None, typer.Option("--model", help="Jobs on this GPU model, requests for this model; repeatable.")
    ] = None,
    sample: Annotated[str | None, typer.Option("--sample", help="A random share of the jobs (10%).")] = None,
    format: Format = None,
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Take part of a trace: by time, tenant, GPU model or chance. Parts can be combined.

    Every part keeps the trace's clock. `--first` and `--until` give what was known at the cut: jobs that had not ended
    then are running or waiting there. `--last` and `--since` give the jobs submitted from the cut on, as they ended.

    Examples:

        gputwin slice theta --first 70% -o earlier

        gputwin slice theta --since 2023-01-01 --until 2023-02-01 -o january

        gputwin slice mine --tenant vision -o vision

        gputwin slice pai --model V100 -o v100

        gputwin slice pai --sample 10% -o tenth
    """
    from gputwin.core.units import format_duration
    from gputwin.traces.locate import open_trace
    from gputwin.traces.slicing import Selection, running_at, select

    keep_apart(trace, output)
    selection = Selection(first, last, since, until, tuple(tenant or ()), tuple(model or ()), sample, seed)
    with progress(quiet or json) as step:
        opened = open_trace(trace, format, step)
        part, cut = select(opened, selection)
        part = part.save(output)
        open_jobs = None if cut is None else running_at(opened, cut)
    untimed = 0 if cut is None or not opened.has("requests") else opened.requests["submit_time"].null_count()
    data = {
        "tasks": part.tasks.height,
        "tasks_of_trace": opened.tasks.height,
        "requests": part.requests.height,
        "requests_of_trace": opened.requests.height,
        "requests_without_time": untimed,
        "cut_seconds": cut,
        "jobs_not_ended_at_cut": open_jobs,
        "fingerprint": part.meta.fingerprint,
        "trace_directory": str(output),
    }

    def render() -> None:
        for name in ("tasks", "requests"):
            if opened.frame(name).height:
                say(f"{part.frame(name).height:,} of {opened.frame(name).height:,} {name}")
        if untimed:
            say(f"{untimed:,} requests have no time: they are neither before nor after the cut, and left out")
        if cut is not None and open_jobs is not None:
            kept = "known only as far as they had run" if last is None and since is None else "left out"
            say(
                f"cut {format_duration(cut)} after the trace's time zero; {open_jobs:,} jobs submitted before had not "
                f"ended then and are {kept}"
            )
        say(f"trace: {output}")

    emit(data, json, render)
