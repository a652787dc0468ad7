"""Answers about runs as ready bytes: a run never changes, so what was answered once is sent again without any work.

Kept are answers to reads below /api/runs/RUN, by address and query, as long as the run's file is the one they were made
from; the oldest go when they need too much memory. Each carries an ETag, and a client that has it gets 304.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from gputwin.server.security import Application, Message, Receive, Scope, Send
from gputwin.simulation.result import RUN_FILE

_ADDRESS = re.compile(r"/api/runs/([a-z0-9][a-z0-9-]{0,63})/(?:jobs|series|tenants|cluster|nodes/\d{1,8})")
_MOST_BYTES = 64 << 20
_LARGEST = 8 << 20


@dataclass(frozen=True)
class Answer:
    """The bytes of an answer, and when the run it is about was written, ns."""

    made_from: int
    body: bytes
    tag: bytes


class Ready:
    """An ASGI application that answers from memory what another one answered before."""

    def __init__(self, app: Application, runs: Path) -> None:
        self.app = app
        self._runs = runs
        self._answers: OrderedDict[tuple[str, bytes], Answer] = OrderedDict()
        self._bytes = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a read of a run, from memory where it is there; hand on everything else."""
        is_read = scope["type"] == "http" and scope["method"] == "GET"
        found = _ADDRESS.fullmatch(scope["path"]) if is_read else None
        written = self._written(found[1]) if found else None
        if written is None:
            await self.app(scope, receive, send)
            return
        key = (scope["path"], scope["query_string"])
        answer = self._answers.get(key)
        if answer is not None and answer.made_from == written:
            self._answers.move_to_end(key)
        else:
            answer = await self._ask(scope, receive, send, written)
            if answer is None:
                return
            self._keep(key, answer)
        await _send(scope, send, answer)

    def _written(self, run: str) -> int | None:
        try:
            return (self._runs / run / RUN_FILE).stat().st_mtime_ns
        except OSError:
            return None

    async def _ask(self, scope: Scope, receive: Receive, send: Send, written: int) -> Answer | None:
        """Return what the application answers; an error goes straight to the client, and None is returned."""
        parts: list[bytes] = []
        is_kept = False

        async def caught(message: Message) -> None:
            nonlocal is_kept
            if message["type"] == "http.response.start":
                is_kept = message["status"] == 200
            if not is_kept:
                await send(message)
            elif message["type"] == "http.response.body":
                parts.append(bytes(message.get("body", b"")))

        await self.app(scope, receive, caught)
        if not is_kept:
            return None
        body = b"".join(parts)
        return Answer(written, body, b'"' + sha256(body).hexdigest()[:32].encode() + b'"')

    def _keep(self, key: tuple[str, bytes], answer: Answer) -> None:
        old = self._answers.pop(key, None)
        self._bytes -= 0 if old is None else len(old.body)
        if len(answer.body) > _LARGEST:
            return
        self._answers[key] = answer
        self._bytes += len(answer.body)
        while self._bytes > _MOST_BYTES:
            _, oldest = self._answers.popitem(last=False)
            self._bytes -= len(oldest.body)


async def _send(scope: Scope, send: Send, answer: Answer) -> None:
    known = next((value for name, value in scope["headers"] if name == b"if-none-match"), b"")
    is_same = answer.tag in (tag.strip() for tag in known.split(b","))
    headers = [(b"etag", answer.tag), (b"cache-control", b"private, no-cache")]
    body = b"" if is_same else answer.body
    if not is_same:
        headers += [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 304 if is_same else 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})
