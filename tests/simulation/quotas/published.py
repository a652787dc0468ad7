"""Kueue's published cases as our quotas and workloads: one function per form of a case."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gputwin.core.units import parse_quantity
from gputwin.simulation.quotas.tree import FlavorResource, PreemptionPolicy, Quota, QuotaNode, QuotaTree, build_tree
from gputwin.simulation.quotas.workloads import Workload
from tests.conftest import REFERENCE

FOLDER = REFERENCE / "oracles" / "fairness"


def load(file: str) -> list[Any]:
    """Return the cases of a file as parameters named by their id; none where the tables are absent."""
    path: Path = FOLDER / file
    if not path.is_file():
        return [pytest.param({}, marks=pytest.mark.skip(reason=f"no reference tables at {path}"))]
    return [pytest.param(case, id=case["id"]) for case in json.loads(path.read_text())["cases"]]


def amount(resource: str, value: float | str) -> float:
    """Return an amount in whole units: milli-CPU, else as given."""
    return float(parse_quantity(str(value))) * (1000 if resource == "cpu" else 1)


def tree_of(queues: list[dict[str, Any]], cohorts: list[dict[str, Any]], held: list[Workload]) -> QuotaTree:
    nodes = [_node(q, True) for q in queues] + [_node(c, False) for c in cohorts]
    return build_tree(nodes, extra=[fr for w in held for fr in w.amounts])


def _node(spec: dict[str, Any], is_queue: bool) -> QuotaNode:
    quotas = {
        FlavorResource(flavor, resource): Quota(
            amount(resource, q["nominal"]),
            amount(resource, q["borrowing_limit"]) if "borrowing_limit" in q else float("inf"),
            amount(resource, q["lending_limit"]) if "lending_limit" in q else float("inf"),
        )
        for flavor, resources in spec["flavors"].items()
        for resource, q in resources.items()
    }
    policy = spec.get("preemption") or {}
    borrow = policy.get("borrow_within_cohort") or {}
    return QuotaNode(
        spec["name"],
        spec.get("parent"),
        quotas,
        float(spec.get("fair_weight", 1)),
        is_queue,
        PreemptionPolicy(
            policy.get("within_cluster_queue") or "Never",
            policy.get("reclaim_within_cohort") or "Never",
            borrow.get("policy", "Never") != "Never",
            borrow.get("max_priority_threshold"),
        ),
    )


def workload_of(spec: dict[str, Any], queue: str, flavors: dict[str, str] | str) -> Workload:
    """Return the workload; `flavors` is the flavor of each resource, or the one of all."""
    held = {
        FlavorResource(flavors if isinstance(flavors, str) else flavors.get(r, "default"), r): amount(r, v)
        for r, v in spec["requests"].items()
    }
    return Workload(
        spec["name"],
        queue,
        held,
        spec["priority"],
        spec.get("admitted_at", 0.0),
        spec.get("created_at", 0.0),
        bool(spec.get("evicted", False)),
        spec.get("local_queue", ""),
        spec.get("local_queue_usage"),
    )


def contention(case: dict[str, Any]) -> tuple[QuotaTree, list[Workload], Workload]:
    """Return the tree, the admitted workloads and the incoming one of a preemption case."""
    admitted = []
    for spec in case["admitted"]:
        given = spec.get("assignment")
        flavors = {r: a["flavor"] for r, a in given.items()} if given else spec.get("flavor", "default")
        # What was admitted counts, which may differ from what was asked for.
        held = {r: a["quantity"] for r, a in given.items()} if given else spec["requests"]
        admitted.append(workload_of({**spec, "requests": held}, spec["cluster_queue"], flavors))
    chosen = case.get("assignment") or case.get("assignment_flavor", "default")
    incoming = workload_of(case["incoming"], case["target_cluster_queue"], chosen)
    return tree_of(case["cluster_queues"], case["cohorts"], [*admitted, incoming]), admitted, incoming
