"""`gputwin ingest`: raw files to a canonical trace and a quality report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gputwin.cli.console import Format, Json, Quiet, emit, progress
from gputwin.cli.show import ingest_json, show_ingest


def run(
    paths: Annotated[list[Path], typer.Argument(help="Raw files, archives or folders of one trace.")],
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Directory to write the trace to.")] = None,
    format: Format = None,
    strict: Annotated[bool, typer.Option("--strict", help="Any finding is an error.")] = False,
    lenient: Annotated[bool, typer.Option("--lenient", help="Cells that do not parse become unknown.")] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Read raw trace files into one canonical trace, with a data-quality report.

    Without -o the files are read and checked, and nothing is written.

    Examples:

        gputwin ingest disaggregated_DLRM_trace.csv -o dlrm

        gputwin ingest pai/*.tar.gz -o pai --json

        gputwin ingest sacct.txt --format slurm --strict
    """
    from gputwin.traces.ingest import Options, ingest

    with progress(quiet or json) as step:
        trace = ingest(paths, output, Options(format, strict, lenient), step)
    emit(ingest_json(trace.meta, output), json, lambda: show_ingest(trace.meta, output))
