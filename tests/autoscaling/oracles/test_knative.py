"""Every given sequence of Knative's autoscaler tests, step by step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.autoscaling.oracles import knative
from tests.autoscaling.oracles.test_hpa import cases


@pytest.mark.parametrize(("table", "case"), cases("knative_kpa.json"))
def test_sequence(table: str, case: dict[str, Any]) -> None:
    assert knative.agrees(case), knative.run(case)


def test_no_case_is_left_out(reference: Path) -> None:
    assert len(cases("knative_kpa.json")) == 24
