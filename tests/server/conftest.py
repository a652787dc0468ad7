"""A server on a folder of its own, with one small trace in it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the dashboard needs the extra 'web'")
from starlette.testclient import TestClient

import gputwin
from gputwin.server.app import guarded
from gputwin.server.settings import Limits, Settings

BASE = "http://127.0.0.1:8080"
RULES = {"backfill": "greedy"}
CLUSTER = "homogeneous:10x8"


@pytest.fixture(scope="session")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a synthetic trace called `small`."""
    root = tmp_path_factory.mktemp("workspace")
    gputwin.generate("pai2020", jobs=400).to_trace().save(root / "traces" / "small")
    return root


@pytest.fixture(scope="session")
def client(workspace: Path) -> Iterator[TestClient]:
    settings = Settings(workspace, limits=Limits(writes_burst=10_000, writes_per_second=10_000))
    with TestClient(guarded(settings, pages=False), base_url=BASE, raise_server_exceptions=True) as made:
        yield made


def ended(client: TestClient, task: dict[str, Any], seconds: float = 120.0) -> dict[str, Any]:
    """Return the task when it has ended."""
    until = time.monotonic() + seconds
    while task["state"] in ("waiting", "running"):
        assert time.monotonic() < until, task
        time.sleep(0.05)
        task = client.get(f"/api/tasks/{task['id']}").json()
    return task


@pytest.fixture(scope="session")
def run(client: TestClient) -> str:
    """The id of a finished run of the trace `small`."""
    started = client.post("/api/runs", json={"trace": "small", "cluster": CLUSTER, "rules": RULES})
    assert started.status_code == 202, started.text
    if started.json()["task"] is not None:
        assert ended(client, started.json()["task"])["state"] == "done"
    return str(started.json()["run"])
