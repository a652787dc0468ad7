"""`gputwin ingest`: raw files to a canonical trace and a quality report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gputwin.cli.console import Format, Json, Quiet, emit, progress, say, table


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
    meta = trace.meta
    data = {
        "source": meta.source,
        "rows_read": meta.rows_read,
        "rows_kept": meta.rows_kept,
        "rows_dropped": meta.rows_dropped,
        "tables": dict(meta.tables),
        "findings": [f.to_json() for f in meta.findings],
        "fingerprint": meta.fingerprint,
        "trace_directory": None if output is None else str(output),
    }

    def render() -> None:
        say(f"{meta.title} ({meta.source})")
        say(f"rows read {meta.rows_read:,} = kept {meta.rows_kept:,} + dropped {meta.rows_dropped:,}")
        table("Tables", ["table", "rows"], [[n, f"{rows:,}"] for n, rows in meta.tables.items()])
        show_findings(meta.findings)
        if output is not None:
            say(f"trace: {output}")

    emit(data, json, render)


def show_findings(findings) -> None:  # type: ignore[no-untyped-def]
    """Print the quality report."""
    if not findings:
        say("Quality: nothing found.")
        return
    rows = [
        [f.rule, f.table, f"{f.count:,}", f.action, f"{f.title}{f' ({f.detail})' if f.detail else ''}"]
        for f in findings
    ]
    table("Quality", ["rule", "where", "rows", "action", "what"], rows)
