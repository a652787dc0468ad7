"""With fairness, engine and plain reference agree on every start, node, device and cause in many small random cases."""

from __future__ import annotations

import random
import zlib
from dataclasses import replace
from typing import NamedTuple

import pytest

from gputwin.simulation.policy import FAIRNESS
from gputwin.simulation.rules import Scheduler
from gputwin.simulation.run import run
from gputwin.simulation.tenants import RESOURCE_NAMES, Fairness, Terms
from tests.conformance.crowd import NODES, crowd
from tests.oracles.cases import Case, outcomes_of, random_case
from tests.oracles.reference import Outcome
from tests.oracles.reference_fair import simulate_fair
from tests.oracles.test_against_reference import differences

CASES = 25
"""Per rule, backfill and order; `python -m tests.oracles.test_fair_against_reference 1000` compares 1000 of each."""
RULES = ("drf", "wfq", "fair-share", "quota", "lottery", "themis", "hdrf")
ORDERS = ("fifo", "sjf", "priority")
PLACEMENTS = ("first-fit", "best-fit", "fgd", "topology")


def fair_case(seed: int) -> tuple[Case, dict[str, float], tuple[float, ...]]:
    """Return a case whose jobs belong to tenants, the parameters of every rule, and the tenants' weights."""
    dice = random.Random(seed)
    cases = [random_case(dice.randrange(10**9)) for _ in range(1)]
    case, more = cases[0], random_case(dice.randrange(10**9))
    # More jobs of the same kinds, so that tenants compete.
    kinds = [job.groups for job in case.jobs]
    added = [replace(job, groups=dice.choice(kinds)) for job in more.jobs]
    jobs = sorted([*case.jobs, *added], key=lambda job: job.submit)
    tenants = dice.randint(1, 3)
    jobs = [replace(job, tenant=dice.randrange(tenants)) for job in jobs]
    count = max(job.tenant for job in jobs) + 1
    parameters = {
        "half_life": dice.choice([0.0, 2.0, 5.0]),
        "period": dice.choice([0.0, 0.0, 2.0, 3.0]),
        "share": dice.choice([0.25, 0.5, 0.75, 1.0]),
        "gpus": dice.choice([1.0, 2.0, 1e9]),
    }
    return Case(case.nodes, tuple(jobs)), parameters, tuple(dice.choice([1.0, 1.0, 2.0, 3.0]) for _ in range(count))


class Agreed(NamedTuple):
    """Groups of tenants and their weights, and tickets by resource."""

    groups: tuple[str, ...] = ()
    group_weights: dict[str, float] | None = None
    tickets: tuple[tuple[float, ...], ...] = ()


NOTHING_AGREED = Agreed()


def agreed(fairness: str, tenants: int, seed: int) -> Agreed:
    """Return terms for the rules that ask for them."""
    dice = random.Random(seed)
    if fairness == "hdrf":
        groups = tuple(dice.choice(["", "a", "a", "b", "a/c"]) for _ in range(tenants))
        weights = {
            path: dice.choice([1.0, 2.0]) for path in ("a", "b", "a/c") if any(g.startswith(path) for g in groups)
        }
        return Agreed(groups, weights)
    if fairness == "lottery":
        return Agreed(tickets=tuple(tuple(dice.choice([1.0, 2.0, 5.0]) for _ in range(4)) for _ in range(tenants)))
    return NOTHING_AGREED


def by_engine(
    case: Case,
    rules: tuple[str, str, str],
    fairness: str,
    parameters: dict[str, float],
    weights: tuple[float, ...],
    terms: Agreed = NOTHING_AGREED,
) -> list[Outcome]:
    workload, cluster, typical = case.engine_input
    of_all = zip(
        workload.tenants,
        weights,
        terms.groups or [""] * len(weights),
        terms.tickets or [()] * len(weights),
        strict=True,
    )
    named = {
        name: Terms(weight, weights=dict(zip(RESOURCE_NAMES, tickets, strict=False)), group=group)
        for name, weight, group, tickets in of_all
    }
    fair = Fairness(fairness, parameters, named, terms.group_weights or {})
    return outcomes_of(run(workload, cluster, Scheduler(*rules, fairness=fair), typical=typical), case.asks)


