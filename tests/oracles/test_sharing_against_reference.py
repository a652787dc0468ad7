"""Engine and plain simulator agree on every segment where jobs on a GPU slow each other or are cut off from each other.

`python -m tests.oracles.test_sharing_against_reference 3000` compares as many cases; NUMBA_DISABLE_JIT=1 runs the engine
without compilation.
"""

from __future__ import annotations

import math
import random
from dataclasses import replace

import numpy as np
import pytest

from gputwin.optimization.mig.layouts import is_legal
from gputwin.simulation.engine.state.lives import REASONS, SEGMENTS
from gputwin.simulation.engine.state.records import START
from gputwin.simulation.interference.reserved import LEAST, with_reservation
from gputwin.simulation.interference.table import PairTable
from gputwin.simulation.interruptions import Checkpoints, Faults, Maintenance
from gputwin.simulation.mig_profiles import MIG_GPUS
from gputwin.simulation.mig_requests import profile_for
from gputwin.simulation.rules import Changes, Scheduler
from gputwin.simulation.run import run
from gputwin.simulation.shared import GpuSharing
from tests.oracles.cases import Case, bits, random_case
from tests.oracles.reference import Ask, Job, Node
from tests.oracles.reference_change import Costs
from tests.oracles.reference_sharing import Shared, Turns

SPEEDS = np.array([[0.8, 0.5], [0.25, 0.625]])
CASES = 600


def _random_kinds(case: Case, dice: random.Random) -> Case:
    """Return the case with shares of GPUs and two kinds of jobs."""
    kinds = {ask: replace(ask, kind=dice.randrange(2)) for ask in case.asks}
    jobs = [replace(job, groups=tuple((kinds[a], size) for a, size in job.groups)) for job in case.jobs]
    return Case(case.nodes, tuple(jobs))


def differences(seed: int) -> str:
    """Return what engine and plain simulator say differently of a random case; nothing where they agree."""
    dice = random.Random(seed * 11 + 3)
    case = _random_kinds(random_case(seed), dice)
    rule = dice.choice(["fraction", "mps", "time-slice"])
    order = dice.choice(["fifo", "sjf", "priority", "srtf"])
    costs = dice.choice([Costs(), Costs(math.inf, 0, 1)]) if order != "srtf" else Costs()
    backfill, placement = dice.choice(["strict", "greedy"]), dice.choice(["first-fit", "best-fit", "worst-fit"])
    windows = [(n, 2.0, 4.5) for n in range(len(case.nodes)) if dice.random() < 0.3]
    most = dice.choice([1, 2, 3, 4])
    turns = dice.choice([Turns(), Turns(0.1, 0.001, 0.01), Turns(1.0, 0.0, 0.25), Turns(1.0, 0.1, 0.2, True, 0.05)])
    values = {
        "fraction": {},
        "mps": {"most": most},
        "time-slice": {
            "most": most,
            "quantum_ms": turns.quantum * 1e3,
            "least_switch_ms": turns.least * 1e3,
            "most_switch_ms": turns.most_switch * 1e3,
            "swap": turns.swap,
            "swap_gb_per_s": turns.gb_per_second,
        },
    }[rule]
    table = None if rule == "time-slice" else PairTable(("a", "b"), ("v100",), SPEEDS[None], np.ones((1, 2)))
    faults = Faults(maintenance=tuple(Maintenance(n, math.inf, down, up) for n, down, up in windows))
    changes = Changes(
        checkpoints=Checkpoints(costs.interval, costs.save, costs.restart, 0.0, costs.on_preemption),
        faults=faults if windows else None,
        sharing=GpuSharing(rule, values, table),
    )
    workload, cluster, typical = case.engine_input
    done = run(workload, cluster, Scheduler(order, backfill, placement), typical=typical, changes=changes)
    lives = done.world.lives
    plain = Shared(
        case.nodes,
        case.jobs,
        order,
        backfill,
        placement,
        pairs=None if rule == "time-slice" else (1 / SPEEDS - 1).tolist(),
        turns=turns if rule == "time-slice" else None,
        most=None if rule == "fraction" else most,
        costs=costs,
        preemption="remaining-time" if order == "srtf" else "",
        node_changes=[c for n, down, up in windows for c in ((down, n, "down"), (up, n, "up"))],
    )
    plain.simulate()
    engine = sorted(
        (int(s["job"]), *(float(s[k]) for k in ("start", "end", "rate")), REASONS[s["why"]], _spots(lives, s))
        for s in lives.segments[: lives.counts[SEGMENTS]]
    )
    reference = sorted(
        (s.job, s.start, s.end, s.rate, s.why, tuple((p.node, tuple(p.devices)) for p in s.spots))
        for s in plain.segments
    )
    if _without_slivers(engine) != _without_slivers(reference):
        return (
            f"{rule} {values} {order} {backfill} {placement} {windows}: engine {engine}, reference {reference}, {case}"
        )
    for j, job in enumerate(case.jobs):
        life, outcome = lives.records[j], plain.outcomes[j]
        slow = sum(lives.factors[j][name] for name in ("slow_model", "slow_spread", "slow_neighbours", "slow_size"))
        total = job.duration + life["waited"] + life["lost"] + life["overheads"] + slow
        if outcome.fate == "finished" and abs(total - (done.world.queue.jobs["end"][j] - job.submit)) > 1e-6:
            return f"job {j}: the parts of its completion time sum to {total}"
    return ""


