"""`gputwin analyze`: what a trace shows, in tables, figures and words."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gputwin.cli.console import Format, Json, Quiet, Seed, emit, progress
from gputwin.cli.options import TraceArgument


def run(
    trace: TraceArgument,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="DIR", help="Directory for all tables (Parquet, CSV) and a report."),
    ] = None,
    engine: Annotated[
        str, typer.Option("--engine", help="Who reads the tables: polars, duckdb, spark or spark:MASTER.")
    ] = "polars",
    format: Format = None,
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Analyse a trace: workload, waits, runtimes, placement rules, efficiency, cluster, bottlenecks, serving.

    Prints the main tables and what they say in words. With -o all tables are written, and a report with the figures.

    Examples:

        gputwin analyze disaggregated_DLRM_trace.csv

        gputwin analyze "synthetic:pai2020?jobs=100000" -o analysis --json

        gputwin analyze pai --engine spark:spark://host:7077
    """
    from gputwin.analysis import analyze
    from gputwin.analysis.store import save
    from gputwin.cli.show_analysis import show_analysis
    from gputwin.traces.locate import open_trace

    with progress(quiet or json) as step:
        opened = open_trace(trace, format, step)
        analysis = analyze(opened, seed=seed, engine=engine, progress=step)
        written = {}
        if output is not None:
            from gputwin.report import write_report

            step("writing tables and report")
            save(analysis, output)
            report = write_report(output / "report.html", opened, analysis=analysis)
            written = {"directory": str(output), "report": str(report)}

    emit({**analysis.to_json(), **written}, json, lambda: show_analysis(analysis, written))
