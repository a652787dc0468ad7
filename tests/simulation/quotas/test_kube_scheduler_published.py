"""kube-scheduler's own table of preemption: candidates of a search and the node it picks, by the id of each case."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gputwin.simulation.quotas.kube_victims import Budget, Candidate, Pod, best, candidates, victims_on
from tests.simulation.quotas.kube_runs import preempted_by_engine
from tests.simulation.quotas.published import FOLDER

FIRST_OFFSET = 4
"""The node at which the searches that stop early begin: drawn at random by the scheduler, so inferred from its results."""


def _cases(key: str) -> list[Any]:
    path = FOLDER / "kube_scheduler_preemption.json"
    if not path.is_file():
        return [pytest.param({}, marks=pytest.mark.skip(reason=f"no reference tables at {path}"))]
    return [pytest.param(case, id=case["id"]) for case in json.loads(path.read_text())[key]]


def _pod(spec: dict[str, Any]) -> Pod:
    return Pod(spec["name"], spec["priority"], spec["request"], float(spec.get("start") or 0.0))


def _search(case: dict[str, Any], preemptor: dict[str, Any], **limits: int) -> list[Candidate]:
    nodes = {name: [_pod(p) for p in case["pods"] if p["node"] == name] for name in case["nodes"]}
    return candidates(nodes, dict.fromkeys(case["nodes"], case["node_capacity"]), _pod(preemptor), **limits)


@pytest.mark.parametrize("case", _cases("select_best_candidate"))
def test_the_node_picked_is_the_published_one(case: dict[str, Any]) -> None:
    chosen = best(_search(case, case["preemptor"]))
    assert chosen is not None
    assert chosen.node in case["expected_node_any_of"]


@pytest.mark.parametrize("case", _cases("dry_run"))
def test_candidates_are_the_published_ones(case: dict[str, Any]) -> None:
    limits = {}
    if case["args"]:
        limits = {
            "at_least_percent": case["args"]["MinCandidateNodesPercentage"],
            "at_least": case["args"]["MinCandidateNodesAbsolute"],
            "offset": FIRST_OFFSET,
        }
    for preemptor, expected in zip(case["preemptors"], case["expected_candidates_per_preemptor"], strict=True):
        found = _search(case, preemptor, **limits)
        rows = [(c.node, sorted(p.name for p in c.victims), c.violations) for c in found]
        assert sorted(rows) == sorted((e["node"], sorted(e["victims"]), e["pdb_violations"]) for e in expected)
        if limits:
            limits["offset"] = (limits["offset"] + len(found)) % len(case["nodes"])


@pytest.mark.parametrize("case", _cases("select_best_candidate"))
def test_in_a_run_the_engine_clears_the_published_node(case: dict[str, Any]) -> None:
    done = preempted_by_engine(case, case["preemptor"], case["nodes"])
    assert done.node in case["expected_node_any_of"]
    plain = {c.node: sorted(p.name for p in c.victims) for c in _search(case, case["preemptor"])}
    assert done.victims == plain[done.node]


@pytest.mark.parametrize("case", _cases("dry_run"))
def test_in_a_run_on_each_node_alone_the_engine_takes_the_published_victims(case: dict[str, Any]) -> None:
    """Three of the cases limit how many nodes are looked at, which the engine does by constants: of them, the nodes that
    were looked at, and that the engine picks one where preemption helps."""
    for preemptor, expected in zip(case["preemptors"], case["expected_candidates_per_preemptor"], strict=True):
        published = {e["node"]: sorted(e["victims"]) for e in expected}
        for node in published if case["args"] else case["nodes"]:
            assert preempted_by_engine(case, preemptor, [node]).victims == published.get(node, [])
        done = preempted_by_engine(case, preemptor, case["nodes"])
        helps = {c.node: sorted(p.name for p in c.victims) for c in _search(case, preemptor)}
        assert done.victims == helps.get(done.node, [])
        assert bool(done.victims) == bool(published)


def test_a_pod_whose_going_breaks_a_budget_is_put_back_first() -> None:
    pods = [Pod("low", 1, {"gpu": 4.0}), Pod("high", 2, {"gpu": 4.0})]
    claim = Pod("p", 9, {"gpu": 4.0})
    assert victims_on("n", {"gpu": 8.0}, pods, claim) == Candidate("n", (pods[0],), 0)
    guarded = [Budget(frozenset({"low"}), 0)]
    assert victims_on("n", {"gpu": 8.0}, pods, claim, guarded) == Candidate("n", (pods[1],), 0)
    both = [Budget(frozenset({"low", "high"}), 1)]
    # Going one by one, the more important first, the second to go ("low") would break the budget.
    assert victims_on("n", {"gpu": 8.0}, pods, claim, both) == Candidate("n", (pods[1],), 0)
