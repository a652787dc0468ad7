"""Answers about runs are kept as bytes, and pages cost nothing once they are sent."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from gputwin.server.ready import Ready
from gputwin.server.security import Message, Receive, Scope, Send
from gputwin.simulation.result import RUN_FILE


class Counted:
    """An application that says how often it was asked."""

    def __init__(self, status: int = 200) -> None:
        self.asked = 0
        self.status = status

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.asked += 1
        await send({"type": "http.response.start", "status": self.status, "headers": []})
        await send({"type": "http.response.body", "body": f"answer {self.asked}".encode()})


def ask(app: Ready, path: str, query: bytes = b"", **headers: bytes) -> tuple[int, bytes, dict[bytes, bytes]]:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        return {"type": "http.request", "body": b""}

    given = [(name.replace("_", "-").encode(), value) for name, value in headers.items()]
    scope = {"type": "http", "method": "GET", "path": path, "query_string": query, "headers": given}
    asyncio.run(app(scope, receive, send))
    body = b"".join(m["body"] for m in sent[1:])
    return sent[0]["status"], body, dict(sent[0]["headers"])


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    (tmp_path / "abc").mkdir()
    (tmp_path / "abc" / RUN_FILE).write_text("{}")
    return tmp_path


def test_a_run_is_asked_once_for_each_address_and_query(runs: Path) -> None:
    inner = Counted()
    app = Ready(inner, runs)
    first = ask(app, "/api/runs/abc/jobs", b"limit=5")
    assert first[:2] == (200, b"answer 1")
    assert ask(app, "/api/runs/abc/jobs", b"limit=5") == first
    assert ask(app, "/api/runs/abc/jobs", b"limit=6")[1] == b"answer 2"


def test_who_has_the_answer_gets_304_without_a_body(runs: Path) -> None:
    app = Ready(Counted(), runs)
    tag = ask(app, "/api/runs/abc/series")[2][b"etag"]
    assert ask(app, "/api/runs/abc/series", if_none_match=tag)[:2] == (304, b"")
    assert ask(app, "/api/runs/abc/series", if_none_match=b'"other"')[0] == 200


def test_a_run_that_was_removed_or_made_again_is_not_answered_from_memory(runs: Path) -> None:
    inner = Counted()
    app = Ready(inner, runs)
    ask(app, "/api/runs/abc/series")
    (runs / "abc" / RUN_FILE).unlink()
    assert ask(app, "/api/runs/abc/series")[1] == b"answer 2"
    (runs / "abc" / RUN_FILE).write_text("{ }")
    assert ask(app, "/api/runs/abc/series")[1] == b"answer 3"


def test_errors_lists_and_downloads_are_not_kept(runs: Path) -> None:
    refused = Counted(422)
    app = Ready(refused, runs)
    assert [ask(app, "/api/runs/abc/jobs")[0] for _ in range(2)] == [422, 422]
    inner = Counted()
    app = Ready(inner, runs)
    for path in ("/api/runs", "/api/runs/abc/download", "/api/runs/abc/explain", "/api/runs/../x/series"):
        ask(app, path)
        ask(app, path)
    assert refused.asked == 2
    assert inner.asked == 8


def test_no_more_memory_is_used_than_allowed(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gputwin.server.ready._MOST_BYTES", 30)
    inner = Counted()
    app = Ready(inner, runs)
    for limit in range(6):
        ask(app, "/api/runs/abc/jobs", f"limit={limit}".encode())
    assert ask(app, "/api/runs/abc/jobs", b"limit=5")[1] == b"answer 6"
    assert ask(app, "/api/runs/abc/jobs", b"limit=0")[1] == b"answer 7"


def test_a_page_that_was_sent_leaves_no_loop_behind(tmp_path: Path) -> None:
    pytest.importorskip("nicegui", reason="the dashboard needs the extra 'web'")
    from nicegui import Client
    from starlette.testclient import TestClient

    from gputwin.server.app import guarded
    from gputwin.server.settings import Settings
    from tests.server.conftest import BASE

    with TestClient(guarded(Settings(tmp_path)), base_url=BASE) as client:
        for _ in range(3):
            assert client.get("/").status_code == 200
        loops = [c.outbox._should_stop for c in Client.instances.values()]
        assert len(loops) >= 3
        assert all(loops)
