"""`gputwin traces`: the public traces, fetched and verified."""

from __future__ import annotations

import typer

app = typer.Typer(help="Public traces: list, fetch, verify.", no_args_is_help=True)
