"""Runs random cases with every trial watched: whatever it tried, afterwards all arrays are what they were, byte for byte.

    NUMBA_DISABLE_JIT=1 python -m tests.oracles.watch_trials 40

prints how many trials of each kind were watched. The engine must not be compiled, so that trials can be watched.
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from gputwin.simulation.engine import kernel
from gputwin.simulation.engine.passes import kueue
from gputwin.simulation.engine.reservations.timeline import chain
from gputwin.simulation.engine.trials import journal, undo
from gputwin.simulation.engine.world import BY_BENEFIT, BY_RANK, CONSERVATIVE, ON_BEST_NODE, RUNS
from gputwin.simulation.interruptions import Checkpoints, Elasticity
from gputwin.simulation.placement import fgd
from gputwin.simulation.policy import BACKFILLS
from gputwin.simulation.rules import Changes, Scheduler
from gputwin.simulation.run import run
from gputwin.simulation.tenants import Fairness
from tests.conformance.crowd import NODES, crowd
from tests.oracles.cases import Case, random_case
from tests.simulation.test_kueue_by_hand import queue

SCRATCH = {
    "index.journal", "index.ranking", "freed", "regions", "endings", "lives.victims", "turns.next_victim", "turns.above",
    "plans.rooms", "plans.cursor", "plans.unsure", "plans.entered",
    "cohorts.winner", "cohorts.lowest", "cohorts.contested", "cohorts.remaining", "cohorts.marks", "cohorts.ranges",
    "cohorts.skipped", "cohorts.stack", "cohorts.candidates", "cohorts.order", "cohorts.victims",
}  # fmt: skip
"""Written before it is read, each time: nobody keeps anything there."""
FOUND = {"reserved", "reserved_from", "slots", "knobs.random", "knobs.sharing.slots"}
"""What a trial finds for the job it is made for: where and when it will start (of slots only those of jobs that do not run).
Placement by chance goes on drawing, so that what was tried does not come again."""


VICTIMS = {BY_RANK: "by rank", BY_BENEFIT: "by benefit", ON_BEST_NODE: "on the best node"}


def arrays(part: Any, name: str = "") -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
    """Give every array of a world, or of a part of it, with its name."""
    if name in SCRATCH or name in FOUND:
        return
    if isinstance(part, tuple):
        for field, value in zip(part._fields, part, strict=True):
            yield from arrays(value, f"{name}.{field}" if name else field)
    else:
        yield name, getattr(part, "array", part)


def _module(depth: int) -> str:
    """Return in which file of the engine the function so many calls up is."""
    return str(sys._getframe(depth).f_globals["__name__"]).removeprefix("gputwin.simulation.engine.")


def picture(world: Any) -> dict[str, bytes]:
    """Return all that a trial must leave as it is."""
    taken = dict(arrays(world))
    jobs, counters, withheld = taken["queue.jobs"].copy(), taken["counters"].copy(), taken["withheld"]
    jobs["planned"][jobs["outcome"] != RUNS] = 0.0
    counters["reserved"] = 0
    running = jobs["outcome"] == RUNS
    size = taken["queue.shapes"]["instances"][jobs["shape"]]
    slots = [
        world.slots.array[j["first_slot"] : j["first_slot"] + n]
        for j, n in zip(jobs[running], size[running], strict=True)
    ]
    taken |= {"queue.jobs": jobs, "counters": counters, "slots": np.concatenate([*slots, world.slots.array[:0]])}
    if world.settings[0].backfill == CONSERVATIVE:
        taken["withheld"] = withheld[:0]
    return {name: array.tobytes() for name, array in taken.items()}


class Watch:
    """Takes a picture of the world when a trial begins and compares it when it is undone."""

    def __init__(self) -> None:
        self.world: Any = None
        self.before: dict[str, bytes] = {}
        self.seen: Counter[str] = Counter()
        self.dice = random.Random(0)

    def check(self, before: dict[str, bytes], kind: str) -> None:
        """Fail where anything is not as it was before."""
        after = picture(self.world)
        changed = [name for name in before if before[name] != after[name]]
        assert not changed, f"a trial of {kind} has changed {', '.join(changed)}"
        self.seen[kind] += 1

    def begin(self, *given: Any) -> None:
        """Stand for `begin`."""
        if self.world.settings[0].backfill == CONSERVATIVE:
            # What nodes will have free is worked out when it is asked for: before the picture is taken.
            for n in range(self.world.machines.nodes.size):
                chain(self.world, n)
        self.before = picture(self.world)
        self.score()
        journal.begin(*given)

    def undo(self, *given: Any) -> None:
        """Stand for `undo`."""
        undo.undo(*given)
        kind = _module(2)
        if kind == "passes.victims":
            kind = f"{_module(3)} {VICTIMS[self.world.settings[0].victims]}"
        self.check(self.before, kind)

    def search(self, found: Callable[..., Any]) -> Callable[..., Any]:
        """Return the search in a tree of quotas, watched."""

        def watched(*given: Any) -> Any:
            before = picture(self.world)
            result = found(*given)
            self.check(before, found.__name__.strip("_"))
            return result

        return watched

    def score(self) -> None:
        """Ask FGD for the points of one node, whatever the run's placement."""
        machines, requests = self.world.machines, self.world.requests
        r, n = self.dice.randrange(requests.size), self.dice.randrange(machines.nodes.size)
        fgd.score(machines, requests, r, n, self.world.knobs)
        fgd.devices(machines, requests, r, n, self.world.knobs)
        self.check(self.before, "fgd")


