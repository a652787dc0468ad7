"""`gputwin describe`: what is in a trace."""

from __future__ import annotations

from typing import Annotated

import typer

from gputwin.cli.console import Format, Json, Quiet, emit, progress, say, table


def run(
    trace: Annotated[list[str], typer.Argument(metavar="TRACE", help="Trace directory, synthetic:NAME, or raw files.")],
    format: Format = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Say what is in a trace.

    Examples:

        gputwin describe dlrm

        gputwin describe synthetic:pai2020?jobs=100000 --json
    """
    from gputwin.core.units import format_count, format_duration
    from gputwin.traces.describe import describe
    from gputwin.traces.locate import open_trace

    with progress(quiet or json) as step:
        description = describe(open_trace(trace, format, step))

    def render() -> None:
        d = description
        say(f"{d.title} ({d.source}), {format_duration(d.span_seconds)}, clock {d.clock}, zone {d.zone}")
        counts = {
            "tasks": d.tasks,
            "jobs": d.jobs,
            "instances": d.instances,
            "applications": d.applications,
            "users": d.users,
            "groups": d.groups,
            "tenants": d.tenants,
            "nodes": d.nodes,
            "GPUs": d.gpus,
            "requests": d.requests,
            "tasks complete": d.tasks_complete,
            "tasks without submit and start": d.tasks_without_submit_and_start,
            "tasks running at the end": d.tasks_running,
            "tasks never started": d.tasks_never_started,
        }
        table("Counts", ["what", "how many"], [[k, format_count(v)] for k, v in counts.items() if v])
        rows = []
        for name, spread in (("wait", d.wait_seconds), ("runtime", d.runtime_seconds)):
            if spread:
                cells = [format_duration(spread[k]) for k in ("mean", "p50", "p95", "p99", "max")]
                rows.append([name, format_count(spread["count"]), *cells, f"{spread['zero_share']:.1%}"])
        if d.gpus_requested:
            cells = [f"{d.gpus_requested[k]:g}" for k in ("mean", "p50", "p95", "p99", "max")]
            rows.append(
                [
                    "GPUs per task",
                    format_count(d.gpus_requested["count"]),
                    *cells,
                    f"{d.gpus_requested['zero_share']:.1%}",
                ]
            )
        if rows:
            table("Distributions", ["what", "tasks", "mean", "p50", "p95", "p99", "max", "zero"], rows)
        if d.gpu_models:
            table("GPUs", ["model", "GPUs"], [[k, format_count(v)] for k, v in d.gpu_models.items()])
        if d.metrics:
            table("Series", ["metric", "samples"], [[k, format_count(v)] for k, v in d.metrics.items()])

    emit(description.to_json(), json, render)
