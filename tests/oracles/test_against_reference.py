"""The engine and the plain reference agree on every start, node, device and cause of wait in many small random cases."""

from __future__ import annotations

import zlib
from dataclasses import replace
from functools import cache
from itertools import product

import pytest

from gputwin.simulation.policy import BACKFILLS, ORDERINGS, PLACEMENTS
from gputwin.simulation.simulate import Scheduler, cluster_models, run
from gputwin.simulation.workload import workload_of
from tests.oracles import reference
from tests.oracles.cases import Case, cluster_of, outcomes_of, random_case, trace_of_jobs
from tests.oracles.reference import Outcome

CASES, POOL = 25, 600
"""Cases per order, rule of overtaking and placement, out of a common pool that is made once.

`python -m tests.oracles.test_against_reference 1000` compares 1000 of each, none twice.
"""
RULES = ("strict", "greedy", "easy", "conservative", "loss")
DRAWN = {"random"}
"""Placements that cannot be compared, since the draws are not the reference's."""


def differences(engine: list[Outcome], plain: list[Outcome]) -> list[str]:
    """Return what the two say differently, in words."""
    found = []
    for j, (a, b) in enumerate(zip(engine, plain, strict=True)):
        if (a.fate, str(a.start)) != (b.fate, str(float(b.start))):
            found.append(f"job {j}: engine {a.fate} at {a.start}, reference {b.fate} at {b.start}")
        elif a.spots != b.spots:
            where = [[(s.node, s.devices) for s in x.spots] for x in (a, b)]
            found.append(f"job {j}: engine on {where[0]}, reference on {where[1]} (node, devices)")
        elif a.waited != +b.waited:
            found.append(f"job {j}: engine waits for {dict(a.waited)}, reference for {dict(+b.waited)}")
    return found


pooled = cache(random_case)


def compare(order: str, backfill: str, placement: str, seeds: range) -> None:
    """Fail on the first case on which engine and reference differ."""
    for seed in seeds:
        case = pooled(seed) if seed < POOL else random_case(seed)
        found = differences(case.by_engine(order, backfill, placement), case.by_reference(order, backfill, placement))
        assert not found, f"{order}, {backfill}, {placement}, random_case({seed}): {'; '.join(found)}\n{case}"


@pytest.mark.parametrize("placement", reference.PLACEMENTS)
@pytest.mark.parametrize("backfill", RULES)
def test_every_start_node_device_and_cause_agrees(backfill, placement):
    for order in reference.ORDERS:
        first = zlib.crc32(f"{order}/{backfill}/{placement}".encode()) % (POOL - CASES)
        compare(order, backfill, placement, range(first, first + CASES))


def test_the_reference_knows_every_registered_policy():
    assert set(ORDERINGS.names()) == set(reference.ORDERS)
    assert set(PLACEMENTS.names()) == set(reference.PLACEMENTS) | DRAWN
    assert set(BACKFILLS.names()) == set(RULES)


@pytest.mark.parametrize("backfill", RULES)
def test_a_trace_leads_to_the_same_schedule_as_the_arrays_made_by_hand(backfill):
    for seed in range(40):
        case = _groups_in_order_of_request(random_case(seed))
        cluster = cluster_of(case.nodes)
        workload = workload_of(trace_of_jobs(case.jobs), cluster_models(cluster), predict="requested")
        done = run(workload, cluster, Scheduler("sjf", backfill, "best-fit"))
        found = differences(outcomes_of(done, case.jobs), case.by_reference("sjf", backfill, "best-fit"))
        assert not found, f"random_case({seed}): {'; '.join(found)}"


def _groups_in_order_of_request(case: Case) -> Case:
    """Return the case with each job's groups in the order in which a trace numbers requests."""
    asks = list(dict.fromkeys(ask for job in case.jobs for ask, _ in job.groups))
    jobs = [
        replace(job, groups=tuple(sorted(job.groups, key=lambda group: (asks.index(group[0]), group[1]))))
        for job in case.jobs
    ]
    return Case(case.nodes, tuple(jobs))


if __name__ == "__main__":
    import sys

    many = int(sys.argv[1])
    for k, combination in enumerate(product(reference.ORDERS, RULES, reference.PLACEMENTS), 1):
        compare(*combination, range(k * 1_000_000, k * 1_000_000 + many))
        print(*combination, many, "cases agree", flush=True)
