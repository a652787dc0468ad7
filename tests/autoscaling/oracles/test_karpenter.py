"""Every given case of Karpenter's scoring and budget tests, and the table of its design on churn."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gputwin.autoscaling.pools.scoring import churn_of
from tests.autoscaling.oracles import karpenter
from tests.autoscaling.oracles.test_hpa import FOLDER, load

TABLES = ("score_move", "budgets", "savings_ratio")


def cases() -> list[Any]:
    content = load("karpenter.json")
    return [
        pytest.param(table, case, id=f"{table}:{case.get('id', i)}")
        for table in TABLES
        for i, case in enumerate(content.get(table, []))
    ]


@pytest.mark.parametrize(("table", "case"), cases())
def test_case(table: str, case: dict[str, Any]) -> None:
    assert karpenter.agrees(table, case), karpenter.run(table, case)


def test_no_case_is_left_out(reference: Path) -> None:
    assert len(cases()) == 29


def test_churn_of_three_families(reference: Path) -> None:
    """The design enumerates c7i, m7i and r7i from medium to 4xlarge at on-demand prices; sizes double in price."""
    large = {"c7i": 0.08925, "m7i": 0.1008, "r7i": 0.1323}
    prices = [price * size for price in large.values() for size in (0.5, 1, 2, 4, 8)]
    table = json.loads((FOLDER / "karpenter.json").read_text())["published_k_table"]
    ours = [
        {"k": row["k"], "approved_replace_pairs": churn.pairs, "max_churn_chain": churn.longest}
        for row in table
        for churn in [churn_of(prices, row["k"])]
    ]
    assert ours == table
