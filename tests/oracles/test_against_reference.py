"""The engine and the plain reference agree on every start, node, device and cause of wait in many small random cases."""

from __future__ import annotations

import zlib
from collections import Counter
from dataclasses import replace
from functools import cache
from itertools import product

import pytest

from gputwin.simulation.machines import cluster_models
from gputwin.simulation.policy import BACKFILLS, ORDERINGS, PLACEMENTS
from gputwin.simulation.rules import Scheduler
from gputwin.simulation.run import run
from gputwin.simulation.workload import workload_of
from tests.conformance.crowd import NODES, crowd
from tests.oracles import reference
from tests.oracles.cases import cluster_of, outcomes_of, random_case, read_back, trace_of_jobs
from tests.oracles.reference import Job, Outcome, simulate

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
        elif any(abs(a.waited[cause] - b.waited[cause]) > 1e-6 for cause in a.waited | b.waited):
            found.append(f"job {j}: engine waits for {dict(a.waited)}, reference for {dict(+b.waited)}")
    return found


pooled = cache(random_case)


def compare(order: str, backfill: str, placement: str, seeds: range) -> None:
    """Fail on the first case on which engine and reference differ."""
    for seed in seeds:
        case = pooled(seed) if seed < POOL else random_case(seed)
        rules = order, backfill, placement
        found = differences(case.by_engine(*rules), case.by_reference(*rules))
        assert not found, f"{order}, {backfill}, {placement}, random_case({seed}): {'; '.join(found)}\n{case}"


@pytest.mark.parametrize("placement", reference.PLACEMENTS)
@pytest.mark.parametrize("backfill", RULES)
def test_every_start_node_device_and_cause_agrees(backfill, placement):
    for order in reference.ORDERS:
        first = zlib.crc32(f"{order}/{backfill}/{placement}".encode()) % (POOL - CASES)
        compare(order, backfill, placement, range(first, first + CASES))


@pytest.mark.parametrize("placement", reference.PLACEMENTS)
@pytest.mark.parametrize("backfill", RULES)
def test_a_crowd_is_scheduled_alike(backfill, placement):
    """Longer queues and more nodes than the small cases have, times that are no round numbers."""
    order = list(reference.ORDERS)[zlib.crc32(f"{backfill}/{placement}".encode()) % len(reference.ORDERS)]
    case = crowd(5, 30, nodes=NODES[1:11:2])
    found = differences(case.by_engine(order, backfill, placement), case.by_reference(order, backfill, placement))
    assert not found, f"{order}, {backfill}, {placement}: {'; '.join(found)}"


@pytest.mark.parametrize("backfill", ["strict", "greedy", "easy", "conservative"])
def test_who_has_waited_longest_goes_first_alike(backfill):
    """And some cases start otherwise than without a longest wait."""
    changed = 0
    for seed, max_wait in product(range(100), (0.0, 2.0, 5.0)):
        case = pooled(seed)
        engine = outcomes_of(case.run("priority", backfill, "best-fit", max_wait=max_wait), case.asks)
        plain = simulate(case.nodes, case.jobs, "priority", backfill, "best-fit", max_wait)
        found = differences(engine, plain)
        assert not found, f"priority:max_wait={max_wait}, {backfill}, random_case({seed}): {'; '.join(found)}"
        without = case.by_reference("priority", backfill, "best-fit")
        changed += [str(o.start) for o in without] != [str(o.start) for o in plain]
    assert changed > 0


def test_the_reference_knows_every_registered_policy():
    # Orders that weigh what tenants have used have a plain simulator of their own.
    assert {o.name for o in ORDERINGS if not o.preemption and not o.weighs_tenants} == set(reference.ORDERS)
    # `compatible` goes by a table of pairs: its schedules by hand are with those of sharing.
    assert set(PLACEMENTS.names()) == set(reference.PLACEMENTS) | DRAWN | {"compatible"}
    assert set(BACKFILLS.names()) == set(RULES)


@pytest.mark.parametrize("backfill", RULES)
def test_a_trace_is_scheduled_as_the_jobs_in_it_would_be(backfill):
    for seed in range(40):
        case = random_case(seed)
        # A requested time of zero says nothing.
        case = replace(case, jobs=tuple(replace(job, predicted=max(job.predicted, 1)) for job in case.jobs))
        cluster = cluster_of(case.nodes)
        workload = workload_of(trace_of_jobs(case.jobs), cluster_models(cluster), predict="requested")
        asks, jobs = read_back(workload)
        assert [_amounts(job) for job in jobs] == [_amounts(job) for job in case.jobs]
        done = run(workload, cluster, Scheduler("sjf", backfill, "best-fit"))
        found = differences(outcomes_of(done, asks), simulate(case.nodes, jobs, "sjf", backfill, "best-fit"))
        assert not found, f"random_case({seed}): {'; '.join(found)}"


def _amounts(job: Job) -> tuple[object, ...]:
    """Return what can be told of a job from the arrays: all but names and the order of its groups."""
    groups = Counter((replace(ask, models=frozenset(), application=None), size) for ask, size in job.groups)
    return job.submit, job.duration, job.predicted, job.priority, groups


if __name__ == "__main__":
    import sys

    many = int(sys.argv[1])
    for k, combination in enumerate(product(reference.ORDERS, RULES, reference.PLACEMENTS), 1):
        compare(*combination, range(k * 1_000_000, k * 1_000_000 + many))
        print(*combination, many, "cases agree", flush=True)
