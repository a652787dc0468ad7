"""The plain simulator with change: jobs are preempted, fail, slow down and go on; nodes leave and come back.

Everything a job does while it holds its place is a list of phases (overhead, work, saving a checkpoint), made anew when
it starts or its rate changes; how far it is follows from walking them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.oracles.reference import Ask, Job, Machine, Node, Outcome, Reference, Spot

DOWN, UP, DRAIN = "down", "up", "drain"
START, STOP = "start", "stop"
FIRST, FACTOR, QUEUES = 3.0, 3.0, 3


@dataclass(frozen=True)
class Costs:
    """What interruptions cost, s."""

    interval: float = math.inf
    save: float = 0.0
    restart: float = 0.0
    on_preemption: bool = True
    stagger: bool = False


@dataclass(frozen=True)
class Segment:
    """One stretch of a job's run."""

    job: int
    start: float
    end: float
    rate: float
    why: str
    spots: tuple[Spot, ...]


@dataclass
class Life:
    """What a job has lived through."""

    done: float = 0.0
    safe: float = 0.0
    attained: float = 0.0
    debt: float = 0.0  # overhead to be paid at the next start
    queued: float = 0.0
    began: float = 0.0  # start of the segment
    since: float = 0.0  # start of the phases
    rate: float = 1.0
    phases: list[tuple[str, float]] = field(default_factory=list)
    promoted_at: float = math.inf
    lost: float = 0.0
    overhead: float = 0.0
    waited: float = 0.0
    first_start: float = math.nan


def queue_of(life: Life, job: Job, limits: tuple[float, float, int]) -> int:
    gpus = sum(a.gpus * a.milli * k for a, k in job.groups if a.gpus) / 1000 or 1.0
    first, factor, queues = limits
    reached = [k for k in range(queues - 1) if life.attained * gpus >= first * factor**k - 1e-6]
    return len(reached)


class Closed(Machine):
    """A node that takes no jobs."""

    def __init__(self, machine: Machine) -> None:
        super().__init__(machine.node)
        self.free = dict.fromkeys(self.free, 0)
        self.share = [0] * len(self.share)
        self.applications, self.classes = machine.applications, machine.classes

    def copy(self) -> Machine:
        return self

    def holds(self, ask: Ask, *, ignoring: Sequence[str] = ()) -> bool:
        return False


