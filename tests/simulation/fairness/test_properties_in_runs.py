"""What the papers promise, in runs of the engine: shares of a lottery, groups of H-DRF, finish-time fairness."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from gputwin.simulation.fairness.ideal import ideal_ends
from gputwin.simulation.rules import Scheduler
from gputwin.simulation.run import run
from gputwin.simulation.tenants import Fairness, Terms
from tests.oracles.cases import Case
from tests.oracles.reference import Job, Node
from tests.simulation.by_hand import gpus, job
from tests.simulation.test_fairness_by_hand import of


def start_times(jobs: list[Job], fairness: Fairness | None, node: Node, seed: int = 0) -> np.ndarray:
    workload, cluster, typical = Case((node,), tuple(jobs)).engine_input
    done = run(workload, cluster, Scheduler(fairness=fairness), typical=typical, seed=seed, attribute=False)
    return np.array(done.world.queue.jobs["start"])


def test_lottery_turns_are_within_their_standard_deviation() -> None:
    """Of n turns a tenant with the part p of the tickets gets n·p, give or take √(n·p·(1−p)); all always have work."""
    tickets, n, runs = np.array([5.0, 3.0, 2.0]), 100, 60
    part = tickets / tickets.sum()
    jobs = [of(t, job(0, 1, gpus(1))) for t in range(3) for _ in range(n)]
    terms = {f"tenant-{t}": Terms(weight) for t, weight in enumerate(tickets)}
    shares = np.array(
        [
            (start_times(jobs, Fairness("lottery", {}, terms), Node(1), seed).reshape(3, n) < n).mean(axis=1)
            for seed in range(runs)
        ]
    )
    z = (shares - part) / np.sqrt(part * (1 - part) / n)
    assert len({tuple(row) for row in shares}) > runs / 2
    assert abs(z.mean(axis=0)).max() < 4 / math.sqrt(runs)
    assert (abs(z) <= 1).mean() == pytest.approx(0.683, abs=4 * math.sqrt(0.683 * 0.317 / (runs * 2)))
    assert (abs(z) <= 4.5).all()


@pytest.mark.parametrize("seed", range(12))
def test_hdrf_gives_each_group_its_weighted_part_up_to_one_task_a_member(seed: int) -> None:
    """Sharing guarantee (section 3): groups with enough to do divide the GPUs by weight, however many are in them."""
    dice = random.Random(seed)
    size, tenants = dice.randint(24, 40), dice.randint(2, 5)
    group = [dice.choice("ab") for _ in range(tenants)]
    weight = {name: float(dice.randint(1, 4)) for name in sorted(set(group))}
    # Siblings' holdings are scaled to the least served: up to one task of each other member does not count.
    apart = max(group.count(name) for name in weight)
    jobs = [of(t, job(0, 10, gpus(1))) for t in range(tenants) for _ in range(size)]
    terms = {f"tenant-{t}": Terms(group=name) for t, name in enumerate(group)}
    held = (start_times(jobs, Fairness("hdrf", {}, terms, weight), Node(size)) == 0).reshape(tenants, size).sum(axis=1)
    assert held.sum() == size
    for name in weight:
        mine = [int(held[t]) for t in range(tenants) if group[t] == name]
        assert abs(sum(mine) - size * weight[name] / sum(weight.values())) < apart
        assert max(mine) - min(mine) <= 1


def worst_rho(jobs: list[Job], fairness: Fairness | None, node: Node) -> float:
    """Return the highest finish-time fairness of a job."""
    submit = np.array([j.submit for j in jobs], float)
    seconds = np.array([j.duration for j in jobs], float)
    tenant = np.array([j.tenant for j in jobs])
    ideal = ideal_ends(submit, seconds, seconds / node.gpus, tenant, np.full(tenant.max() + 1, 1 / (tenant.max() + 1)))
    return float(((start_times(jobs, fairness, node) + seconds - submit) / (ideal - submit)).max())


def test_themis_keeps_the_worst_rho_lowest() -> None:
    """One tenant floods the queue, others bring a few jobs: the highest ρ is lower than with fifo, drf or fair share."""
    rules = {"themis": {"period": 0.0}, "drf": {}, "fair-share": {"period": 0.0, "half_life": 0.0}}
    worst: dict[str, list[float]] = {name: [] for name in (*rules, "fifo")}
    for seed in range(15):
        dice = random.Random(seed)
        jobs = [of(0, job(0, dice.randint(2, 9), gpus(1))) for _ in range(20)]
        jobs += [of(t, job(dice.randint(1, 20), dice.randint(1, 9), gpus(1))) for t in (1, 2, 3) for _ in range(3)]
        jobs.sort(key=lambda j: j.submit)
        for name, parameters in rules.items():
            worst[name].append(worst_rho(jobs, Fairness(name, parameters), Node(2)))
        worst["fifo"].append(worst_rho(jobs, None, Node(2)))
    mean = {name: float(np.mean(values)) for name, values in worst.items()}
    assert mean["themis"] == min(mean.values()), mean
    assert mean["themis"] < 0.8 * mean["fifo"], mean
