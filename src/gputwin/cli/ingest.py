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
    map: Annotated[
        str | None,
        typer.Option("--map", metavar="FIELD=COLUMN,…", help="What the columns of a table of your own mean."),
    ] = None,
    map_file: Annotated[
        Path | None, typer.Option("--map-file", help="The same as a file, such as the map.yaml kept in a trace.")
    ] = None,
    guess: Annotated[
        bool, typer.Option("--guess", help="Propose a mapping and why; use it unless something is unclear.")
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="With --guess: use the proposed mapping although something is unclear.")
    ] = False,
    zone: Annotated[
        str | None, typer.Option("--zone", help="Zone of times that name none, as in Europe/Berlin.")
    ] = None,
    table: Annotated[
        str | None, typer.Option("--table", help="What rows of your own table become: tasks or requests.")
    ] = None,
    usage: Annotated[
        list[Path] | None,
        typer.Option("--usage", help="What the jobs used: JSON of a Prometheus range query; repeatable."),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Read raw trace files into one canonical trace, with a data-quality report.

    Without -o the files are read and checked, and nothing is written. A table of your own (CSV, TSV, Parquet, JSON
    lines) needs a mapping of its columns; --guess proposes one, and asks where something is unclear. The mapping is
    kept in the trace as map.yaml.

    Examples:

        gputwin ingest disaggregated_DLRM_trace.csv -o dlrm

        gputwin ingest raw/*.tar.gz -o pai --json

        gputwin ingest sacct.txt --format slurm --strict

        gputwin ingest jobs.csv --map "job_id=id,submit=submitted_at,duration=took,total_gpus=gpus" -o mine

        gputwin ingest jobs.parquet --guess --zone Europe/Berlin -o mine

        gputwin ingest next-month.csv --map-file mine/map.yaml -o next

        gputwin ingest pods.json --usage gpu_util.json --usage gpu_memory.json -o mine
    """
    from gputwin.cli.mapping import mapping_of, show_guess
    from gputwin.traces.ingest import Options, ingest

    mapping = mapping_of(map, map_file, guess, table, zone)
    accept = show_guess(paths, zone, table, yes) if guess and not json else yes
    options = Options(format, strict, lenient, mapping, guess, zone, table, tuple(usage or ()), accept)
    with progress(quiet or json) as step:
        trace = ingest(paths if map_file is None else [*paths, map_file], output, options, step)
    emit(ingest_json(trace.meta, output), json, lambda: show_ingest(trace.meta, output))
