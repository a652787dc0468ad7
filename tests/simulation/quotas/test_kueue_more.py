"""Situations in trees of cohorts beside the given tables: whom Kueue's rules take, and why (KEP-79, KEP-1714)."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from gputwin.simulation.quotas.classical import classical_victims
from gputwin.simulation.quotas.fair import FINAL_SHARE, INITIAL_SHARE, fair_victims
from gputwin.simulation.quotas.workloads import Victim
from tests.simulation.quotas.compiled import found_by_engine
from tests.simulation.quotas.published import contention

Spec = dict[str, Any]
GIB = 2**30
RECLAIM, BORROWING, OWN, FAIR = (
    "InCohortReclamation",
    "InCohortReclaimWhileBorrowing",
    "InClusterQueue",
    "InCohortFairSharing",
)


class Case(NamedTuple):
    name: str
    cohorts: list[Spec]
    queues: list[Spec]
    admitted: list[Spec]
    incoming: Spec
    queue: str
    victims: list[tuple[str, str]]


def queue(name: str, cohort: str, cpu: float | None = None, *, weight: float = 1.0, policy: str = "Lower Any") -> Spec:
    """Return a queue; `policy`: within, reclaim, and up to which priority it preempts while borrowing."""
    within, reclaim, *threshold = policy.split()
    preemption: Spec = {"within_cluster_queue": _POLICIES[within], "reclaim_within_cohort": _POLICIES[reclaim]}
    if threshold:
        preemption["borrow_within_cohort"] = {"policy": "LowerPriority", "max_priority_threshold": int(threshold[0])}
    flavors = {"default": {} if cpu is None else {"cpu": {"nominal": cpu}}}
    return {"name": name, "flavors": flavors, "parent": cohort, "fair_weight": weight, "preemption": preemption}


_POLICIES = {"Lower": "LowerPriority", "Any": "Any", "No": "Never"}


def cohort(name: str, parent: str = "", *, weight: float = 1.0, **quotas: float) -> Spec:
    flavors = {"default": {resource: {"nominal": amount} for resource, amount in quotas.items()}} if quotas else {}
    return {"name": name, "flavors": flavors, "fair_weight": weight, **({"parent": parent} if parent else {})}


def work(name: str, queue: str, priority: int = 0, *, evicted: bool = False, **requests: float) -> Spec:
    return {
        "name": name,
        "priority": priority,
        "requests": requests,
        "cluster_queue": queue,
        "flavor": "default",
        "evicted": evicted,
    }


def asks(priority: int = 0, **requests: float) -> Spec:
    return {"name": "in", "priority": priority, "requests": requests}


CLASSICAL = [
    Case(
        "own queue and a neighbour below the threshold",
        [cohort("r"), cohort("c", "r", cpu=3)],
        [queue("q", "c", policy="Lower Any 0"), queue("near", "c")],
        [work("above", "near", 1, cpu=1), work("below", "near", 0, cpu=2), work("mine", "q", -1, cpu=1)],
        asks(1, cpu=2),
        "q",
        [("below", BORROWING), ("mine", OWN)],
    ),
    Case(
        "who borrows from the cohort goes before own work of lower priority",
        [cohort("r"), cohort("c", "r", cpu=2)],
        [queue("q", "c"), queue("far", "r")],
        [work("borrower", "far", 1, cpu=1), work("mine", "q", -2, cpu=1)],
        asks(0, cpu=1),
        "q",
        [("borrower", RECLAIM)],
    ),
    Case(
        "who is within its quota is spared, though of lowest priority",
        [cohort("r"), cohort("c", "r", cpu=2)],
        [queue("q", "c", policy="Lower Any 0"), queue("entitled", "r", 2), queue("near", "c")],
        [work("spared", "entitled", -10, cpu=2), work("below", "near", -1, cpu=2)],
        asks(0, cpu=2),
        "q",
        [("below", BORROWING)],
    ),
    Case(
        "two resources, of which one has room",
        [cohort("r", cpu=3), cohort("c", "r", cpu=4, memory=4 * GIB)],
        [queue("q", "c"), queue("far", "r"), queue("near", "c")],
        [work("borrower", "far", 0, cpu=3, memory=GIB), work("low", "near", -2, cpu=1, memory=3 * GIB)],
        asks(-2, cpu=2, memory=GIB),
        "q",
        [("borrower", RECLAIM)],
    ),
    Case(
        "who is being evicted anyway goes first",
        [cohort("r"), cohort("c", "r", cpu=2)],
        [queue("q", "c", policy="Lower Any 0"), queue("far", "r"), queue("near", "c")],
        [work("borrower", "far", -10, cpu=1), work("leaving", "near", -1, evicted=True, cpu=1)],
        asks(0, cpu=1),
        "q",
        [("leaving", BORROWING)],
    ),
]

THREE = [queue(name, "all", 3, policy="Lower Any -3") for name in "abc"]
FAIR_CASES = [
    Case(
        "a third borrower takes from who borrows most",
        [],
        THREE,
        [work(name, name[0], cpu=1) for name in ("a1", "a2", "a3", "b1", "b2", "b3", "b4", "b5", "c1")],
        asks(cpu=1),
        "a",
        [("b1", FAIR)],
    ),
    Case(
        "one workload of everything goes for a small one within quota",
        [],
        THREE,
        [work("b1", "b", cpu=9)],
        asks(cpu=2),
        "a",
        [("b1", RECLAIM)],
    ),
    Case(
        "own work and another's, though the queue ends above its quota",
        [],
        THREE,
        [work("a1", "a", -1, cpu=2), work("a2", "a", -1, cpu=1), work("b1", "b", cpu=3), work("b2", "b", cpu=3)],
        asks(cpu=4),
        "a",
        [("a1", OWN), ("b1", FAIR)],
    ),
    Case(
        "one of each of two who borrow alike",
        [],
        THREE,
        [work("b1", "b", cpu=2), work("b2", "b", cpu=2.5), work("c1", "c", cpu=2), work("c2", "c", cpu=2.5)],
        asks(cpu=3.5),
        "a",
        [("b1", FAIR), ("c1", FAIR)],
    ),
    Case(
        "nobody goes below its quota for who would borrow",
        [],
        THREE,
        [work("b1", "b", cpu=3), work("b2", "b", cpu=3), work("c1", "c", cpu=3)],
        asks(cpu=4),
        "a",
        [],
    ),
    Case(
        "a cohort of weight 0 keeps its own quota",
        [cohort("right", "root", weight=0, cpu=1)],
        [queue("left", "root", 0, policy="No Any"), queue("inner", "right", 0, weight=0, policy="No Any")],
        [work("entitled", "inner", cpu=1)],
        asks(cpu=1),
        "left",
        [],
    ),
    Case(
        "a cohort of weight 0 gets its own quota back",
        [cohort("left", "root", weight=0, cpu=1)],
        [queue("a", "left", 0, weight=0, policy="No Any"), queue("b", "root", 0, policy="No No")],
        [work("b1", "b", cpu=1)],
        asks(cpu=1),
        "a",
        [("b1", FAIR)],
    ),
    Case(
        "shares are compared below the common ancestor, on three levels",
        [cohort("root", cpu=5), cohort("left", "root", weight=2, cpu=5), cohort("right", "root", cpu=5)],
        [
            queue("a", "left", 1, weight=2, policy="No Any"),
            queue("b", "left", 1, policy="No No"),
            queue("c", "root", 1, policy="No No"),
            queue("d", "right", 1, policy="No No"),
            queue("e", "right", 1, weight=0.99, policy="No No"),
        ],
        [work(f"{name}{k}", name, k, cpu=1) for name in "bcde" for k in range(1, 6)],
        asks(cpu=5),
        "a",
        [("b1", FAIR), ("b2", FAIR), ("c1", FAIR), ("c2", FAIR), ("e1", FAIR)],
    ),
]


def _contention(case: Case) -> tuple[Any, ...]:
    given = {
        "cohorts": case.cohorts,
        "cluster_queues": case.queues,
        "admitted": case.admitted,
        "incoming": case.incoming,
        "target_cluster_queue": case.queue,
    }
    return contention(given)


def _named(victims: list[Victim]) -> list[tuple[str, str]]:
    return sorted((victim.workload.name, victim.reason) for victim in victims)


@pytest.mark.parametrize("case", CLASSICAL, ids=lambda case: case.name)
def test_classical_preemption(case: Case) -> None:
    assert _named(classical_victims(*_contention(case))) == case.victims
    assert _named(found_by_engine(*_contention(case), fair=False)) == case.victims


@pytest.mark.parametrize("case", FAIR_CASES, ids=lambda case: case.name)
def test_fair_sharing(case: Case) -> None:
    strategies = (FINAL_SHARE, INITIAL_SHARE)
    assert _named(fair_victims(*_contention(case), strategies)) == case.victims
    assert _named(found_by_engine(*_contention(case), fair=True, strategies=strategies)) == case.victims
