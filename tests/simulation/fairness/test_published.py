"""The examples of the DRF and H-DRF papers."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from gputwin.simulation.fairness.alternatives import asset_fairness, equal_incomes
from gputwin.simulation.fairness.drf import dominant_share, fill, fill_by_tasks
from gputwin.simulation.fairness.hdrf import ShareTree, fill_tree
from tests.conftest import REFERENCE


@pytest.fixture(scope="module")
def examples() -> dict[str, Any]:
    path = REFERENCE / "oracles" / "fairness" / "documented_examples.json"
    if not path.is_file():
        pytest.skip(f"no reference tables at {path}")
    return dict(json.loads(path.read_text()))


def _division(case: dict[str, Any]) -> tuple[list[str], np.ndarray, np.ndarray, np.ndarray]:
    """Return users (B first, as in the paper's table), demands, capacity and weights."""
    users = sorted(case["users"], reverse=True)
    resources = list(case["capacity"])
    demands = np.array([[case["users"][u]["demand"].get(r, 0) for r in resources] for u in users], dtype=float)
    weights = np.array([[case.get("weights", {}).get(u, {}).get(r, 1) for r in resources] for u in users], dtype=float)
    return users, demands, np.array([case["capacity"][r] for r in resources], dtype=float), weights


def test_drf_paper_divisions(examples: dict[str, Any]) -> None:
    main = examples["drf_paper"][0]
    rules = {
        "nsdi11-example": "drf",
        "two-users-intro": "drf",
        "asset-fairness-same-input": "asset",
        "ceei-same-input": "ceei",
    }
    assert {case["id"] for case in examples["drf_paper"]} == set(rules)
    for case in examples["drf_paper"]:
        users, demands, capacity, weights = _division(case if "users" in case else main)
        rule = rules[case["id"]]
        if rule == "drf":
            tasks = fill(demands, capacity, weights)
        else:
            tasks = asset_fairness(demands, capacity) if rule == "asset" else equal_incomes(demands, capacity)
        assert dict(zip(users, tasks, strict=True)) == pytest.approx(case["expected_tasks_continuous"], rel=1e-6), case[
            "id"
        ]


def test_drf_paper_table_of_whole_tasks(examples: dict[str, Any]) -> None:
    case = examples["drf_paper"][0]
    users, demands, capacity, weights = _division(case)
    order, count = fill_by_tasks(demands, capacity, weights)
    assert [users[t] for t in order] == case["expected_task_order"]
    held = demands * count[:, None]
    for t, user in enumerate(users):
        assert dict(zip(case["capacity"], held[t], strict=True)) == case["expected_allocation"][user]
        assert dominant_share(held, capacity, weights, t) == pytest.approx(
            case["expected_dominant_share"][user], abs=1e-6
        )


def _tree(case: dict[str, Any]) -> tuple[ShareTree, dict[str, int], np.ndarray, np.ndarray, np.ndarray]:
    index: dict[str, int] = {}
    parent: list[int] = []
    weight: list[float] = []

    def add(path: str, spec: dict[str, Any], above: int) -> None:
        index[path] = len(parent)
        parent.append(above)
        weight.append(spec.get("weight", 1) / 100)
        for name, child in spec.get("children", {}).items():
            add(f"{path}/{name}", child, index[path])

    add("root", {"children": case["tree"]["root"], "weight": 100}, -1)
    resources = list(case["capacity"])
    demands, tasks = np.zeros((len(parent), len(resources))), np.zeros(len(parent), dtype=np.int64)
    for job in case["jobs"].values():
        n = index[job["queue"]]
        demands[n] = [job["demand"].get(r, 0) for r in resources]
        tasks[n] = job["tasks"]
    capacity = np.array([case["capacity"][r] for r in resources], dtype=float)
    return ShareTree(np.array(parent), np.array(weight)), index, demands, capacity, tasks


def test_hdrf_paper_divisions(examples: dict[str, Any]) -> None:
    for case in examples["hdrf"]:
        tree, index, demands, capacity, tasks = _tree(case)
        given = fill_tree(tree, demands, capacity, tasks)
        found = {name: int(given[index[job["queue"]]]) for name, job in case["jobs"].items()}
        assert found == case["expected_tasks"], case["id"]


def test_plain_recursion_leaves_the_blocked_example_unfinished(examples: dict[str, Any]) -> None:
    case = next(case for case in examples["hdrf"] if case["id"] == "blocking")
    tree, index, demands, capacity, tasks = _tree(case)
    given = fill_tree(tree, demands, capacity, tasks, naive=True)
    # pg31 cannot be served any more, and its turn holds up pg32: memory stays unused.
    assert given[index["root/pg3/pg32"]] < case["expected_tasks"]["pg32"]


def test_plain_recursion_starves_a_sibling_of_who_holds_another_resource() -> None:
    """One group: n1 holds all memory, n2 wants CPUs; beside it a lone tenant wants CPUs. H-DRF halves the CPUs."""
    tree = ShareTree(np.array([-1, 0, 0, 1, 1]), np.ones(5))
    group_holds, group_wants, lone = 3, 4, 2
    demands = np.zeros((5, 2))
    demands[[group_wants, lone], 0] = 1.0
    demands[group_holds, 1] = 1.0
    held = np.zeros((5, 2))
    held[group_holds, 1] = 10.0
    capacity, tasks = np.array([10.0, 10.0]), np.array([0, 0, 99, 0, 99])
    naive = fill_tree(tree, demands, capacity, tasks, naive=True, held_before=held)
    fair = fill_tree(tree, demands, capacity, tasks, held_before=held)
    assert (naive[group_wants], naive[lone]) == (0, 10)
    assert (fair[group_wants], fair[lone]) == (5, 5)
