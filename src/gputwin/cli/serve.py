"""`gputwin serve`: the dashboard and its REST API."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from gputwin.cli.console import Json, Quiet, emit, say


def run(
    port: Annotated[int, typer.Option("--port", min=1, max=65535, help="Port to listen on.")] = 8080,
    host: Annotated[
        str, typer.Option("--host", help="Address to listen on; other than loopback needs a token.")
    ] = "127.0.0.1",
    token: Annotated[
        str | None,
        typer.Option("--token", envvar="GPUTWIN_TOKEN", help="Token that clients must give; 16 characters or more."),
    ] = None,
    workspace: Annotated[
        Path, typer.Option("--workspace", help="Folder of traces and runs; that of a study shows its runs.")
    ] = Path("gputwin-workspace"),
    name: Annotated[
        list[str] | None, typer.Option("--name", help="Host name by which browsers may ask for it; repeatable.")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Serve the dashboard and the REST API (/api/openapi.json) until Ctrl-C.

    Nobody else can reach it unless --host says so, and then only with the token.

    Examples:

        gputwin serve

        gputwin serve --workspace study-out --port 9000

        GPUTWIN_TOKEN=$(openssl rand -hex 16) gputwin serve --host 0.0.0.0 --name twin.example.org
    """
    from gputwin.core.extras import require

    require("nicegui", extra="web")
    from gputwin.server.run import serve
    from gputwin.server.settings import Settings

    settings = Settings(workspace, host, port, token, tuple(name or ())).check()
    started = {"url": settings.url, "workspace": str(workspace), "needs_token": settings.token is not None}

    def listening() -> None:
        if json or not quiet:
            emit(started, json, lambda: say(f"gputwin is at {settings.url} (Ctrl-C stops it)"))
            sys.stdout.flush()

    serve(settings, listening)
