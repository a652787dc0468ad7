"""With Slurm's multifactor order, engine and plain reference agree on every start, node, device and cause."""

from __future__ import annotations

import random
import zlib

import pytest

from gputwin.simulation.rules import Scheduler
from gputwin.simulation.run import run
from gputwin.simulation.slurm.order import NAME
from gputwin.simulation.tenants import Fairness, Terms
from tests.oracles.cases import outcomes_of
from tests.oracles.reference_slurm import accounts_of, simulate_slurm
from tests.oracles.test_against_reference import differences
from tests.oracles.test_fair_against_reference import fair_case

CASES = 25
PLACEMENTS = ("first-fit", "best-fit", "topology")


def settings_for(seed: int) -> dict[str, float]:
    """Return parameters with which every factor matters, in small cases of some seconds."""
    dice = random.Random(seed)
    return {
        "age": dice.choice([0.0, 300.0, 1000.0]),
        "fairshare": dice.choice([0.0, 500.0, 2000.0]),
        "job_size": dice.choice([0.0, 400.0]),
        "qos": dice.choice([0.0, 300.0]),
        "tres_gpu": dice.choice([0.0, 500.0]),
        "max_age": dice.choice([3.0, 8.0, 20.0]),
        "half_life": dice.choice([0.0, 2.0, 10.0]),
        "period": dice.choice([1.0, 2.0, 5.0]),
        "fair_tree": float(dice.random() < 0.6),
        "dampening": dice.choice([1.0, 2.0]),
        "favor_small": float(dice.random() < 0.5),
        "size_per_time": float(dice.random() < 0.2),
    }


def compare(backfill: str, seed: int) -> int:
    """Fail where engine and reference differ; return how many jobs start otherwise than first come, first served."""
    case, _, weights = fair_case(seed)
    parameters, dice = settings_for(seed), random.Random(seed + 1)
    groups = [dice.choice(["", "a", "a", "b", "a/c"]) for _ in weights]
    group_weights = {path: 2.0 for path in ("a", "b") if any(g.startswith(path) for g in groups)}
    workload, cluster, typical = case.engine_input
    named = {
        name: Terms(weight, group=group) for name, weight, group in zip(workload.tenants, weights, groups, strict=True)
    }
    placement = PLACEMENTS[seed % len(PLACEMENTS)]
    scheduler = Scheduler(NAME, backfill, placement, parameters, fairness=Fairness("", {}, named, group_weights))
    engine = outcomes_of(run(workload, cluster, scheduler, typical=typical), case.asks)
    accounts = accounts_of(groups, weights, group_weights)
    plain = simulate_slurm(case.nodes, case.jobs, (backfill, placement), parameters, accounts)
    found = differences(engine, plain)
    assert not found, (
        f"{backfill}, {placement}, {parameters}, {groups}, {weights}, seed {seed}: {'; '.join(found)}\n{case}"
    )
    without = case.by_reference("fifo", backfill, placement)
    return sum(str(a.start) != str(b.start) for a, b in zip(plain, without, strict=True))


@pytest.mark.parametrize("backfill", ["strict", "greedy", "easy"])
def test_every_start_node_device_and_cause_agrees(backfill: str) -> None:
    begin = zlib.crc32(f"slurm/{backfill}".encode()) % 100_000
    assert sum(compare(backfill, seed) for seed in range(begin, begin + CASES)) > 0
