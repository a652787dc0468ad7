"""Who may ask: hosts, other sites' pages, tokens, lengths, rates; and what uploads may do."""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from gputwin.core.errors import UserError
from gputwin.server.app import guarded
from gputwin.server.security import Rates, is_session, new_session
from gputwin.server.service import file_name
from gputwin.server.settings import Limits, Settings
from tests.server.conftest import BASE, CLUSTER, ended

TOKEN = "correct-horse-battery"


@pytest.fixture
def closed(tmp_path: Path) -> Iterator[TestClient]:
    """A server that asks for a token."""
    settings = Settings(tmp_path, host="0.0.0.0", token=TOKEN, limits=Limits(upload_bytes=2000, body_bytes=1000))
    with TestClient(guarded(settings, pages=False), base_url=BASE, follow_redirects=False) as made:
        yield made


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.7", "::", "twin.example.org"])
def test_another_address_needs_a_token(host: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="token"):
        Settings(tmp_path, host=host).check()
    with pytest.raises(UserError, match="too short"):
        Settings(tmp_path, host=host, token="short").check()
    Settings(tmp_path, host=host, token=TOKEN).check()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1"])
def test_loopback_needs_none(host: str, tmp_path: Path) -> None:
    assert Settings(tmp_path, host=host).check().token is None


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8080", "127.0.0.1.evil.example", "", "192.0.2.7"])
def test_a_name_that_was_made_to_point_here_is_refused(client: TestClient, host: str) -> None:
    assert client.get("/api/health", headers={"host": host}).status_code == 421


@pytest.mark.parametrize("host", ["localhost:8080", "127.0.0.1", "[::1]:8080", "LOCALHOST"])
def test_own_names_are_answered(client: TestClient, host: str) -> None:
    assert client.get("/api/health", headers={"host": host}).status_code == 200


def test_pages_of_other_sites_can_neither_write_nor_read(client: TestClient) -> None:
    body = {"name": "philly", "jobs": 10}
    own, other = {"origin": BASE}, {"origin": "https://evil.example"}
    assert client.post("/api/traces/generate", json=body, headers=other).status_code == 403
    assert client.post("/api/traces/generate", json=body, headers={"origin": "null"}).status_code == 403
    assert client.post("/api/traces/generate", json=body, headers={"sec-fetch-site": "cross-site"}).status_code == 403
    assert client.get("/api/traces", headers={"sec-fetch-site": "cross-site"}).status_code == 403
    assert client.get("/api/traces", headers={"sec-fetch-site": "same-origin", **own}).status_code == 200
    visit = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    assert client.get("/api/traces", headers=visit).status_code == 403
    assert client.get("/login", headers=visit, follow_redirects=False).status_code == 303


def test_a_websocket_of_another_site_is_refused(client: TestClient) -> None:
    with (
        pytest.raises(WebSocketDisconnect) as refused,
        client.websocket_connect("/_nicegui_ws/socket.io/", headers={"origin": "https://evil.example"}),
    ):
        pass
    assert refused.value.code == 1008


