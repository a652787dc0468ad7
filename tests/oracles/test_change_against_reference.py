"""Engine and plain simulator agree on every segment, cause and cost where jobs are stopped, slowed and resized.

`python -m tests.oracles.test_change_against_reference 10000` compares as many cases; with NUMBA_DISABLE_JIT=1 the engine
runs without compilation, so that a change to it is tried at once.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, replace

import pytest

from gputwin.simulation.engine.attribution.causes import CAUSE_NAMES
from gputwin.simulation.engine.kernel import Stepper
from gputwin.simulation.engine.state.lives import REASONS, SEGMENTS
from gputwin.simulation.interruptions import Checkpoints, Elasticity, Faults, Maintenance, Pool
from gputwin.simulation.node_commands import drain_nodes, start_nodes, stop_nodes
from gputwin.simulation.rules import Changes, Scheduler
from gputwin.simulation.run import Run, run
from tests.oracles.cases import Case, bits, random_case
from tests.oracles.reference_change import Changing, Costs

CASES = 3000
PREEMPTIONS = {"srtf": "remaining-time", "las": "attained-service"}


@dataclass(frozen=True)
class Setting:
    """The rules and changes of one random case."""

    order: str
    backfill: str
    placement: str
    preemption: str
    costs: Costs
    speeds: dict[str, float] | None
    windows: tuple[tuple[int, float | None, float, float], ...]
    promote: float
    elastic: tuple[float, float, float] | None
    pool: tuple[int, ...] = ()
    commands: tuple[tuple[float, int, str, float], ...] = ()

    @property
    def changes(self) -> Changes:
        """Return the same as the engine takes it."""
        windows = (Maintenance(n, math.inf if a is None else a, b, c) for n, a, b, c in self.windows)
        c, resize = self.costs, self.elastic[2] if self.elastic else 0.0
        return Changes(
            preemption=self.preemption,
            speed="gpu-model" if self.speeds else "",
            speeds=self.speeds or {},
            checkpoints=Checkpoints(c.interval, c.save, c.restart, resize, c.on_preemption, stagger=c.stagger),
            faults=Faults(maintenance=tuple(windows)) if self.windows else None,
            elasticity=Elasticity(*self.elastic[:2]) if self.elastic else None,
            pool=Pool(self.pool) if self.pool else None,
        )

    @property
    def parameters(self) -> dict[str, float]:
        """Return the order's parameters."""
        if self.order == "las":
            return {"first": 3.0, "factor": 3.0, "queues": 3.0, "promote": self.promote}
        return {"aging": 0.0} if self.preemption == "priority" else {}

    def by_reference(self, case: Case) -> Changing:
        """Return the finished plain simulator."""
        changes = [(a, n, "drain") for n, a, _, _ in self.windows if a is not None]
        changes += [(b, n, "down") for n, _, b, _ in self.windows] + [(c, n, "up") for n, _, _, c in self.windows]
        plain = Changing(
            case.nodes,
            case.jobs,
            self.order,
            self.backfill,
            self.placement,
            preemption=self.preemption,
            costs=self.costs,
            speeds=self.speeds,
            node_changes=changes,
            promote=self.promote,
            elastic=self.elastic,
            pool=self.pool,
            commands=self.commands,
        )
        plain.simulate()
        return plain

    def by_engine(self, case: Case) -> Run:
        """Return the engine's finished run."""
        rules = Scheduler(self.order, self.backfill, self.placement, self.parameters)
        workload, cluster, typical = case.engine_input
        drive = self.drive if self.pool else None
        return run(workload, cluster, rules, typical=typical, changes=self.changes, drive=drive)

    def drive(self, stepper: Stepper) -> None:
        """Give the commands, each at its time."""
        for time in sorted({time for time, *_ in self.commands}):
            if stepper.run_until(time):
                return
            now = [(node, what, delay) for at, node, what, delay in self.commands if at == time]
            stop_nodes(stepper, time, [node for node, what, _ in now if what == "stop"])
            drain_nodes(stepper, time, [node for node, what, _ in now if what == "drain"])
            start_nodes(stepper, time, {node: delay for node, what, delay in now if what == "start"})


def random_setting(seed: int, case: Case) -> Setting | None:
    """Return rules and changes for a case; None where nothing would change."""
    dice = random.Random(seed * 7 + 1)
    order = dice.choice(["srtf", "las", "priority", "fifo", "sjf"])
    preemption = PREEMPTIONS.get(order) or (dice.choice(["", "priority"]) if order == "priority" else "")
    kinds = [
        Costs(),
        Costs(math.inf, 0, 1),
        Costs(2, 0.5, 0.25),
        Costs(1.5, 0, 0.5, False),
        Costs(2, 0.25, 0.75, False),
    ]
    promote = dice.choice([0.0, 0.0, 1.5]) if order == "las" else 0.0
    pool, commands = _random_pool(dice, len(case.nodes), min(job.submit for job in case.jobs))
    windows = _random_windows(dice, len(case.nodes))
    setting = Setting(
        order=order,
        backfill=dice.choice(["strict", "greedy"]),
        placement=dice.choice(["first-fit", "best-fit", "worst-fit", "consolidate", "load-balance"]),
        preemption=preemption,
        # With promotion and costs, jobs can preempt each other for ever.
        costs=Costs() if promote else dice.choice(kinds),
        speeds=dice.choice([None, None, {"A": 0.5, "B": 2.0}, {"A": 0.75}]),
        windows=tuple(window for window in windows if window[0] not in pool),
        promote=promote,
        elastic=dice.choice([None, None, (0.5, 1.0, 0.0), (0.25, 0.5, 0.5)]),
        pool=pool,
        commands=commands,
    )
    changes = setting.preemption or setting.speeds or setting.windows or setting.elastic or setting.pool
    return setting if changes else None


