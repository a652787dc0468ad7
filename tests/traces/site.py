"""A file server on this machine that can break off, forget ranges, and change its files."""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from gputwin.core.errors import UserError
from gputwin.traces.catalog import CATALOG, PublicTrace, TraceFile
from gputwin.traces.fetch import FetchResult, fetch

SIZE = 3 << 20
JOBS = bytes(i * i * 31 % 251 for i in range(1 << 10)) * (SIZE >> 10)


def sum_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@dataclass
class Site:
    """What the server has, how it misbehaves, and what it saw."""

    files: dict[str, bytes] = field(default_factory=dict)
    redirects: dict[str, str] = field(default_factory=dict)
    failures: list[int] = field(default_factory=list)
    cuts: list[int] = field(default_factory=list)
    ranges: bool = True
    validators: bool = True
    lengths: bool = True
    url: str = ""
    asked: list[tuple[str, str | None]] = field(default_factory=list)
    sent: int = 0

    def publish(self, name: str, data: bytes, *, checksum: str | None = "right", **known: Any) -> None:
        """Put one file on the site, and in the catalogue a trace of it called `test`."""
        self.files[name] = data
        checksum = sum_of(data) if checksum == "right" else checksum
        file = TraceFile(name, f"{self.url}/{name}", len(data), checksum, **known)
        trace = PublicTrace("test", "A test", "none", "nobody", "https://example.org/test", "swf", (file,))
        CATALOG._entries["test"] = trace


class Handler(BaseHTTPRequestHandler):
    site: Site

    def do_GET(self) -> None:
        site, wanted = self.site, self.headers.get("Range")
        name = self.path.lstrip("/")
        site.asked.append((name, wanted))
        if site.failures:
            return self.send_error(site.failures.pop(0))
        if name in site.redirects:
            self.send_response(302)
            self.send_header("Location", site.redirects[name])
            return self.end_headers()
        if name not in site.files:
            return self.send_error(404)
        self.send(site.files[name], wanted)

    def send(self, data: bytes, wanted: str | None) -> None:
        site, tag, start = self.site, f'"{sum_of(data)[:16]}"', 0
        if wanted and site.ranges and self.headers.get("If-Range", tag) == tag:
            start = int(re.fullmatch(r"bytes=(\d+)-", wanted)[1])  # type: ignore[index]
        if start >= len(data) > 0:
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{len(data)}")
            return self.end_headers()
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        if site.lengths:
            self.send_header("Content-Length", str(len(data) - start))
        if site.validators:
            self.send_header("ETag", tag)
        self.end_headers()
        body = data[start:]
        if site.cuts:
            body = body[: site.cuts.pop(0)]
            self.close_connection = True
        self.wfile.write(body)
        site.sent += len(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def serve() -> Iterator[Site]:
    """Yield a site that is up; it and its trace go away afterwards."""
    site = Site()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("SiteHandler", (Handler,), {"site": site}))
    server.handle_error = lambda *_: None  # type: ignore[method-assign]  # clients that hang up are part of the tests
    site.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield site
    finally:
        CATALOG._entries.pop("test", None)
        server.shutdown()
        thread.join()
        server.server_close()


def get(into: Path, **options: Any) -> FetchResult:
    return fetch("test", into, **({"sleep": lambda seconds: None} | options))


def part(folder: Path, name: str = "jobs.csv") -> Path:
    return folder / ".downloads" / f"{name}.part"


def visible(folder: Path) -> set[str]:
    return {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file() and ".downloads" not in p.parts}


def refusal(into: Path, **options: Any) -> str:
    """Return the one line with which the fetch is refused."""
    with pytest.raises(UserError) as caught:
        get(into, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)