def watched() -> Watch:
    """Return what watches all trials of this process from now on."""
    # All passes are imported with the rules they belong to, so that none is missed below.
    BACKFILLS.names()
    watch, original = Watch(), kernel.run

    def run_watched(world: Any, *rules: Any) -> int:
        watch.world = world
        return original(world, *rules)

    setattr(kernel, "run", run_watched)  # noqa: B010
    begin, end = journal.begin, undo.undo
    for name, module in list(sys.modules.items()):
        if name.startswith("gputwin.simulation.engine"):
            if getattr(module, "begin", None) is begin and module is not journal:
                setattr(module, "begin", watch.begin)  # noqa: B010
            if getattr(module, "undo", None) is end and module is not undo:
                setattr(module, "undo", watch.undo)  # noqa: B010
    for name in ("compiled_classical_victims", "compiled_fair_victims", "_share_with"):
        setattr(kueue, name, watch.search(getattr(kueue, name)))
    return watch


def settings(seed: int, queues: Path) -> Iterator[tuple[Scheduler, Changes | None]]:
    """Give the rules under which a case is run: each kind of trial, with placements that keep scores and that do not."""
    dice = random.Random(seed)
    placement = dice.choice(["first-fit", "best-fit", "fgd", "fgd", "topology", "random"])
    order = dice.choice(["fifo", "sjf"])
    for backfill in ("easy", "conservative"):
        yield Scheduler(order, backfill, placement), None
    costs = Checkpoints(2.0, 0.5, 0.25, 0.5, dice.random() < 0.5)
    for preemption in ("priority", "benefit", "kube-scheduler"):
        rules = Scheduler("priority", dice.choice(["strict", "greedy"]), placement, {"aging": 0.0})
        yield rules, Changes(preemption=preemption, checkpoints=costs)
    yield Scheduler("fifo", "greedy", placement), Changes(elasticity=Elasticity(0.25, 1.0), checkpoints=costs)
    for rule in ("quota", "kueue-classical", "kueue-fair"):
        fairness = Fairness(rule, {"reclaim": 1.0}) if rule == "quota" else Fairness(rule, queues=str(queues))
        yield Scheduler("priority", "greedy", placement, {"aging": 0.0}, fairness=fairness), Changes(checkpoints=costs)


def cases(seed: int) -> Iterator[Case]:
    """Give a small case of everything mixed, and a crowd with shares of GPUs."""
    yield random_case(seed)
    yield crowd(seed, 14, nodes=NODES[1:11:3])


def main(many: int) -> None:
    """Watch the trials of so many cases and say how many there were."""
    watch = watched()
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(many):
            for case in cases(seed):
                case = Case(case.nodes, tuple(replace(job, tenant=k % 3) for k, job in enumerate(case.jobs)))
                gpus = max(sum(node.gpus for node in case.nodes), 3)
                policy = {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"}
                workload, cluster, typical = case.engine_input
                objects = [queue(name, gpus // 3, preemption=policy) for name in workload.tenants]
                file = Path(folder) / "queues.yaml"
                file.write_text(yaml.safe_dump_all(objects), encoding="utf-8")
                for scheduler, changes in settings(seed, file):
                    try:
                        run(workload, cluster, scheduler, typical=typical, changes=changes)
                    except AssertionError as error:
                        raise AssertionError(f"seed {seed}, {scheduler}, {changes}: {error}") from error
    for kind, count in sorted(watch.seen.items()):
        print(kind, count)


if __name__ == "__main__":
    main(int(sys.argv[1]))
