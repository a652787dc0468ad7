"""`gputwin traces`: the public traces, listed, fetched and verified."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gputwin.cli.console import Json, Quiet, emit, say, table

if TYPE_CHECKING:
    from gputwin.traces.fetch import Progress

app = typer.Typer(
    help="""Public traces: what there is, downloads with resume, checksums.

    Examples:

        gputwin traces list

        gputwin traces fetch dlrm2025 -o raw/dlrm

        gputwin traces verify raw/dlrm
    """,
    no_args_is_help=True,
)


@app.command("list")
def list_traces(json: Json = False, quiet: Quiet = False) -> None:
    """List the public traces: what, how large, under which terms, and what to cite.

    Examples:

        gputwin traces list

        gputwin traces list --json
    """
    from gputwin.core.units import format_bytes
    from gputwin.traces.catalog import CATALOG

    entries = list(CATALOG)
    data = [
        {
            "name": t.name,
            "title": t.title,
            "format": t.format,
            "files": len(t.files),
            "size_bytes": t.size_bytes,
            "files_with_checksum": sum(f.sha256 is not None for f in t.files),
            "licence": t.licence,
            "citation": t.citation,
            "homepage": t.homepage,
        }
        for t in entries
    ]

    def render() -> None:
        rows = [[t.name, format_bytes(t.size_bytes), t.title, t.licence, t.citation] for t in entries]
        table("Public traces", ["name", "size", "what", "licence", "cite"], rows)
        say("Fetch one with: gputwin traces fetch NAME")

    emit({"traces": data}, json, render)


@app.command("fetch")
def fetch_trace(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name that `gputwin traces list` shows.")],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Folder to fetch into; one of the trace's name when not given."),
    ] = None,
    mirror: Annotated[
        str | None,
        typer.Option("--from", metavar="URL", help="Address of a mirror that has the files under their names."),
    ] = None,
    packed: Annotated[bool, typer.Option("--packed", help="Leave archives as they are.")] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Download a public trace, check its sums and unpack it; run it again to go on where it stopped.

    Examples:

        gputwin traces fetch dlrm2025 -o raw/dlrm

        gputwin traces fetch pai2020 --from https://mirror.example.org/pai --json
    """
    from gputwin.traces.fetch import fetch

    with _downloads(quiet or json) as progress:
        result = fetch(name, output or Path(name), progress=progress, base_url=mirror, unpack=not packed)
    trace = result.trace
    data = {
        "name": trace.name,
        "format": trace.format,
        "licence": trace.licence,
        "citation": trace.citation,
        "homepage": trace.homepage,
        "directory": str(result.folder),
        "files": [
            {
                "name": f.file.name,
                "path": str(f.path),
                "sha256": f.sha256,
                "checksum": "published" if f.file.sha256 else "recorded",
                "was_there": f.was_there,
                "unpacked": [str(p) for p in f.unpacked],
            }
            for f in result.files
        ],
    }

    def render() -> None:
        for file in result.files:
            say(file.line())
        say(f"licence: {trace.licence}")
        say(f"cite: {trace.citation} ({trace.homepage})")
        say(f"next: gputwin ingest {result.folder} -o {trace.name}-trace")

    emit(data, json, render)


@app.command("verify")
def verify_files(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="A fetched folder, or one file.")],
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compare files with their published checksums, or with those recorded at the first download.

    Exit code 2 where a file differs. Files of which no sum is known are listed as such.

    Examples:

        gputwin traces verify raw/dlrm

        gputwin traces verify pai_job_table.csv --json
    """
    from gputwin.core.errors import UserError
    from gputwin.traces.checksums import CheckStatus, verify

    checked = verify(path)
    counts = {status.value: sum(v.status is status for v in checked) for status in CheckStatus}
    data = {
        **{f"files_{status}": count for status, count in counts.items()},
        "files": [
            {
                "path": str(v.path),
                "status": v.status.value,
                "sha256": v.actual,
                "expected_sha256": v.expected,
                "known_from": v.source or None,
            }
            for v in checked
        ],
    }

    def render() -> None:
        rows = [[str(v.path), v.status.value, v.source or "no checksum is known"] for v in checked]
        table("Checksums", ["file", "status", "known from"], rows)

    emit(data, json, render)
    if wrong := [v for v in checked if v.status is CheckStatus.WRONG]:
        others = f" and {len(wrong) - 1} more" if len(wrong) > 1 else ""
        raise UserError(f"{wrong[0].path}{others}: wrong checksum; delete what is wrong and fetch the trace again")


@contextmanager
def _downloads(quiet: bool) -> Iterator[Progress | None]:
    """Yield a function that shows a bar per file on stderr; None where quiet or piped."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        tasks = {}

        def show(name: str, here: int, total: int | None) -> None:
            if name not in tasks:
                tasks[name] = bar.add_task(name)
            bar.update(tasks[name], completed=here, total=total, visible=here != total)

        yield show
