"""The worked sequences of docs/autoscaling-rules.md come out as written there, and its counts are right."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from gputwin.autoscaling.decisions.interface import Autoscaler, Observation
from gputwin.autoscaling.decisions.registry import RULES, rule_from_plain
from tests.conftest import REPOSITORY

PAGE = (REPOSITORY / "docs" / "autoscaling-rules.md").read_text(encoding="utf-8")
SEQUENCES = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)]
FIELDS = ("queue_length", "in_flight", "starting")


@pytest.mark.parametrize("sequence", SEQUENCES, ids=[entry["rule"]["rule"] for entry in SEQUENCES])
def test_worked_sequence(sequence: dict[str, Any]) -> None:
    autoscaler, size = Autoscaler(rule_from_plain(sequence["rule"])), sequence["start"]
    for time_s, seen, expected in sequence["steps"]:
        fields = {key: value for key, value in seen.items() if key in FIELDS}
        metrics = {key: float(value) for key, value in seen.items() if key not in FIELDS}
        size = autoscaler.decide(Observation(float(time_s), size, size, metrics=metrics, **fields)).replicas
        assert size == expected, time_s


def test_every_rule_has_a_worked_sequence() -> None:
    # Those two read forecasts; their sequences are in tests/autoscaling/decisions/test_by_hand.py.
    assert {entry["rule"]["rule"] for entry in SEQUENCES} == set(RULES.names()) - {"predictive", "hybrid"}


def test_the_python_example_runs() -> None:
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names: dict[str, Any] = {}
    exec(block, names)
    assert names["decision"].replicas == 4
    assert names["decision"].rule == "hpa:ScaleUpLimit"


def test_the_counts_of_published_cases_are_those_of_the_tables(reference: Path) -> None:
    folder = reference / "oracles" / "autoscaling"
    counts = []
    for file, tables in (
        ("hpa_replica_calculator", ["cases"]),
        ("hpa_behavior", []),
        ("hpa_controller", ["cases"]),
        ("knative_kpa", ["cases"]),
        ("keda", ["scaled_job_strategies", "scaled_object"]),
        ("karpenter", ["score_move", "budgets", "savings_ratio"]),
    ):
        content = json.loads((folder / f"{file}.json").read_text())
        names = tables or [name for name, value in content.items() if isinstance(value, list)]
        counts.append(sum(len(content[name]) for name in names))
    stated = [(int(a), int(b)) for a, b in re.findall(r"^\| K[^|]*\| (\d+) \| (\d+) \|$", PAGE, re.MULTILINE)]
    assert stated == [(count, count) for count in counts]
