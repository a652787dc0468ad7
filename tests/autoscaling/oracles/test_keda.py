"""Every given case of KEDA's executor tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.autoscaling.oracles import keda
from tests.autoscaling.oracles.test_hpa import cases

TABLES = ("scaled_job_strategies", "scaled_object")


@pytest.mark.parametrize(("table", "case"), cases("keda.json", *TABLES))
def test_executor(table: str, case: dict[str, Any]) -> None:
    assert keda.agrees(table, case), keda.run(table, case)


def test_no_case_is_left_out(reference: Path) -> None:
    assert len(cases("keda.json", *TABLES)) == 34
