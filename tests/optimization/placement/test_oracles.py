"""Published packing instances: the optimum is found and proven, and the bound is never above it."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from gputwin.optimization.placement.problem import InstanceGroup, NodeType, Problem
from gputwin.optimization.placement.solve import place
from tests.optimization.placement.validator import violations

SETS = {"Falkenauer_t": 20, "Falkenauer_u": 20, "Hard28": 28, "HARD": 10, "N1C1W1": 20, "N2C2W1": 12, "Schwerin": 10}
"""The families of the 120 one-dimensional instances and how many of each there are."""

DEAR = {"Hard28": ("BPP119", "BPP13", "BPP181", "BPP485", "BPP900"), "HARD": ("0", "3", "6", "9")}
"""Of families that take minutes, the instances tried here; `benchmarks.packing` proves all of them."""


def one_dimensional(instance: dict[str, Any]) -> Problem:
    items = Counter(instance["items"])
    groups = tuple(InstanceGroup(str(size), ((size,),), n) for size, n in sorted(items.items(), reverse=True))
    return Problem(("size",), groups, (NodeType("bin", (instance["capacity"],)),))


@pytest.mark.parametrize("family", SETS)
def test_the_optimum_of_one_dimensional_instances_is_proven(reference: Path, family: str) -> None:
    data = json.loads((reference / "oracles" / "packing" / "bpp_1d_optima.json").read_text())["instances"]
    chosen = [i for i in data if i["name"].startswith(family)]
    assert len(data) == 120
    assert len(chosen) == SETS[family]
    for instance in (i for i in chosen if i["name"].endswith(DEAR.get(family, ""))):
        problem = one_dimensional(instance)
        result = place(problem, method="columns")
        assert result.packing is not None
        assert violations(problem, result.packing) == []
        assert (result.bound, result.packing.nodes) == (instance["optimum"],) * 2, instance["name"]


def vector_problem(case: dict[str, Any]) -> Problem:
    kinds = case.get("bin_types") or [
        {"capacity": case["capacity"], "cost": case.get("cost_per_bin", 1), "supply": case.get("max_bins")}
    ]
    types = tuple(NodeType(f"type {i}", tuple(k["capacity"]), k["cost"], k.get("supply")) for i, k in enumerate(kinds))
    groups: list[InstanceGroup] = []
    for i, item in enumerate(case["items"]):
        ways = tuple(map(tuple, item.get("choices") or [item["size"]]))
        limit = item.get("max_per_bin")
        if item.get("copies"):
            groups.append(InstanceGroup(f"item {i}", ways, item["copies"], max_per_node=limit))
        if item.get("optional_copies"):
            cost = item["penalty_missing"]
            groups.append(
                InstanceGroup(f"optional {i}", ways, item["optional_copies"], missing_cost=cost, max_per_node=limit)
            )
    wide = len(types[0].capacity)
    return Problem(tuple(f"r{r}" for r in range(wide)), tuple(groups), types)


@pytest.mark.parametrize("method", ["auto", "columns"])
def test_the_optimum_of_every_vector_case_is_proven(reference: Path, method: str) -> None:
    cases = json.loads((reference / "oracles" / "packing" / "vector_packing_cases.json").read_text())["cases"]
    assert len(cases) == 13
    for case in cases:
        problem = vector_problem(case)
        result = place(problem, method=method)
        if case.get("expected") == "INFEASIBLE":
            assert result.packing is None
            assert result.infeasible
            continue
        assert result.packing is not None, case["id"]
        assert violations(problem, result.packing) == []
        assert result.is_optimal, case["id"]
        expected = case.get("expected_objective", case.get("expected_cost", case.get("expected_bins")))
        if expected is not None:
            assert (case["id"], result.objective) == (case["id"], expected)
        if case.get("expected_bins") and case.get("cost_per_bin", 1):
            assert (case["id"], result.packing.nodes) == (case["id"], case["expected_bins"])
