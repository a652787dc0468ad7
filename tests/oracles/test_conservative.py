"""Conservative backfilling against list scheduling: with exact estimates and first come first served, each job simply
gets the earliest start beside everything promised before it, and keeps it.
"""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest

from tests.oracles.cases import Case, random_case
from tests.oracles.reference import (
    AMOUNTS,
    WHOLE,
    Ask,
    Fleet,
    Job,
    Machine,
    Node,
    Outcome,
    Placer,
    hardest_first,
)


class Promise:
    """One instance's place and time."""

    def __init__(self, start: float, end: float, node: int, devices: tuple[int, ...], ask: Ask) -> None:
        self.start, self.end, self.node, self.devices, self.ask = start, end, node, devices, ask


def fullest(nodes: tuple[Node, ...], promises: list[Promise], begin: float, end: float, submit: float) -> list[Machine]:
    """Return what every node has left at its fullest in [begin, end): element by element, the least over its instants.

    `submit`: when this is asked.
    """
    least = [Machine(node) for node in nodes]
    for at in [begin, *(p.start for p in promises if begin < p.start < end)]:
        alive = [p for p in promises if p.start <= at < p.end]
        for n, node in enumerate(nodes):
            here, machine, empty = [p for p in alive if p.node == n], least[n], Machine(node)
            for a in AMOUNTS:
                machine.free[a] = min(machine.free[a], empty.free[a] - sum(getattr(p.ask, a) for p in here))
            for d in range(node.gpus):
                on = [p.ask for p in here if d in p.devices]
                machine.share[d] = min(machine.share[d], WHOLE - sum(a.milli for a in on))
                memory = empty.gpu_memory[d] - sum(a.gpu_memory for a in on)
                machine.gpu_memory[d] = min(machine.gpu_memory[d], memory)
            for name in {p.ask.application for p in here if p.ask.limit is not None}:
                count = sum(p.ask.application == name and p.ask.limit is not None for p in here)
                machine.applications[name] = max(machine.applications[name], count)
    for at in [begin, *(p.start for p in promises if begin < p.start < end)]:
        # Who is promised a place and does not have it yet finds its own limit kept.
        alive = [p for p in promises if p.start <= at < p.end and p.ask.limit is not None]
        for p in alive:
            if p.start > submit:
                there = [q for q in alive if q.node == p.node and q.ask.application == p.ask.application]
                least[p.node].bear(p.ask, len(there))
    return least


def place(nodes: tuple[Node, ...], promises: list[Promise], job: Job, at: float) -> list[Promise] | None:
    """Return where the job goes by first fit: that is another test's matter, so the reference is asked."""
    placer = Placer("first-fit", Fleet(nodes, [job]))
    placed = replace(job, groups=hardest_first(job.groups, nodes))
    end = max(at + job.predicted, math.nextafter(at, math.inf))
    spots = placer.place(fullest(nodes, promises, at, end, job.submit), placed)
    return None if spots is None else [Promise(at, end, s.node, s.devices, s.ask) for s in spots]


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
    for seed in range(block * 300, (block + 1) * 300):
        case = exact(random_case(seed), random.Random(seed))
        ours = [o.start for o in case.by_engine("fifo", "conservative", "first-fit")]
        theirs = list_schedule(case)
        assert [None if math.isnan(x) else x for x in ours] == [None if math.isnan(x) else x for x in theirs], seed
        waited += sum(a > j.submit for a, j in zip(theirs, case.jobs, strict=True) if not math.isnan(a))
    assert waited > 120, "the cases must have queues"


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


def test_who_is_planned_finds_its_own_limit_kept():
    # Three nodes of 10 cores. The first job keeps two of three from the second until 3026. The third may share a node
    # with one other of the application, but the second, planned there, may share with nobody.
    jobs = (
        Job(1183.0, 1843.0, ((Ask(cpu=3), 2),), 1843.0),
        Job(1463.0, 1455.0, ((Ask(cpu=7, limit=1, application="x"), 3),), 1455.0),
        Job(1850.0, 1649.0, ((Ask(1, 250, cpu=3, limit=2, application="x"), 1),), 1649.0),
    )
    nodes = (Node(1, cpu=10), Node(1, cpu=10), Node(1, cpu=10))
    outcomes = Case(nodes, jobs).by_engine("fifo", "conservative", "first-fit")
    assert [o.start for o in outcomes] == [1183.0, 3026.0, 4481.0]
    assert limits_broken(jobs, outcomes) == []