def _random_pool(
    dice: random.Random, nodes: int, begin: float
) -> tuple[tuple[int, ...], tuple[tuple[float, int, str, float], ...]]:
    """Return the nodes of a pool and what is commanded of them when, from `begin` on; in the end all are started."""
    pool = tuple(n for n in range(nodes) if dice.random() < 0.4) if dice.random() < 0.4 else ()
    commands = {}
    for _ in range(dice.choice([2, 4, 8]) if pool else 0):
        at, n = begin + dice.choice([0.0, 0.5, 1.0, 2.0, 2.5, 3.0, 5.0, 6.5]), dice.choice(pool)
        kind = dice.choice(["start", "start", "stop", "drain"])
        commands[at, n] = (at, n, kind, dice.choice([0.0, 0.5, 1.0, 2.5]))
    last = [(50.0, n, "start", 1.0) for n in pool]
    return pool, (*sorted(commands.values()), *last)


def _random_windows(dice: random.Random, nodes: int) -> tuple[tuple[int, float | None, float, float], ...]:
    windows = {}
    for _ in range(dice.choice([0, 0, 1, 2])):
        drain = dice.choice([0.5, 1, 2, 3, 4.5])
        down = drain + dice.choice([0, 0.5, 2])
        up = down + dice.choice([1, 2.5, 5])
        n = dice.randrange(nodes)
        windows[n] = (n, drain if dice.random() < 0.5 else None, down, up)
    return tuple(windows.values())


def differences(case: Case, setting: Setting) -> list[str]:
    """Return what engine and plain simulator say differently, in words."""
    done, plain = setting.by_engine(case), setting.by_reference(case)
    lives, found = done.world.lives, []
    engine = sorted(
        (int(s["job"]), *(round(float(s[k]), 9) for k in ("start", "end", "rate")), REASONS[s["why"]], _spots(lives, s))
        for s in lives.segments[: lives.counts[SEGMENTS]]
    )
    reference = sorted(
        (
            s.job,
            *(round(float(x), 9) for x in (s.start, s.end, s.rate)),
            s.why,
            tuple((p.node, tuple(p.devices)) for p in s.spots),
        )
        for s in plain.segments
    )
    if engine != reference:
        return [f"segments: engine {engine}, reference {reference}"]
    for j, outcome in enumerate(plain.outcomes):
        if outcome.fate != "finished":
            continue
        life, job, own = lives.records[j], case.jobs[j], plain.lives[j]
        waited = dict(zip(CAUSE_NAMES, lives.earlier[j] + done.world.causes.share[j], strict=True))
        for cause, seconds in waited.items():
            if abs(seconds - outcome.waited[cause]) > 1e-6:
                found.append(f"job {j} waits for {cause}: engine {seconds}, reference {outcome.waited[cause]}")
        for name, plainly in (("waited", own.waited), ("lost", own.lost), ("overheads", own.overhead)):
            if abs(life[name] - plainly) > 1e-6:
                found.append(f"job {j}, {name}: engine {life[name]}, reference {plainly}")
        slow = sum(lives.factors[j][name] for name in ("slow_model", "slow_spread", "slow_neighbours", "slow_size"))
        total = job.duration + life["waited"] + life["lost"] + life["overheads"] + slow
        if abs(total - (done.world.queue.jobs["end"][j] - job.submit)) > 1e-6:
            found.append(f"job {j}: the parts of its completion time sum to {total}")
    return found


def _spots(lives, segment) -> tuple[tuple[int, tuple[int, ...]], ...]:
    first = segment["first_spot"]
    return tuple((int(s["node"]), bits(int(s["devices"]))) for s in lives.spots[first : first + segment["spots"]])


def compare(seeds: range) -> int:
    """Fail on the first case that differs; return how many cases there were."""
    compared = 0
    for seed in seeds:
        case = random_case(seed)
        setting = random_setting(seed, case)
        if setting is not None:
            found = differences(case, setting)
            assert not found, f"random_case({seed}): {'; '.join(found)}\n{setting}\n{case}"
            compared += 1
    return compared


def test_staggered_checkpoints_agree():
    """The same cases with checkpoints that come at another time for each job; all saves found again from the segments."""
    compared = 0
    for seed in range(9000, 9060):
        case = random_case(seed)
        setting = random_setting(seed, case)
        if setting is None or setting.costs.interval == math.inf:
            continue
        setting = replace(setting, costs=replace(setting.costs, stagger=True))
        found = differences(case, setting)
        assert not found, f"{setting}, random_case({seed}): {'; '.join(found)}"
        compared += 1
    assert compared > 15


@pytest.mark.parametrize("part", range(6))
def test_every_segment_cause_and_cost_agrees(part):
    size = CASES // 6
    assert compare(range(part * size, (part + 1) * size)) > size // 2


if __name__ == "__main__":
    import sys

    print(compare(range(int(sys.argv[1]))), "cases agree")
