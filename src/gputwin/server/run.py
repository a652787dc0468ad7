"""Listening: from settings to a server that stops cleanly."""

from __future__ import annotations

import gc
import logging
import os
import socket
from collections.abc import Callable

import uvicorn

from gputwin.core.errors import UserError
from gputwin.server.app import guarded
from gputwin.server.settings import Settings

_STOP_SECONDS = 2


class _Server(uvicorn.Server):
    """A server that says when it listens."""

    listening: Callable[[], None]

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and say so."""
        await super().startup(sockets)
        if self.started:
            # What is there now stays: the collector, which stops everything, need not look at it again.
            gc.collect()
            gc.freeze()
            self.listening()


def serve(settings: Settings, listening: Callable[[], None]) -> None:
    """Serve until the process is interrupted; `listening` is called when requests can come."""
    bound = _bind(settings)
    # Addresses and headers may carry secrets: requests are not logged.
    logging.getLogger("nicegui").setLevel(logging.ERROR)
    config = uvicorn.Config(
        guarded(settings),
        log_level="info" if os.environ.get("GPUTWIN_DEBUG") else "critical",
        access_log=False,
        server_header=False,
        date_header=True,
        timeout_graceful_shutdown=_STOP_SECONDS,
        timeout_keep_alive=30,
        ws_max_size=1 << 20,
        lifespan="on",
    )
    server = _Server(config)
    server.listening = listening
    server.run(sockets=[bound])


def _bind(settings: Settings) -> socket.socket:
    """Return the socket to listen on; a user error where it is taken or not ours."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((settings.host, settings.port))
    except OSError as error:
        bound.close()
        raise UserError(
            f"cannot listen on {settings.host}:{settings.port} ({error.strerror}); choose another --port or --host"
        ) from None
    return bound