def test_nothing_is_told_without_the_token(closed: TestClient) -> None:
    for path in ("/api/traces", "/api/openapi.json", "/metrics", "/", "/api/health"):
        assert closed.get(path).status_code == 401, path
    assert closed.get("/", headers={"accept": "text/html"}).headers["location"] == "/login"
    for wrong in ("Bearer wrong", f"Bearer {TOKEN}x", f"Basic {TOKEN}", "Bearer"):
        assert closed.get("/api/health", headers={"authorization": wrong}).status_code == 401
    assert closed.get(f"/api/health?token={TOKEN}").status_code == 401
    assert closed.get("/api/health", headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200


def test_signing_in_gives_a_session_that_scripts_cannot_read(closed: TestClient) -> None:
    assert closed.post("/login", data={"token": "no"}).status_code == 401
    answer = closed.post("/login", data={"token": TOKEN})
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "samesite=strict" in cookie.lower()
    assert TOKEN not in cookie
    assert closed.get("/api/health").status_code == 200
    assert [closed.post("/login", data={"token": "no"}).status_code for _ in range(12)][-1] == 429


def test_a_session_of_another_server_is_no_session(tmp_path: Path) -> None:
    ours, theirs = (Settings(tmp_path, token=TOKEN) for _ in range(2))
    assert is_session(new_session(ours), ours)
    assert not is_session(new_session(theirs), ours)
    until, rest = new_session(ours).split(".", 1)
    assert not is_session(f"{int(until) + 9}.{rest}", ours)


def test_long_requests_are_refused(closed: TestClient) -> None:
    headers = {"authorization": f"Bearer {TOKEN}"}
    files = {"files": ("a.csv", "x" * 3000, "text/csv")}
    assert closed.post("/api/traces", files=files, headers=headers).status_code == 413
    body = {"trace": "a", "rules": {"order": "x" * 2000}}
    assert closed.post("/api/runs", json=body, headers=headers).status_code == 413

    def unannounced() -> Iterator[bytes]:
        yield from (b"x" * 500 for _ in range(10))

    assert closed.post("/api/runs", content=unannounced(), headers=headers).status_code == 413


def test_who_asks_too_often_waits() -> None:
    rates = Rates(per_second=0.001, burst=3)
    assert [rates.take("a") for _ in range(5)] == [True, True, True, False, False]
    assert rates.take("b")


def test_answers_carry_headers_that_keep_pages_in(client: TestClient) -> None:
    headers = client.get("/api/traces").headers
    assert "connect-src 'self'" in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"
    assert "server" not in headers


@pytest.mark.parametrize(
    "path",
    ["/api/traces/..%2f..%2fetc", "/api/runs/../../etc/passwd", "/api/traces/%2e%2e", "/api/runs/UPPER", "/api/traces/a b",
     "/api/runs/.hidden/download", "/assets/../settings.py", "/assets/..%2f..%2fsettings.py"],
)  # fmt: skip
def test_no_address_leads_out_of_the_workspace(client: TestClient, path: str) -> None:
    assert client.get(path).status_code in (404, 422)


@pytest.mark.parametrize(
    "rules",
    [{"policies": ["/etc/passwd"]}, {"prediction": "/etc/passwd"}, {"power": {"carbon": "/etc/passwd"}}, {"trace": "/etc"},
     {"format": "swf"}],
)  # fmt: skip
def test_a_scenario_cannot_name_files(client: TestClient, rules: dict[str, object]) -> None:
    answer = client.post("/api/runs", json={"trace": "small", "rules": rules})
    assert answer.status_code == 400
    assert "rules." in answer.json()["detail"]
    assert client.post("/api/runs", json={"trace": "small", "cluster": "/etc/passwd"}).status_code == 400
    assert client.post("/api/runs", json={"trace": "small", "cluster": "homogeneous:999999x8"}).status_code == 400


def test_names_of_uploads_are_names_only() -> None:
    assert file_name("../../etc/cron.d/jobs.csv") == "jobs.csv"
    assert file_name("C:\\temp\\jobs.csv") == "jobs.csv"
    assert file_name("<img src=x>.csv") == "_img_src_x_.csv"
    for refused in ("evil.html", "run.py", "jobs.csv.exe", "", ".csv.", ".gz"):
        with pytest.raises(UserError):
            file_name(refused)


def _upload(client: TestClient, name: str, data: bytes, **options: str) -> dict[str, object]:
    started = client.post("/api/traces", files={"files": (name, data)}, data=options)
    assert started.status_code == 202, started.text
    return ended(client, started.json())


def test_archives_that_explode_or_climb_are_refused(client: TestClient, workspace: Path) -> None:
    packed = io.BytesIO()
    with (
        zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("jobs.csv", "w", force_zip64=True) as member,
    ):
        for _ in range(1100):
            member.write(b"\0" * (1 << 20))
    found = _upload(client, "bomb.zip", packed.getvalue())
    assert found["state"] == "failed"
    assert "expands too far" in str(found["error"])
    climbing = io.BytesIO()
    with tarfile.open(fileobj=climbing, mode="w") as tar:
        info = tarfile.TarInfo("../../escaped.csv")
        info.size = 3
        tar.addfile(info, io.BytesIO(b"a,b"))
    found = _upload(client, "climb.tar", climbing.getvalue())
    assert found["state"] == "failed"
    assert not list(workspace.parent.rglob("escaped.csv"))
    assert not list((workspace / "scratch").iterdir())


def test_absurd_numbers_are_refused_or_counted(client: TestClient) -> None:
    log = "id,team,at,took,gpus\n1,a,1e308,1e308,8\n2,b,-1e308,nan,1e308\n3,c,0,10,1\n"
    found = _upload(client, "odd.csv", log.encode(), map="job_id=id,tenant=team,submit=at,duration=took,gpus=gpus")
    if found["state"] == "failed":
        assert "internal error" not in str(found["error"])
        return
    told = client.get(f"/api{found['page']}/quality").json()
    assert told["findings"]
    assert client.get(f"/api{found['page']}/analysis", params={"wait": 60}).status_code in (200, 400)


def test_a_task_that_needs_too_much_ends_alone(workspace: Path) -> None:
    settings = Settings(workspace, limits=Limits(work_seconds=0.3))
    with TestClient(guarded(settings, pages=False), base_url=BASE) as client:
        started = client.post("/api/traces/generate", json={"name": "pai2020", "jobs": 500_000}).json()
        task = ended(client, started)
        assert task["state"] == "failed"
        assert "longer than" in task["error"]
        assert client.get("/api/health").status_code == 200


def test_a_task_can_be_cancelled(client: TestClient) -> None:
    started = client.post("/api/traces/generate", json={"name": "pai2020", "jobs": 1_000_000}).json()
    client.post(f"/api/tasks/{started['id']}/cancel")
    assert ended(client, started)["state"] == "cancelled"
    assert client.post("/api/tasks/0123456789abcdef/cancel").status_code == 404


@pytest.mark.parametrize(
    "rules",
    [
        {"fairness": {"policy": "kueue-fair", "queues": "/etc/passwd"}},
        {"faults": {"log": "/etc/passwd"}},
        {"interference": "/etc/passwd"},
        {"interference": {"table": "/etc/passwd"}},
    ],
)
def test_rules_name_no_files_of_this_machine(client: TestClient, rules: dict[str, object]) -> None:
    refused = client.post("/api/runs", json={"trace": "small", "cluster": CLUSTER, "rules": rules})
    assert refused.status_code == 400
    assert "a file cannot be named here" in refused.json()["detail"]