def compare(fairness: str, rules: tuple[str, str, str], seed: int) -> int:
    """Fail where engine and reference differ; return how many jobs start otherwise than without fairness."""
    case, given, weights = fair_case(seed)
    parameters = {k: v for k, v in given.items() if k in FAIRNESS.get(fairness).parameters}
    terms = agreed(fairness, len(weights), seed)
    engine = by_engine(case, rules, fairness, parameters, weights, terms)
    plain = simulate_fair(case.nodes, case.jobs, rules, fairness, parameters, weights, *terms)
    found = differences(engine, plain)
    assert not found, (
        f"{fairness}:{parameters}, {rules}, weights {weights}, {terms}, fair_case({seed}): {'; '.join(found)}\n{case}"
    )
    without = case.by_reference(*rules)
    return sum(str(a.start) != str(b.start) for a, b in zip(plain, without, strict=True))


@pytest.mark.parametrize("backfill", ["strict", "greedy", "easy"])
@pytest.mark.parametrize("fairness", RULES)
def test_every_start_node_device_and_cause_agrees(fairness: str, backfill: str) -> None:
    changed = 0
    for order in ORDERS:
        begin = zlib.crc32(f"{fairness}/{backfill}/{order}".encode()) % 100_000
        for seed in range(begin, begin + CASES):
            changed += compare(fairness, (order, backfill, PLACEMENTS[seed % len(PLACEMENTS)]), seed)
    assert changed > 0


def test_who_has_lost_its_room_in_the_pass_gives_its_tenant_no_turn() -> None:
    """A new shape had room when the pass began; by its turn it has none, though another of its tenant has."""
    assert compare("fair-share", ("sjf", "greedy", "topology"), 1_000_063) > 0


@pytest.mark.parametrize("backfill", ["strict", "greedy", "easy"])
@pytest.mark.parametrize("fairness", RULES)
def test_a_crowd_is_scheduled_alike(fairness: str, backfill: str) -> None:
    """Longer queues and more nodes than the small cases have, times that are no round numbers."""
    dice = random.Random(f"{fairness}/{backfill}")
    case = crowd(5, 30, nodes=NODES[1:11:2])
    case = Case(
        case.nodes, tuple(replace(job, tenant=k if k < 4 else dice.randrange(4)) for k, job in enumerate(case.jobs))
    )
    parameters = {"quota": {"share": 0.5}, "fair-share": {"half_life": 5000.0, "period": 0.0}}.get(fairness, {})
    rules, weights = (dice.choice(ORDERS), backfill, dice.choice(PLACEMENTS)), (1.0, 1.0, 2.0, 3.0)
    plain = simulate_fair(case.nodes, case.jobs, rules, fairness, parameters, weights)
    found = differences(by_engine(case, rules, fairness, parameters, weights), plain)
    assert not found, f"{fairness}, {rules}: {'; '.join(found)}"
    without = case.by_reference(*rules)
    assert [str(o.start) for o in without] != [str(o.start) for o in plain]


def test_the_reference_knows_every_registered_rule() -> None:
    """Rules of queues and cohorts are checked against the plain functions of `quotas/` instead."""
    assert {rule.name for rule in FAIRNESS if not rule.queues} == set(RULES)


if __name__ == "__main__":
    import sys

    many = int(sys.argv[1])
    for fairness in RULES:
        for backfill in ("strict", "greedy", "easy"):
            for order in ORDERS:
                changed = sum(compare(fairness, (order, backfill, PLACEMENTS[s % 4]), 10**6 + s) for s in range(many))
                print(fairness, backfill, order, many, "cases agree;", changed, "jobs start otherwise", flush=True)
