"""How the server is set up: where it listens, who may ask, and how much one request may cost."""

from __future__ import annotations

import ipaddress
import secrets
import socket
from dataclasses import dataclass, field
from pathlib import Path

from gputwin.core.errors import UserError

MIB = 1 << 20
GIB = 1 << 30


@dataclass(frozen=True)
class Limits:
    """What requests and child processes may use."""

    upload_bytes: int = 200 * MIB
    body_bytes: int = MIB
    upload_files: int = 20
    memory_bytes: int = 8 * GIB
    """Address space of a child process; one that parses an upload has half of it."""
    written_bytes: int = 8 * GIB
    upload_seconds: float = 600.0
    work_seconds: float = 3600.0
    running_tasks: int = 2
    waiting_tasks: int = 20
    jobs: int = 2_000_000
    """Jobs of a generated trace."""
    nodes: int = 100_000
    reads_per_second: float = 1000.0
    writes_per_second: float = 10.0
    writes_burst: float = 60.0
    logins_per_minute: float = 10.0
    requests_at_once: int = 300


@dataclass(frozen=True)
class Settings:
    """One server. Without a token it may listen on this machine's loopback address only."""

    workspace: Path
    host: str = "127.0.0.1"
    port: int = 8080
    token: str | None = field(default=None, repr=False)
    names: tuple[str, ...] = ()
    """Further host names by which browsers may ask for it."""
    limits: Limits = field(default_factory=Limits)
    key: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)
    """Signs sessions; made anew at each start."""

    def check(self) -> Settings:
        """Return the settings; a user error where the server would be open to others without a token."""
        if self.token is not None and len(self.token) < 16:
            raise UserError("the token is too short; give 16 characters or more, as from: openssl rand -hex 16")
        if not is_loopback(self.host) and self.token is None:
            raise UserError(
                f"listening on {self.host} would let others in; give a token (--token, or GPUTWIN_TOKEN), "
                "or listen on 127.0.0.1"
            )
        return self

    def is_own_host(self, name: str) -> bool:
        """Return whether a browser that asks for the host `name` (without its port) means this server.

        A page of somebody else whose name was made to point here (DNS rebinding) comes with its own name.
        """
        if name in self.names or name in ("localhost", "127.0.0.1", "::1"):
            return True
        if is_loopback(self.host):
            return False
        return name in (self.host, socket.gethostname()) or _is_address(name)

    @property
    def url(self) -> str:
        """Return the address to open."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}/"


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach a server that listens on `host`."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