def _spots(lives, segment) -> tuple[tuple[int, tuple[int, ...]], ...]:
    first = segment["first_spot"]
    return tuple((int(s["node"]), bits(int(s["devices"]))) for s in lives.spots[first : first + segment["spots"]])


def _without_slivers(segments: list) -> list:
    """Return the segments rounded, without those that only rounding makes longer than nothing."""
    rounded = [(j, *(round(x, 7) for x in (start, end, rate)), *rest) for j, start, end, rate, *rest in segments]
    return [s for s in rounded if s[2] > s[1] or s[4] == "finished"]


@pytest.mark.parametrize("part", range(3))
def test_every_segment_agrees_where_neighbours_slow_jobs(part):
    size = CASES // 3
    for seed in range(part * size, (part + 1) * size):
        assert differences(seed) == ""


# --- MIG: against trying every legal place. ---


def plain_mig(gpu: str, devices: int, jobs: list[tuple[float, float, int]], *, strict: bool) -> list[tuple]:
    """Return (start, device, first slice) of each job (submit, duration, milli) on one node, by trying all layouts."""
    kind, layouts = MIG_GPUS[gpu], [[] for _ in range(devices)]
    found, waiting, running = [None] * len(jobs), [], []
    now, coming = 0.0, list(range(len(jobs)))
    while coming or waiting:
        now = min([jobs[j][0] for j in coming[:1]] + [end for end, *_ in running])
        for ended in [r for r in running if r[0] == now]:
            running.remove(ended)
            layouts[ended[2]].remove(ended[3])
        while coming and jobs[coming[0]][0] == now:
            waiting.append(coming.pop(0))
        for j in list(waiting):
            name = profile_for(kind, jobs[j][2], 0)
            places = [
                (_compute(kind, layouts[d]), -d, start)
                for d in range(devices)
                for start in name.starts
                if is_legal(kind, (*layouts[d], (name.name, start)))
            ]
            if not places:
                if strict:
                    break
                continue
            _, d, start = max(places)
            slot = (name.name, start)
            layouts[-d].append(slot)
            running.append((now + jobs[j][1], j, -d, slot))
            found[j] = (now, -d, start)
            waiting.remove(j)
    return found


def _compute(gpu, layout) -> int:
    return sum(gpu.profile(name).compute_slices for name, _ in layout)


@pytest.mark.parametrize("gpu", ["A100-40GB", "A30-24GB", "H100-80GB"])
def test_mig_instances_stand_where_trying_every_layout_puts_them(gpu):
    for seed in range(60):
        dice = random.Random(seed)
        devices, strict = dice.choice([1, 2, 3]), dice.random() < 0.5
        submits = sorted(dice.randint(0, 8) for _ in range(dice.randint(2, 14)))
        jobs = [
            (float(s), float(dice.randint(1, 7)), dice.choice([100, 140, 200, 250, 280, 400, 450, 500, 560, 700, 1000]))
            for s in submits
        ]
        case = Case((Node(devices, gpu),), tuple(Job(s, d, ((Ask(1, m), 1),), d) for s, d, m in jobs))
        workload, cluster, typical = case.engine_input
        rules = Scheduler("fifo", "strict" if strict else "greedy", "first-fit")
        done = run(workload, cluster, rules, typical=typical, changes=Changes(sharing=GpuSharing("mig")))
        engine = [
            (float(record["start"]), bits(int(slot["devices"]) & ((1 << START) - 1))[0], int(slot["devices"]) >> START)
            for record, slot in zip(done.world.queue.jobs, done.world.slots, strict=True)
        ]
        assert engine == plain_mig(gpu, devices, jobs, strict=strict), f"{seed}: {jobs} on {devices}"


