"""Conservative backfilling against list scheduling: with exact estimates and first come first served, each job simply
gets the earliest start beside everything promised before it, and keeps it.
"""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest

from tests.oracles.cases import Case, random_case
from tests.oracles.reference import AMOUNTS, PLENTY, WHOLE, Ask, Job, Node


class Promise:
    """One instance's place and time."""

    def __init__(self, start: float, end: float, node: int, devices: tuple[int, ...], ask: Ask) -> None:
        self.start, self.end, self.node, self.devices, self.ask = start, end, node, devices, ask


class Fullest:
    """What every node has left at its fullest in a window of time: element by element, the least over its instants."""

    def __init__(self, nodes: tuple[Node, ...], promises: list[Promise], begin: float, end: float) -> None:
        self.nodes = nodes
        instants = [begin, *(p.start for p in promises if begin < p.start < end)]
        self.free = [dict.fromkeys(AMOUNTS, math.inf) for _ in nodes]
        self.share = [[math.inf] * n.gpus for n in nodes]
        self.memory = [[math.inf] * n.gpus for n in nodes]
        self.living: dict[tuple[int, str | None], int] = {}
        for at in instants:
            alive = [p for p in promises if p.start <= at < p.end]
            for n, node in enumerate(nodes):
                here = [p for p in alive if p.node == n]
                for a in AMOUNTS:
                    capacity = PLENTY if getattr(node, a) is None else getattr(node, a)
                    self.free[n][a] = min(self.free[n][a], capacity - sum(getattr(p.ask, a) for p in here))
                for d in range(node.gpus):
                    on = [p.ask for p in here if d in p.devices]
                    self.share[n][d] = min(self.share[n][d], WHOLE - sum(a.milli for a in on))
                    memory = PLENTY if node.gpu_memory is None else node.gpu_memory
                    self.memory[n][d] = min(self.memory[n][d], memory - sum(a.gpu_memory for a in on))
                for name in {p.ask.application for p in here if p.ask.limit is not None}:
                    count = sum(p.ask.application == name and p.ask.limit is not None for p in here)
                    self.living[n, name] = max(self.living.get((n, name), 0), count)

    def put(self, ask: Ask) -> tuple[int, tuple[int, ...]] | None:
        """Take the first node that fits and its fullest devices."""
        for n, node in enumerate(self.nodes):
            if ask.gpus and ask.models and node.model is not None and node.model not in ask.models:
                continue
            if any(getattr(ask, a) > self.free[n][a] for a in AMOUNTS if getattr(ask, a)):
                continue
            if ask.limit is not None and self.living.get((n, ask.application), 0) >= ask.limit:
                continue
            fitting = [
                d for d in range(node.gpus) if self.share[n][d] >= ask.milli and self.memory[n][d] >= ask.gpu_memory
            ]
            if len(fitting) < ask.gpus:
                continue
            # Instances that share several devices take the emptiest, all others the fullest.
            sign = -1 if ask.gpus > 1 and ask.milli < WHOLE else 1
            devices = tuple(
                sorted(sorted(fitting, key=lambda d, n=n, sign=sign: (sign * self.share[n][d], d))[: ask.gpus])
            )
            for a in AMOUNTS:
                self.free[n][a] -= getattr(ask, a)
            for d in devices:
                self.share[n][d] -= ask.milli
                self.memory[n][d] -= ask.gpu_memory
            if ask.limit is not None:
                self.living[n, ask.application] = self.living.get((n, ask.application), 0) + 1
            return n, devices
        return None


def place(nodes: tuple[Node, ...], promises: list[Promise], job: Job, at: float) -> list[Promise] | None:
    state = Fullest(nodes, promises, at, at + job.predicted)
    placed = []
    for ask, size in job.groups:
        for _ in range(size):
            spot = state.put(ask)
            if spot is None:
                return None
            placed.append(Promise(at, at + job.predicted, *spot, ask))
    return placed


def list_schedule(case: Case) -> list[float]:
    """Return the start of each job; NaN where not even the empty cluster holds it."""
    promises: list[Promise] = []
    starts = []
    for job in case.jobs:
        if place(case.nodes, [], job, 0.0) is None:
            starts.append(math.nan)
            continue
        for at in sorted({job.submit, *(p.end for p in promises if p.end > job.submit)}):
            placed = place(case.nodes, promises, job, at)
            if placed is not None:
                promises += placed
                starts.append(at)
                break
    return starts


def exact(case: Case, dice: random.Random) -> Case:
    """Return the case with exact estimates, lasting jobs and one submission at a time."""
    jobs = [
        replace(job, submit=float(k), duration=float(d), predicted=float(d))
        for k, job in enumerate(case.jobs)
        for d in [dice.randint(1, 9)]
    ]
    return Case(case.nodes, tuple(jobs))


@pytest.mark.parametrize("block", range(4))
def test_every_job_starts_when_list_scheduling_says(block):
    waited = 0
    for seed in range(block * 500, (block + 1) * 500):
        case = exact(random_case(seed), random.Random(seed))
        ours = [o.start for o in case.by_engine("fifo", "conservative", "first-fit")]
        theirs = list_schedule(case)
        assert [None if math.isnan(x) else x for x in ours] == [None if math.isnan(x) else x for x in theirs], seed
        waited += sum(a > j.submit for a, j in zip(theirs, case.jobs, strict=True) if not math.isnan(a))
    assert waited > 200, "the cases must have queues"


def test_a_short_job_overtakes_only_where_it_delays_nobody():
    # One node of 2 GPUs. A holds 1 GPU until 10. B wants 2: promised 10–20. C wants 1 for 9 s: ends at 11, would delay B,
    # so it is promised 20. D wants 1 for 8 s: ends at 10, starts at once.
    one, two = ((Ask(gpus=1), 1),), ((Ask(gpus=2), 1),)
    jobs = (
        Job(0.0, 10.0, one, 10.0),
        Job(1.0, 10.0, two, 10.0),
        Job(2.0, 9.0, one, 9.0),
        Job(2.0, 8.0, one, 8.0),
    )
    starts = [o.start for o in Case((Node(2),), jobs).by_engine("fifo", "conservative", "first-fit")]
    assert starts == [0.0, 10.0, 20.0, 2.0]


def test_an_early_end_moves_promises_forward():
    # One GPU. A is believed to take 10 s but ends at 4; B, promised 10, starts at 4.
    one = ((Ask(gpus=1), 1),)
    jobs = (Job(0.0, 4.0, one, 10.0), Job(1.0, 3.0, one, 3.0))
    assert [o.start for o in Case((Node(1),), jobs).by_engine("fifo", "conservative", "first-fit")] == [0.0, 4.0]


def test_an_overrun_moves_promises_back_until_it_ends():
    # One GPU. A is believed to take 2 s but takes 9; B waits for its real end.
    one = ((Ask(gpus=1), 1),)
    jobs = (Job(0.0, 9.0, one, 2.0), Job(1.0, 3.0, one, 3.0))
    assert [o.start for o in Case((Node(1),), jobs).by_engine("fifo", "conservative", "first-fit")] == [0.0, 9.0]