def limits_broken(jobs: tuple[Job, ...], outcomes: list[Outcome]) -> list[int]:
    """Return the jobs that start beside more instances of their application than one of their instances allows."""
    alive = [(o.start, j, o.start + jobs[j].duration, spot) for j, o in enumerate(outcomes) for spot in o.spots]
    broken = []
    for j, outcome in enumerate(outcomes):
        # At one instant jobs start in order; who comes later minds those before it.
        there = [s for start, k, end, s in alive if (start, k) <= (outcome.start, j) and outcome.start < end]
        for spot in outcome.spots:
            alike = [s for s in there if s.node == spot.node and s.ask.application == spot.ask.application]
            if spot.ask.limit is not None and sum(s.ask.limit is not None for s in alike) > spot.ask.limit:
                broken.append(j)
    return broken


def test_no_start_breaks_a_limit_whatever_limits_an_application_has():
    limited = 0
    for seed in range(250):
        dice = random.Random(seed)
        nodes = tuple(Node(1, cpu=10) for _ in range(dice.randint(1, 3)))
        asks = [Ask(cpu=dice.choice([2, 3, 5]), limit=limit, application="x") for limit in (1, 2, 3)]
        jobs, now = [], 0.0
        for _ in range(8):
            now += dice.randint(0, 3)
            length = float(dice.randint(1, 9))
            asked = ((dice.choice([*asks, Ask(cpu=6)]), dice.choice([1, 1, 2])),)
            # Ends as believed: with others, a plan may be overrun by somebody who stays.
            jobs.append(Job(now, length, asked, length))
        case = Case(nodes, tuple(jobs))
        outcomes = case.by_engine("fifo", "conservative", "first-fit")
        assert limits_broken(case.jobs, outcomes) == [], seed
        plain = case.by_reference("fifo", "conservative", "first-fit")
        assert [str(o.start) for o in outcomes] == [str(float(o.start)) for o in plain], seed
        limited += sum(o.waited["max_per_node"] > 0 for o in outcomes)
    assert limited > 30


@pytest.mark.parametrize("factor", [2.0**-10, 2.0**10])
def test_time_has_no_unit(factor):
    """Jobs that last no time among others: with all times scaled by a power of two, all starts are."""
    instant = 0
    for seed in range(120):
        dice = random.Random(seed)
        case = random_case(seed)
        jobs = [
            replace(job, submit=float(k // 2), duration=d, predicted=d)
            for k, job in enumerate(case.jobs)
            for d in [dice.choice([0.0, 0.0, 1.0, 2.0, 5.0])]
        ]
        scaled = [
            replace(j, submit=j.submit * factor, duration=j.duration * factor, predicted=j.predicted * factor)
            for j in jobs
        ]
        starts = [o.start for o in Case(case.nodes, tuple(jobs)).by_engine("fifo", "conservative", "first-fit")]
        others = [o.start for o in Case(case.nodes, tuple(scaled)).by_engine("fifo", "conservative", "first-fit")]
        assert [str(x * factor) for x in starts] == [str(x) for x in others], seed
        waited = [s > j.submit for s, j in zip(starts, jobs, strict=True) if j.duration == 0.0]
        instant += sum(waited)
    assert instant > 12, "some that last no time must wait"


def test_what_lasts_no_time_keeps_nobody_from_the_same_instant():
    # One GPU, held until 10. Two jobs that last no time and one that lasts 5 s follow each other at 10.
    one = ((Ask(gpus=1), 1),)
    jobs = (Job(0.0, 10.0, one, 10.0), Job(1.0, 0.0, one, 0.0), Job(2.0, 0.0, one, 0.0), Job(3.0, 5.0, one, 5.0))
    starts = [o.start for o in Case((Node(1),), jobs).by_engine("fifo", "conservative", "first-fit")]
    assert starts == [0.0, 10.0, 10.0, 10.0]