class Changing(Reference):
    """One run with change; only strict and greedy."""

    def __init__(
        self,
        nodes: Sequence[Node],
        jobs: Sequence[Job],
        order: str,
        backfill: str,
        placement: str,
        *,
        preemption: str = "",
        costs: Costs | None = None,
        speeds: dict[str, float] | None = None,
        node_changes: Sequence[tuple[float, int, str]] = (),
        limits: tuple[float, float, int] = (FIRST, FACTOR, QUEUES),
        promote: float = 0.0,
        elastic: tuple[float, float, float] | None = None,
        pool: Sequence[int] = (),
        commands: Sequence[tuple[float, int, str, float]] = (),
    ) -> None:
        super().__init__(nodes, jobs, "fifo" if order in ("srtf", "las") else order, backfill, placement)
        self.order, self.preemption, self.costs = order, preemption, costs or Costs()
        self.speeds, self.node_changes = speeds, sorted(node_changes, key=lambda c: c[:2])
        self.limits, self.promote = limits, promote
        self.elastic = elastic
        """Least share of instances, exponent of scaling, s a resize takes."""
        self.lives = [Life(queued=job.submit) for job in jobs]
        if self.costs.stagger:
            for j, life in enumerate(self.lives):
                life.safe = -(j * ((math.sqrt(5.0) - 1.0) / 2.0) % 1.0) * self.costs.interval
        self.segments: list[Segment] = []
        self.out: set[int] = set()
        self.draining: set[int] = set()
        self.pool = set(pool)
        """Nodes that are off until a command starts them."""
        self.commands = sorted(commands, key=lambda c: c[0])
        """(time, node, start | stop | drain, s it takes to boot), in the order in which they are given."""
        self.off: set[int] = set(pool)
        self.booting: dict[int, float] = {}
        """Node to when it is up."""
        self.fresh: set[int] = set()
        """Jobs that started in this pass."""

    # --- Who goes next, and who yields to whom. ---

    def _key(self, j: int) -> float:
        if self.order == "srtf":
            return max(self.jobs[j].predicted - self.lives[j].done, 0.0)
        if self.order == "las":
            return queue_of(self.lives[j], self.jobs[j], self.limits) * 1e11 + self.jobs[j].submit
        if self.order == "priority":
            return -self.jobs[j].priority if self.preemption else self.key(self.jobs[j])
        return self.key(self.jobs[j])

    def _yields(self, v: int, j: int) -> bool:
        if v in self.fresh:
            # Nobody is stopped in the pass in which it starts.
            return False
        if self.preemption == "remaining-time":
            phases = self._phases(j, max(self.jobs[j].predicted - self.lives[j].done, 0.0))
            return self.believed_end[v] > self.now + self._seconds(phases, 1.0)
        if self.preemption == "attained-service":
            return queue_of(self.lives[v], self.jobs[v], self.limits) > queue_of(
                self.lives[j], self.jobs[j], self.limits
            )
        return self.jobs[v].priority < self.jobs[j].priority

    def _rank(self, v: int) -> tuple[float, ...]:
        if self.preemption == "remaining-time":
            return (self.believed_end[v], v)
        if self.preemption == "attained-service":
            return (queue_of(self.lives[v], self.jobs[v], self.limits), self.jobs[v].submit, v)
        return (-self.jobs[v].priority, self.lives[v].began, v)

    # --- Progress. ---

    def _phases(self, j: int, work: float) -> list[tuple[str, float]]:
        """Return what job j does from now until `work` more is done."""
        life = self.lives[j]
        phases = [("overhead", life.debt)]
        to_save = life.safe + self.costs.interval - life.done
        while work > to_save:
            phases += [("work", to_save), ("save", self.costs.save)]
            work -= to_save
            to_save = self.costs.interval
        return [*phases, ("work", work)]

    def _seconds(self, phases: list[tuple[str, float]], rate: float) -> float:
        return sum(amount / rate if kind == "work" else amount for kind, amount in phases)

    def _bring_up(self, j: int) -> None:
        """Walk the phases of job j up to now."""
        life = self.lives[j]
        left = self.now - life.since
        life.attained += left
        life.since = self.now
        while life.phases and (left > 0 or life.phases[0][1] == 0):
            kind, amount = life.phases[0]
            takes = amount / life.rate if kind == "work" else amount
            spent = min(takes, left)
            left -= spent
            if kind == "work":
                life.done += spent * life.rate
            else:
                life.overhead += spent
                if kind == "overhead":
                    life.debt -= spent
            if spent < takes:
                rest = amount - spent * (life.rate if kind == "work" else 1.0)
                life.phases[0] = (kind, rest)
            else:
                life.phases.pop(0)
                if kind == "save":
                    life.safe = life.done

    def _rate_of(self, j: int) -> float:
        speeds = self.speeds or {}
        on = [speeds.get(self.machines[s.node].node.model or "", 1.0) for s in self.outcomes[j].spots if s.ask.gpus]
        model = min(on, default=1.0)
        asked = sum(size for _, size in self.jobs[j].groups)
        share = len(self.outcomes[j].spots) / asked
        return model if share == 1 else model * share ** self.elastic[1]

    def _start(self, j: int, spots: tuple[Spot, ...]) -> None:
        for spot in spots:
            self.machines[spot.node].take(spot.ask, spot.devices)
        outcome, life = self.outcomes[j], self.lives[j]
        outcome.fate, outcome.start, outcome.spots = "runs", self.now, spots
        if math.isnan(life.first_start):
            life.first_start = self.now
        life.waited += self.now - life.queued
        life.began = life.since = self.now
        life.rate, life.promoted_at = self._rate_of(j), math.inf
        life.phases = self._phases(j, self.jobs[j].duration - life.done)
        self.end[j] = self.now + self._seconds(life.phases, life.rate)
        believed = self._phases(j, max(self.jobs[j].predicted - life.done, 0.0))
        self.believed_end[j] = self.now + self._seconds(believed, life.rate)
        self.running.append(j)
        self.fresh.add(j)
        if j in self.waiting:
            self.waiting.remove(j)

    def _stop(self, j: int, why: str) -> None:
        self._bring_up(j)
        life, outcome = self.lives[j], self.outcomes[j]
        self.segments.append(Segment(j, life.began, self.now, life.rate, why, outcome.spots))
        self.running.remove(j)
        for spot in outcome.spots:
            self.machines[spot.node].take(spot.ask, spot.devices, -1)
        self._turn_off_drained()
        self.reserved = None
        if why == "finished":
            outcome.fate = "finished"
            return
        life.debt = self.costs.restart
        if why == "preempted" and self.costs.on_preemption:
            life.safe = life.done
            life.debt += self.costs.save
        life.lost += life.done - max(life.safe, 0.0)
        life.done = max(life.safe, 0.0)
        life.queued = self.now
        if self.promote > 0:
            life.promoted_at = self.now + self.promote * life.attained
        outcome.fate = "waits"
        self.waiting.append(j)

    # --- The loop. ---

    def simulate(self) -> list[Outcome]:
        coming = sorted(range(len(self.jobs)), key=lambda j: (self.jobs[j].submit, j))
        never = [self.placer.place(self.machines, job) is None for job in self.jobs]
        changes = list(self.node_changes)
        while coming or self.running or (self.waiting and (changes or self._promotions() or self._nodes_come())):
            times = [self.end[j] for j in self.running] + [self.jobs[j].submit for j in coming[:1]]
            times += [time for time, *_ in changes[:1]] + self._crossings() + self._promotions()
            times += list(self.booting.values())
            self._advance(min(times + [time for time, *_ in self.commands[:1]]))
            for j in [j for j in self.running if self.end[j] == self.now]:
                self._stop(j, "finished")
            for kind in (DOWN, UP, DRAIN):
                for time, n, what in [c for c in changes if c[0] == self.now and c[2] == kind]:
                    changes.remove((time, n, what))
                    self._change_node(n, what)
                if kind == UP:
                    self._end_boots()
            for j in self.running:
                self._bring_up(j)
            for j in self.waiting:
                if self.lives[j].promoted_at == self.now:
                    self.lives[j].attained = 0.0
            while coming and self.jobs[coming[0]].submit == self.now:
                j = coming.pop(0)
                if never[j]:
                    self.outcomes[j].fate = "never fits"
                else:
                    self.waiting.append(j)
            if self.now in times:
                self._schedule()
            ended = any(self.end[j] == self.now for j in self.running)
            is_due = self.commands and self.commands[0][0] == self.now and not ended
            # What is commanded comes after all else at that time; another pass follows.
            if is_due and self._obey():
                self._schedule()
        return self.outcomes

    def _schedule(self) -> None:
        self._sort()
        self._pass()
        self._grow()
        self._sort()

    # --- Nodes of a pool. ---

    def _nodes_come(self) -> bool:
        return bool(self.booting or self.commands)

    def _end_boots(self) -> None:
        for n in [n for n, up in self.booting.items() if up == self.now]:
            del self.booting[n]

    def _obey(self) -> bool:
        """Carry out the commands of this time that fit the state of their node; return whether there was one."""
        obeyed = False
        while self.commands and self.commands[0][0] == self.now:
            _, n, what, delay = self.commands.pop(0)
            is_up = n not in self.out and n not in self.off and n not in self.booting
            obeyed = obeyed or (is_up if what == DRAIN else (n in self.off) == (what == START))
            if what == START and n in self.off:
                self.off.discard(n)
                self.booting[n] = self.now + delay
            elif what == DRAIN and is_up:
                self._change_node(n, DRAIN)
            elif what == STOP and n not in self.off:
                if n not in self.booting:
                    self._change_node(n, DOWN)
                self.out.discard(n)
                self.draining.discard(n)
                self.booting.pop(n, None)
                self.off.add(n)
            self._turn_off_drained()
        self._end_boots()
        return obeyed

    def _turn_off_drained(self) -> None:
        for n in [n for n in self.draining if n in self.pool]:
            if not any(s.node == n for j in self.running for s in self.outcomes[j].spots):
                self.out.discard(n)
                self.draining.discard(n)
                self.off.add(n)

    def _sort(self) -> None:
        self.waiting.sort(key=lambda j: (self._key(j), j))

    def _promotions(self) -> list[float]:
        times = [self.lives[j].promoted_at for j in self.waiting]
        return [t for t in times if self.now < t < math.inf]

    def _crossings(self) -> list[float]:
        """Return when running jobs reach the next queue's limit."""
        if self.order != "las":
            return []
        times = []
        first, factor, queues = self.limits
        for j in self.running:
            job, life = self.jobs[j], self.lives[j]
            gpus = sum(a.gpus * a.milli * k for a, k in job.groups if a.gpus) / 1000 or 1.0
            for k in range(queues - 1):
                at = life.since + first * factor**k / gpus - life.attained
                if at > self.now:
                    times.append(at)
        return times

    def _change_node(self, n: int, what: str) -> None:
        if what == UP:
            self.out.discard(n)
            self.draining.discard(n)
        elif what == DRAIN and n not in self.out:
            self.out.add(n)
            self.draining.add(n)
        elif what == DOWN:
            there = [j for j in self.running if any(s.node == n for s in self.outcomes[j].spots)]
            for j in there:
                self._stop(j, "drained" if n in self.draining else "failed")
            self.out.add(n)

    def _visible(self) -> list:
        """Return the machines as jobs may use them: a node that is out has nothing to give."""
        machines = [m.copy() for m in self.machines]
        for n in (*self.out, *self.off, *self.booting):
            machines[n] = Closed(machines[n])
        return machines

    def _with(self, nodes: Sequence[int]) -> list:
        """Return the machines as jobs could use them if these nodes were up."""
        machines = self._visible()
        for n in nodes:
            machines[n] = self.machines[n].copy()
        return machines

    def _pass(self) -> None:
        self.fresh.clear()
        if not self.preemption and self.elastic is None:
            for j in list(self.waiting):
                if not self._try(j, self._visible()) and self.backfill == "strict":
                    return
            return
        failed: set[int] = set()
        while True:
            self._sort()
            left = [j for j in self.waiting if j not in failed]
            if not left:
                return
            j = left[0]
            if self._try(j, self._visible()):
                continue
            if self.elastic is not None and self._shrink_for(j):
                assert self._try(j, self._visible())
                continue
            victims = self._victims(j) if self.preemption else None
            if victims is None:
                if self.backfill == "strict":
                    return
                failed.add(j)
                continue
            for v in victims:
                self._stop(v, "preempted")
            assert self._try(j, self._visible())

    # --- Jobs on fewer instances than they ask for. ---

    def _smaller(self, j: int, size: int) -> int | None:
        """Return the next smaller size of job j."""
        least, full = self.elastic[0], self.jobs[j].groups[0][1]
        if len(self.jobs[j].groups) > 1 or full == 1 or size // 2 < max(least * full, 1):
            return None
        return size // 2

    def _sizes(self, j: int) -> list[int]:
        sizes = [self.jobs[j].groups[0][1]]
        while (smaller := self._smaller(j, sizes[-1])) is not None:
            sizes.append(smaller)
        return sizes

    def _shrunk(self, sizes: dict[int, int]) -> list:
        """Return the machines if running jobs had these sizes."""
        machines = self._visible()
        for v, size in sizes.items():
            for spot in self.outcomes[v].spots[size:]:
                if spot.node not in self.out:
                    machines[spot.node].take(spot.ask, spot.devices, -1)
        return machines

    def _shrink_for(self, j: int) -> bool:
        sizes = {v: len(self.outcomes[v].spots) for v in self.running}
        steps: list[int] = []
        while True:
            able = [v for v in self.running if self._smaller(v, sizes[v]) is not None]
            if not able:
                return False
            v = min(able, key=lambda v: (-sizes[v], -self.lives[v].began, v))
            sizes[v] = self._smaller(v, sizes[v])
            steps.append(v)
            if self.placer.place(self._shrunk(sizes), self.jobs[j]) is not None:
                break
        for v in reversed(steps):
            spared = {**sizes, v: max(s for s in self._sizes(v) if self._smaller(v, s) == sizes[v])}
            if self.placer.place(self._shrunk(spared), self.jobs[j]) is not None:
                sizes = spared
        for v in dict.fromkeys(steps):
            if sizes[v] < len(self.outcomes[v].spots):
                self._resize(v, self.outcomes[v].spots[: sizes[v]])
        return True

    def _resize(self, v: int, spots: tuple[Spot, ...]) -> None:
        self._bring_up(v)
        life, outcome = self.lives[v], self.outcomes[v]
        if life.began < self.now:
            self.segments.append(Segment(v, life.began, self.now, life.rate, "resized", outcome.spots))
        for spot in outcome.spots[len(spots) :]:
            self.machines[spot.node].take(spot.ask, spot.devices, -1)
        for spot in spots[len(outcome.spots) :]:
            self.machines[spot.node].take(spot.ask, spot.devices)
        outcome.spots = spots
        self._turn_off_drained()
        saving = sum(amount for kind, amount in life.phases[:1] if kind == "save")
        if life.debt == 0 and saving == 0:
            life.debt = self.elastic[2]
        life.began = self.now
        life.rate = self._rate_of(v)
        work = self.jobs[v].duration - life.done
        life.phases = self._phases(v, work)
        if saving:
            life.phases = [("save", saving), *self._after_save(v, work)]
        self.end[v] = self.now + self._seconds(life.phases, life.rate)
        believed = max(self.jobs[v].predicted - life.done, 0.0)
        phases = [("save", saving), *self._after_save(v, believed)] if saving else self._phases(v, believed)
        self.believed_end[v] = self.now + self._seconds(phases, life.rate)

    def _after_save(self, j: int, work: float) -> list[tuple[str, float]]:
        safe, self.lives[j].safe = self.lives[j].safe, self.lives[j].done
        phases = self._phases(j, work)
        self.lives[j].safe = safe
        return phases

    def _grow(self) -> None:
        """Let jobs that were shrunk grow, in order of submission, as far as there is room, if nobody waits."""
        if self.waiting or self.elastic is None:
            return
        for j in sorted(self.running):
            while True:
                size = len(self.outcomes[j].spots)
                larger = [s for s in self._sizes(j) if self._smaller(j, s) == size]
                if not larger:
                    break
                ask = self.jobs[j].groups[0][0]
                trial = [m.copy() for m in self._visible()]
                spots: list[Spot] = []
                if not all(
                    self.placer._put(trial, ask, self.placer._best(trial, ask), spots)
                    for _ in range(max(larger) - size)
                ):
                    break
                self._resize(j, (*self.outcomes[j].spots, *spots))

    def _without(self, gone: set[int]) -> list:
        machines = self._visible()
        for v in gone:
            for spot in self.outcomes[v].spots:
                if spot.node not in self.out:
                    machines[spot.node].take(spot.ask, spot.devices, -1)
        return machines

    def _victims(self, j: int) -> list[int] | None:
        """Return who must go so that job j fits: the worst first, then those spared that need not go."""
        gone: list[int] = []
        single = sum(size for _, size in self.jobs[j].groups) == 1
        for v in sorted((v for v in self.running if self._yields(v, j)), key=self._rank, reverse=True):
            gone.append(v)
            if self.placer.place(self._without(set(gone)), self.jobs[j]) is not None:
                break
        else:
            return None
        node = None
        if single:
            # It goes to the node of the last victim that has room now, the first of its instances first.
            ask, machines = self.jobs[j].groups[0][0], self._without(set(gone))
            node = next(s.node for s in self.outcomes[gone[-1]].spots if machines[s.node].holds(ask))
        for v in reversed(list(gone)):
            spared = self._without(set(gone) - {v})
            if single:
                fits = spared[node].holds(self.jobs[j].groups[0][0])
            else:
                fits = self.placer.place(spared, self.jobs[j]) is not None
            if fits:
                gone.remove(v)
        return gone

    def _cause(self, j: int) -> str:
        head = self.waiting[0]
        if self.backfill == "strict" and j != head:
            return "behind_other_job"
        machines = self.machines
        visible, booted, all_up = self._visible(), self._with(self.booting), self._with([*self.out, *self.booting])
        self.machines = visible
        cause, lacks = self._shortage(self.jobs[j]), not self._each_group_fits(j)
        self.machines = booted
        starts = self._each_group_fits(j)
        self.machines = all_up
        returns = self._each_group_fits(j)
        self.machines = machines
        if lacks and starts:
            return "node_startup"
        return "outage" if lacks and returns else cause


def totals(run: Changing) -> list[Counter[str]]:
    """Return for each job the parts of its completion time, s."""
    found = []
    for life in run.lives:
        found.append(Counter(waited=life.waited, lost=life.lost, overhead=life.overhead))
    return found
