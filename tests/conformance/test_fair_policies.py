"""Every rule of fairness goes with every order that stops nobody, within the tenant."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from gputwin.simulation.engine.world import FINISHED
from gputwin.simulation.machines import make_machines
from gputwin.simulation.policy import FAIRNESS, ORDERINGS
from gputwin.simulation.rules import Scheduler
from gputwin.simulation.run import Run, run
from gputwin.simulation.tenants import Fairness, Terms
from tests.conformance.crowd import NODES, crowd
from tests.oracles.cases import Case

# Those of Kueue's queues need the queues, and have tests of their own.
RULES = [rule.name for rule in FAIRNESS if not rule.queues]
ORDERS = [order.name for order in ORDERINGS if not order.preemption]
GRID = [
    (fairness, order, backfill)
    for fairness, order, backfill in product(RULES, ORDERS, ("strict", "greedy", "easy"))
    # Both work out past use, each with a period of its own: refused.
    if not (ORDERINGS.get(order).weighs_tenants and "period" in FAIRNESS.get(fairness).parameters)
]


def crowded() -> Case:
    dice, case = random.Random(7), crowd(5, 60, nodes=NODES[1:11:2])
    return Case(
        case.nodes, tuple(replace(job, tenant=k if k < 4 else dice.randrange(4)) for k, job in enumerate(case.jobs))
    )


CROWD = crowded()


def done(fairness: str, order: str, backfill: str) -> Run:
    workload, cluster, typical = CROWD.engine_input
    terms = {"tenant-1": Terms(2.0), "tenant-2": Terms(group="g" if fairness == "hdrf" else "")}
    parameters = {"share": 0.7} if fairness == "quota" else {}
    rules = Scheduler(order, backfill, "best-fit", fairness=Fairness(fairness, parameters, terms))
    return run(workload, cluster, rules, typical=typical)


@pytest.mark.parametrize(("fairness", "order", "backfill"), GRID, ids=lambda part: str(part))
def test_rules_of_fairness_go_with_orders(fairness: str, order: str, backfill: str) -> None:
    outcome = done(fairness, order, backfill)
    jobs, shares = outcome.world.queue.jobs, outcome.world.causes.share
    started = ~np.isnan(jobs["start"])
    assert started.sum() > jobs.size / 2
    assert (jobs["outcome"][started] == FINISHED).all()
    # Everything is free again, nobody holds anything, and causes add up to the waits.
    empty = make_machines(outcome.cluster, outcome.workload)
    np.testing.assert_array_equal(outcome.world.machines.free, empty.free)
    np.testing.assert_allclose(outcome.world.tenants.held, 0.0, atol=1e-6)
    waits = (jobs["start"] - jobs["submit"])[started]
    np.testing.assert_allclose(shares[started].sum(axis=1), waits, rtol=1e-12, atol=1e-9)
    # The same again, to the byte.
    assert done(fairness, order, backfill).world.queue.jobs.tobytes() == jobs.tobytes()


def test_the_order_matters_within_the_tenant() -> None:
    for fairness in RULES:
        assert (
            len({done(fairness, order, "greedy").world.queue.jobs["start"].tobytes() for order in ("fifo", "sjf")}) == 2
        )
