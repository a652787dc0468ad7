"""Whatever a client sends, the API answers as its description says, and never with a fault of the server's."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is a test dependency")
from hypothesis import HealthCheck, Phase, given, settings  # noqa: E402
from schemathesis.checks import not_a_server_error  # noqa: E402
from schemathesis.specs.openapi.checks import response_schema_conformance  # noqa: E402

import gputwin  # noqa: E402
from gputwin.server.app import guarded  # noqa: E402
from gputwin.server.settings import Limits, Settings  # noqa: E402

# More by hand: GPUTWIN_API_EXAMPLES=200 pytest tests/server/test_openapi.py
EXAMPLES = int(os.environ.get("GPUTWIN_API_EXAMPLES", "4"))


@pytest.fixture(scope="module")
def description(tmp_path_factory: pytest.TempPathFactory) -> object:
    root: Path = tmp_path_factory.mktemp("api")
    gputwin.generate("philly", jobs=50).to_trace().save(root / "traces" / "small")
    many = 1e9
    limits = Limits(writes_burst=many, writes_per_second=many, work_seconds=0.5, jobs=1000, waiting_tasks=3)
    app = guarded(Settings(root, names=("testserver",), limits=limits), pages=False)
    return schemathesis.openapi.from_asgi("/api/openapi.json", app)


def test_no_request_is_a_fault(description: schemathesis.BaseSchema) -> None:
    asked: set[tuple[str, str]] = set()

    def ask(case: schemathesis.Case) -> None:
        if "trace" in (case.path_parameters or {}) and case.method != "DELETE":
            case.path_parameters["trace"] = "small"
        if "wait" in (case.query or {}):
            case.query["wait"] = 0
        asked.add((case.method, case.path))
        case.call_and_validate(checks=[not_a_server_error, response_schema_conformance])

    few = settings(
        max_examples=EXAMPLES, deadline=None, phases=[Phase.explicit, Phase.generate], derandomize=True,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    for found in description.get_all_operations():
        few(given(case=found.ok().as_strategy())(ask))()
    assert len(asked) > 30
