"""`gputwin merge`: several traces as one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gputwin.cli.console import Json, Quiet, emit, progress, say
from gputwin.cli.options import keep_apart


def run(
    traces: Annotated[list[str], typer.Argument(metavar="TRACE…", help="Trace directories, or synthetic:NAME.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Directory to write the merged trace to.")],
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Merge traces: exports of successive months, or of several clusters.

    Dates are put on one clock. A job in two traces (same id and submission) counts once, as known by the one that saw
    it end; the same id with another submission is another job, and its id then begins with the trace's name.

    Examples:

        gputwin merge march april -o spring
    """
    from gputwin.core.units import format_duration
    from gputwin.traces.describe import span_seconds
    from gputwin.traces.locate import open_trace
    from gputwin.traces.merging import merge

    keep_apart(traces, output)
    with progress(quiet or json) as step:
        merged = merge([open_trace(name, progress=step) for name in traces], [Path(n).name for n in traces]).save(
            output
        )
    span = span_seconds(merged)
    data = {
        "tables": dict(merged.meta.tables),
        "span_seconds": span,
        "fingerprint": merged.meta.fingerprint,
        "trace_directory": str(output),
    }

    def render() -> None:
        rows = ", ".join(f"{count:,} {name}" for name, count in merged.meta.tables.items())
        say(f"{rows} over {format_duration(span)}")
        say(f"trace: {output}")

    emit(data, json, render)