def plain_pools(devices, jobs, reserved, *, strict):
    """Return (start, device, first partition) of jobs (submit, duration, milli, partitions, high), by trying all places."""
    free = [(1000, frozenset(range(8))) for _ in range(devices)]
    waiting, running, found, now = [], [], [None] * len(jobs), -1.0
    while None in found:
        now = min(t for t in [*(j[0] for j in jobs), *(end for end, *_ in running)] if t > now)
        for end, d, milli, held in [r for r in running if r[0] == now]:
            free[d] = free[d][0] + milli, free[d][1] | held
            running.remove((end, d, milli, held))
        waiting += [k for k, j in enumerate(jobs) if j[0] == now]
        for k in list(waiting):
            _, duration, milli, parts, high = jobs[k]
            limit = 8 if high else 8 - reserved
            places = {8 - parts * i for i in range(1, 9)} if high else {parts * i for i in range(9)}
            spots = [
                (free[d][0], d, -start)
                for d in range(devices)
                for start in places
                if start >= 0
                and start + parts <= limit
                and free[d][0] >= milli
                and set(range(start, start + parts)) <= free[d][1]
            ]
            if not spots:
                if strict:
                    break
                continue
            _, d, start = min(spots)
            held = frozenset(range(-start, parts - start))
            free[d] = free[d][0] - milli, free[d][1] - held
            running.append((now + duration, d, milli, held))
            found[k] = now, d, -start
            waiting.remove(k)
    return found


def test_memory_partitions_stand_where_trying_every_place_puts_them():
    for seed in range(60):
        dice = random.Random(seed)
        devices, strict, reserved = dice.choice([1, 2, 3]), dice.random() < 0.5, dice.randint(0, 4)
        submits = sorted(dice.randint(0, 8) for _ in range(dice.randint(2, 14)))
        jobs = [
            (
                float(s),
                float(dice.randint(1, 7)),
                dice.choice([100, 200, 250, 400]),
                dice.randint(1, 4),
                dice.random() < 0.4,
            )
            for s in submits
        ]
        asked = tuple(
            Job(s, d, ((Ask(1, m, gpu_memory=1000 * parts - dice.choice([0, 300])), 1),), d, priority=float(high))
            for s, d, m, parts, high in jobs
        )
        workload, cluster, typical = Case((Node(devices, gpu_memory=8000),), asked).engine_input
        rules = Scheduler("fifo", "strict" if strict else "greedy", "first-fit")
        sharing = GpuSharing("memory", {"reserved": reserved})
        done = run(workload, cluster, rules, typical=typical, changes=Changes(sharing=sharing))
        engine = [
            (float(record["start"]), bits(int(slot["devices"]) & ((1 << START) - 1))[0], int(slot["devices"]) >> START)
            for record, slot in zip(done.world.queue.jobs, done.world.slots, strict=True)
        ]
        assert engine == plain_pools(devices, jobs, reserved, strict=strict), f"{seed}: {jobs} on {devices}, {reserved}"


def test_kept_bandwidth_is_what_neighbours_lose():
    """Of random pairs: high priority keeps its part, the sum of both speeds stays, equal priorities stay as measured."""
    speed = np.random.default_rng(3).uniform(0.3, 1.0, (2, 4, 4))
    for kept in (0.0, 0.5, 0.8):
        found = 1.0 / (1.0 + with_reservation(1.0 / speed - 1.0, kept))
        high, low = found[:, 1::2, 0::2], found[:, 0::2, 1::2].swapaxes(1, 2)
        assert (high >= kept - 1e-12).all()
        unbounded = low > LEAST + 1e-9
        np.testing.assert_allclose((high + low)[unbounded], (speed + speed.swapaxes(1, 2))[unbounded])
        for part in (found[:, 0::2, 0::2], found[:, 1::2, 1::2]):
            np.testing.assert_allclose(part, speed)


if __name__ == "__main__":
    import sys

    for k in range(int(sys.argv[1])):
        text = differences(k)
        assert not text, f"{k}: {text}"
    print(sys.argv[1], "cases agree")
