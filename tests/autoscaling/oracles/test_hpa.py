"""Every given case of the HPA's published test tables: replica calculator, behaviour, controller."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.autoscaling.oracles import hpa
from tests.conftest import REFERENCE

FOLDER = REFERENCE / "oracles" / "autoscaling"


def load(file: str) -> dict[str, Any]:
    path = FOLDER / file
    return json.loads(path.read_text()) if path.is_file() else {}


def cases(file: str, *tables: str) -> list[Any]:
    content = load(file)
    names = tables or [name for name, value in content.items() if isinstance(value, list)]
    return [pytest.param(table, case, id=f"{table}:{case['id']}") for table in names for case in content.get(table, [])]


@pytest.mark.parametrize(("table", "case"), cases("hpa_replica_calculator.json"))
def test_replica_calculator(table: str, case: dict[str, Any]) -> None:
    assert hpa.agrees_calculator(case), hpa.run_calculator(case)


@pytest.mark.parametrize(("table", "case"), cases("hpa_behavior.json"))
def test_behavior(table: str, case: dict[str, Any]) -> None:
    assert hpa.agrees_behavior(table, case), hpa.run_behavior(table, case)


@pytest.mark.parametrize(("table", "case"), cases("hpa_controller.json"))
def test_controller(table: str, case: dict[str, Any]) -> None:
    assert hpa.agrees_controller(case), hpa.run_controller(case)


def test_no_case_is_left_out(reference: Path) -> None:
    counts = [len(cases(f"hpa_{name}.json")) for name in ("replica_calculator", "behavior", "controller")]
    assert counts == [60, 60, 77]
