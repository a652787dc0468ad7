"""Kueue's own tables: whom it preempts, and its dominant shares. Cases by the id of their source; all must agree."""

from __future__ import annotations

import math
from typing import Any

import pytest

from gputwin.simulation.quotas.balance import take
from gputwin.simulation.quotas.classical import classical_victims
from gputwin.simulation.quotas.fair import FINAL_SHARE, INITIAL_SHARE, fair_victims
from gputwin.simulation.quotas.shares import MOST, dominant_share
from gputwin.simulation.quotas.tree import FlavorResource
from gputwin.simulation.quotas.workloads import Victim, Workload
from tests.simulation.quotas.compiled import found_by_engine, share_by_engine
from tests.simulation.quotas.published import contention, load, tree_of


def _expected(case: dict[str, Any]) -> list[tuple[str, str]]:
    return sorted((e["workload"], e["reason"]) for e in case["expected_preempted"])


def _named(victims: list[Victim]) -> list[tuple[str, str]]:
    return sorted((v.workload.name, v.reason) for v in victims)


@pytest.mark.parametrize("case", load("kueue_preemption.json") + load("kueue_hierarchical_preemption.json"))
def test_classical_preemption_takes_whom_kueue_takes(case: dict[str, Any]) -> None:
    assert _named(classical_victims(*contention(case))) == _expected(case)
    assert _named(found_by_engine(*contention(case), fair=False)) == _expected(case)


@pytest.mark.parametrize("case", load("kueue_fair_preemption.json"))
def test_fair_preemption_takes_whom_kueue_takes(case: dict[str, Any]) -> None:
    strategies = case.get("strategies") or (FINAL_SHARE, INITIAL_SHARE)
    assert _named(fair_victims(*contention(case), strategies)) == _expected(case)
    assert _named(found_by_engine(*contention(case), fair=True, strategies=strategies)) == _expected(case)


@pytest.mark.parametrize("case", load("kueue_dominant_share.json"))
def test_dominant_shares_are_those_kueue_states(case: dict[str, Any]) -> None:
    queues = [q for q in (case["cluster_queue"], case["lending_cluster_queue"]) if q]
    held: dict[FlavorResource, float] = {}
    for source in (case["usage"], case["extra_request"]):
        for name, value in source.items():
            fr = FlavorResource(*name.split("/", 1))
            held[fr] = held.get(fr, 0.0) + value  # the table states usage in milli-CPU, quotas in CPUs
    workload = Workload("usage", case["cluster_queue"]["name"], held)
    tree = tree_of(queues, case["cohorts"], [workload])
    usage = tree.no_usage()
    for fr, value in held.items():
        take(tree.parent, tree.guaranteed, usage, tree.queue(workload.queue), tree.resources.index(fr), value)
    for row in case["expected"]:
        is_queue = row["kind"] == "cq"
        n = next(i for i, node in enumerate(tree.nodes) if (node.name, node.is_queue) == (row["name"], is_queue))
        share = dominant_share(tree, usage, n)
        assert (share.resource, share.rounded, share.borrowing) == (
            row["dominant_resource"],
            row["weighted_share_permille"],
            row["borrowing"],
        )
        infinite, value, borrowing = share_by_engine(tree, usage, n)
        assert (MOST if infinite else math.ceil(value), borrowing) == (row["weighted_share_permille"], row["borrowing"])
