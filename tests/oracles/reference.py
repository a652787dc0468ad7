"""A plain simulator of the engine's rules: no index, no queue tree, no compiled code; slow, and meant to be believed.

At each instant: jobs end, jobs that outlived their prediction are believed to run as long again, all arrivals join the
queue, then one scheduling pass. Everything is found by looking at everything: nodes are copied to try something out,
the queue is sorted anew, and free amounts are kept per device.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, groupby

from gputwin.simulation.power.devices import gpu_power

WHOLE = 1000
PLENTY = 1 << 40
AMOUNTS = ("cpu", "memory", "disk", "rdma")
NOBODY = frozenset[str]()


@dataclass(frozen=True)
class Ask:
    """What one instance asks for; `milli` and `gpu_memory` are of each of its GPUs."""

    gpus: int = 0
    milli: int = WHOLE
    cpu: int = 0
    memory: int = 0
    disk: int = 0
    rdma: int = 0
    gpu_memory: int = 0
    models: frozenset[str] = NOBODY
    """Where it may run; none named: anywhere."""
    limit: int | None = None
    """Instances of `application` allowed on a node."""
    application: str | None = None
    kind: int = 0
    """Type of job in the table of pairs."""
    demand: int = WHOLE
    """Milli of each GPU it would use alone, where jobs share GPUs whatever they ask for."""
    held: int = 0
    """Memory of each GPU that it fills, where that does not have to fit."""

    @property
    def gpu_class(self) -> int:
        return 0 if self.milli < WHOLE else self.gpus


@dataclass(frozen=True)
class Job:
    """A job: groups of identical instances that start together, or not at all."""

    submit: float
    duration: float
    groups: tuple[tuple[Ask, int], ...]
    predicted: float
    priority: float = 0.0
    tenant: int = 0


@dataclass(frozen=True)
class Node:
    """A machine's capacity; None: not modelled, never short."""

    gpus: int
    model: str | None = None
    cpu: int | None = None
    memory: int | None = None
    disk: int | None = None
    rdma: int | None = None
    gpu_memory: int | None = None
    rack: str | None = None
    domain: str | None = None


@dataclass(frozen=True)
class Spot:
    """Where one instance runs."""

    node: int
    devices: tuple[int, ...]
    ask: Ask


@dataclass
class Outcome:
    """What became of a job; `waited` splits its wait by cause."""

    fate: str = "waits"
    start: float = math.nan
    spots: tuple[Spot, ...] = ()
    waited: Counter[str] = field(default_factory=Counter)


class Machine:
    """What is free on one node."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.free = {a: PLENTY if getattr(node, a) is None else getattr(node, a) for a in AMOUNTS}
        self.share = [WHOLE] * node.gpus
        self.gpu_memory = [PLENTY if node.gpu_memory is None else node.gpu_memory] * node.gpus
        self.applications: Counter[str | None] = Counter()
        self.caps: dict[str | None, int] = {}
        self.classes: Counter[int] = Counter()

    def copy(self) -> Machine:
        other = Machine.__new__(Machine)
        other.node = self.node
        other.free, other.share, other.gpu_memory = dict(self.free), list(self.share), list(self.gpu_memory)
        other.applications, other.classes = Counter(self.applications), Counter(self.classes)
        other.caps = dict(self.caps)
        return other

    @property
    def gpu_free(self) -> int:
        return sum(self.share)

    def device_fits(self, ask: Ask, d: int) -> bool:
        return self.share[d] >= ask.milli and self.gpu_memory[d] >= ask.gpu_memory

    def fitting(self, ask: Ask) -> list[int]:
        return [d for d in range(self.node.gpus) if self.device_fits(ask, d)]

    def allows(self, ask: Ask) -> bool:
        return ask.gpus == 0 or not ask.models or not self.node.model or self.node.model in ask.models

    def holds(self, ask: Ask, *, ignoring: Sequence[str] = ()) -> bool:
        """Return whether one more instance fits, whatever the amounts in `ignoring` (and 'limit')."""
        return (
            self.allows(ask)
            and len(self.fitting(ask)) >= ask.gpus
            and all(self.free[a] >= getattr(ask, a) for a in AMOUNTS if a not in ignoring and getattr(ask, a) > 0)
            and (ask.limit is None or "limit" in ignoring or self._living_allowed(ask))
        )

    def _living_allowed(self, ask: Ask) -> bool:
        """Return whether one more of its application may live here, by its own limit and those of who is planned."""
        most = min(ask.limit or 0, self.caps.get(ask.application, PLENTY))
        return self.applications[ask.application] < most

    def bear(self, ask: Ask, living: int) -> None:
        """Let no more instances come than a planned one can bear that will have `living` of its application there."""
        if ask.limit is not None:
            most = self.applications[ask.application] + max(ask.limit - living, 0)
            self.caps[ask.application] = min(self.caps.get(ask.application, PLENTY), most)

    def take(self, ask: Ask, devices: Sequence[int], sign: int = 1) -> None:
        for amount in AMOUNTS:
            self.free[amount] -= sign * getattr(ask, amount)
        for d in devices:
            self.share[d] -= sign * ask.milli
            self.gpu_memory[d] -= sign * ask.gpu_memory
        if ask.limit is not None:
            self.applications[ask.application] += sign
        if ask.gpus > 0:
            self.classes[ask.gpu_class] += sign

    def room(self, ask: Ask, most: int, *, ignoring: Sequence[str] = ()) -> int:
        """Return how many instances fit, at most `most`: one after the other on the devices that can give most shares."""
        trial, count = self.copy(), 0
        while count < most and trial.holds(ask, ignoring=ignoring):
            shares = sorted(trial.fitting(ask), key=lambda d: -_shares(trial, ask, d))
            trial.take(ask, shares[: ask.gpus])
            count += 1
        return count


def _shares(machine: Machine, ask: Ask, d: int) -> int:
    by_memory = machine.gpu_memory[d] // ask.gpu_memory if ask.gpu_memory else PLENTY
    return min(machine.share[d] // ask.milli, by_memory)


# --- Who goes next: the lowest first, ties by submission. ---

ORDERS: dict[str, Callable[[Job], float]] = {
    "fifo": lambda job: job.submit,
    "sjf": lambda job: job.predicted,
    "gpu-time": lambda job: job.predicted * max(sum(a.gpus * a.milli * k for a, k in job.groups if a.gpus), 1) / 1000.0,
    "priority": lambda job: 0.001 * job.submit - job.priority,
}

# --- Where it goes: the highest score first, ties to the first node. ---


class Fleet:
    """What scores may look at besides the machine: the largest node, and the typical workload."""

    def __init__(self, nodes: Sequence[Node], jobs: Sequence[Job]) -> None:
        self.cpu = max(max(PLENTY if n.cpu is None else n.cpu for n in nodes), 1)
        self.gpu = max(max(n.gpus for n in nodes) * WHOLE, 1)
        self.models = sorted({n.model or "" for n in nodes})
        self.typical = typical_kinds(jobs, self.models)


def typical_kinds(jobs: Sequence[Job], models: Sequence[str]) -> list[tuple[int, int, int, int, float]]:
    """Return (CPU, share, GPUs, models, popularity) of the most frequent kinds of instances, up to 95 % of all.

    Models are a bit set over `models`.
    """
    counts: Counter[tuple[int, int, int, int]] = Counter()
    for job in jobs:
        for ask, size in job.groups:
            allowed = sum(1 << k for k, m in enumerate(models) if not ask.models or m in ask.models or not m)
            counts[ask.cpu, ask.milli if ask.gpus else 0, ask.gpus, allowed] += size
    kinds = sorted(counts.items(), key=lambda item: (item[1], item[0]), reverse=True)
    kept, covered = [], 0
    for kind, count in kinds:
        kept.append((kind, count))
        covered += count
        if covered >= 0.95 * counts.total():
            break
    total = counts.total()
    return [(*kind, count / total / (covered / total)) for kind, count in kept]


def fragmentation(machine: Machine, fleet: Fleet) -> float:
    """Return the idle milli-GPU that the typical workload could not use (Weng et al., ATC'23, section 3)."""
    # By what a kind lacks, in this order: ties between nodes depend on the order of additions.
    lacks = dict.fromkeys(("both", "gpu", "cpu", "no gpus wanted", "no gpus wanted, no room", "model"), 0.0)
    model = fleet.models.index(machine.node.model or "")
    for cpu, milli, gpus, allowed, popularity in fleet.typical:
        usable = [share for share in machine.share if share >= milli]
        enough_cpu, wasted = machine.free["cpu"] >= cpu, machine.gpu_free
        if gpus == 0:
            lack = "no gpus wanted" if enough_cpu else "no gpus wanted, no room"
        elif not allowed >> model & 1:
            lack = "model"
        elif len(usable) < gpus:
            lack = "gpu" if enough_cpu else "both"
        elif not enough_cpu:
            lack = "cpu"
        else:
            lack, wasted = "gpu", machine.gpu_free - sum(usable)
        lacks[lack] += popularity * wasted
    total = 0.0
    for part in lacks.values():
        total += part
    return total


def fullest(machine: Machine, ask: Ask, fleet: Fleet) -> tuple[int, ...]:
    if ask.gpus > 1 and ask.milli < WHOLE:
        # Who shares several devices takes the emptiest, or fewer would fit than there is room for.
        return emptiest(machine, ask, fleet)
    return tuple(sorted(sorted(machine.fitting(ask), key=lambda d: machine.share[d])[: ask.gpus]))


def emptiest(machine: Machine, ask: Ask, fleet: Fleet) -> tuple[int, ...]:
    return tuple(sorted(sorted(machine.fitting(ask), key=lambda d: -machine.share[d])[: ask.gpus]))


def first_fit(machine: Machine, ask: Ask, fleet: Fleet) -> float:
    return 0.0


def best_fit(machine: Machine, ask: Ask, fleet: Fleet) -> float:
    cpu = (machine.free["cpu"] - ask.cpu) / fleet.cpu
    gpu = (machine.gpu_free - ask.gpus * ask.milli) / fleet.gpu
    return int(100.0 * (1.0 - 0.5 * cpu - 0.5 * gpu))


def added_power(machine: Machine, ask: Ask, fleet: Fleet) -> float:
    """Return minus what one more instance would draw, W; of equal draws the fuller node."""
    power = gpu_power(machine.node.model)
    first = sum(machine.share[d] == WHOLE for d in fullest(machine, ask, fleet)) if ask.gpus else 0
    share = ask.gpus * ask.milli / WHOLE
    added = first * (power.context_watts - power.idle_watts) + share * (power.load_watts - power.context_watts)
    return -added - 1e-6 * machine.gpu_free


def worst_fit(machine: Machine, ask: Ask, fleet: Fleet) -> float:
    return machine.gpu_free / fleet.gpu + 1e-6 * machine.free["cpu"] / fleet.cpu


def least_loaded(machine: Machine, ask: Ask, fleet: Fleet) -> float:
    return min((machine.share[d] for d in emptiest(machine, ask, fleet)), default=0)


def load_balance(machine: Machine, ask: Ask, fleet: Fleet) -> float:
    cpu = (machine.free["cpu"] - ask.cpu) / max(PLENTY if machine.node.cpu is None else machine.node.cpu, 1)
    if machine.node.gpus == 0:
        return cpu
    return 0.5 * cpu + 0.5 * ((machine.gpu_free - ask.gpus * ask.milli) / (1000.0 * machine.node.gpus))


def dot_product(machine: Machine, ask: Ask, fleet: Fleet) -> float:
    cpu = machine.free["cpu"] / fleet.cpu * (ask.cpu / fleet.cpu)
    gpu = machine.gpu_free / fleet.gpu * (ask.gpus * ask.milli / fleet.gpu)
    return int(100.0 * (1.0 - (cpu + gpu) / 2.0))


def gpu_packing(machine: Machine, ask: Ask, fleet: Fleet) -> float:
    if ask.gpus == 0:
        return 0.0
    if all(share == WHOLE for share in machine.share):
        return max(33 - machine.node.gpus, machine.node.gpus)
    in_use = sorted(machine.share[d] for d in machine.fitting(ask) if machine.share[d] < WHOLE)[: ask.gpus]
    if len(in_use) < ask.gpus:
        return max(50 - (ask.gpus - len(in_use)), 33)
    return max(100 - sum(share * 100 // WHOLE for share in in_use) // 10, 50)


def gpu_clustering(machine: Machine, ask: Ask, fleet: Fleet) -> float:
    if ask.gpus == 0:
        return 0.0
    points = 25 * (fleet.gpu - machine.gpu_free) // fleet.gpu
    alike = machine.classes[ask.gpu_class] > 0
    others = any(count > 0 for kind, count in machine.classes.items() if kind != ask.gpu_class)
    if alike:
        return points + (50 if others else 75)
    return points if others else points + 25


def fgd(machine: Machine, ask: Ask, fleet: Fleet) -> tuple[int, tuple[int, ...]]:
    """Return the most points the node can get and the devices that get them."""
    choices = [(d,) for d in machine.fitting(ask)] if ask.gpus == 1 else [fullest(machine, ask, fleet)]
    before, scored = fragmentation(machine, fleet), []
    for devices in choices:
        trial = machine.copy()
        trial.take(ask, devices)
        fall = (before - fragmentation(trial, fleet)) / 1000.0
        scored.append((int(1.0 / (1.0 + math.exp(-fall)) * 100.0), devices))
    return max(scored, key=lambda choice: choice[0])


def fgd_score(machine: Machine, ask: Ask, fleet: Fleet) -> float:
    return fgd(machine, ask, fleet)[0]


def fgd_devices(machine: Machine, ask: Ask, fleet: Fleet) -> tuple[int, ...]:
    return fullest(machine, ask, fleet) if ask.milli == WHOLE else fgd(machine, ask, fleet)[1]


Score = Callable[[Machine, Ask, Fleet], float]
Devices = Callable[[Machine, Ask, Fleet], tuple[int, ...]]
PLACEMENTS: dict[str, tuple[Score, Devices, str]] = {
    "first-fit": (first_fit, fullest, "score"),
    "best-fit": (best_fit, fullest, "score"),
    "worst-fit": (worst_fit, emptiest, "score"),
    "least-loaded": (least_loaded, emptiest, "score"),
    "load-balance": (load_balance, emptiest, "score"),
    "dot-product": (dot_product, fullest, "score"),
    "gpu-packing": (gpu_packing, fullest, "score"),
    "gpu-clustering": (gpu_clustering, fullest, "score"),
    "fgd": (fgd_score, fgd_devices, "score"),
    "power": (added_power, fullest, "score"),
    "consolidate": (best_fit, fullest, "consolidate"),
    "topology": (best_fit, fullest, "topology"),
}


def hardest_first(groups: Sequence[tuple[Ask, int]], nodes: Sequence[Node]) -> tuple[tuple[Ask, int], ...]:
    """Return a gang's roles in the order in which they are placed: those that fewest empty nodes can hold come first.

    Among equals, who asks for more GPU share, CPU, memory, disk, RDMA, GPU memory, in that order; then who has the lower
    limit; then as given.
    """

    def ease(group: tuple[Ask, int]) -> tuple[float, ...]:
        ask = group[0]
        holding = sum(Machine(node).holds(ask) for node in nodes)
        amounts = (-getattr(ask, a) for a in AMOUNTS)
        limit = math.inf if ask.limit is None else ask.limit
        return holding, -ask.gpus * ask.milli, *amounts, -ask.gpu_memory, limit

    return tuple(sorted(groups, key=ease))


class Placer:
    """Finds nodes and devices for the instances of a job, whose roles are in the order in which they are placed."""

    def __init__(self, placement: str, fleet: Fleet) -> None:
        self.score, self.devices, self.gang = PLACEMENTS[placement]
        self.fleet = fleet

    def place(self, machines: Sequence[Machine], job: Job) -> tuple[Spot, ...] | None:
        """Return where all instances would go, or None if one finds no place; the machines stay as they are."""
        trial = [m.copy() for m in machines]
        spots: list[Spot] = []
        for ask, size in job.groups:
            if size == 1 or self.gang == "score":
                placed = all(self._put(trial, ask, self._best(trial, ask), spots) for _ in range(size))
            else:
                placed = self._put_close(trial, ask, size, spots)
            if not placed:
                return self._search(machines, job) if len(job.groups) > 1 else None
        return tuple(spots)

    def _search(self, machines: Sequence[Machine], job: Job) -> tuple[Spot, ...] | None:
        """Return the first complete assignment, instance by instance, in order of node and device set; None for none.

        Instances of a role are alike, so none comes before the one before it in that order.
        """
        trial = [m.copy() for m in machines]
        asked = [ask for ask, size in job.groups for _ in range(size)]
        spots: list[Spot] = []

        def rest_fits(k: int) -> bool:
            left = Counter(asked[k:])
            return all(sum(m.room(ask, size) for m in trial) >= size for ask, size in left.items())

        def put_rest(k: int) -> bool:
            if k == len(asked):
                return True
            ask = asked[k]
            same_role = k > 0 and len(_roles(job, k)) == len(_roles(job, k - 1))
            earliest = (spots[-1].node, _number(spots[-1].devices)) if same_role else (0, 0)
            if not rest_fits(k):
                return False
            for n in range(earliest[0], len(trial)):
                for devices in _choices(trial[n], ask):
                    if (n, _number(devices)) < earliest:
                        continue
                    trial[n].take(ask, devices)
                    spots.append(Spot(n, devices, ask))
                    if put_rest(k + 1):
                        return True
                    spots.pop()
                    trial[n].take(ask, devices, -1)
            return False

        return tuple(spots) if put_rest(0) else None

    def _put(self, machines: Sequence[Machine], ask: Ask, n: int | None, spots: list[Spot]) -> bool:
        if n is None or not machines[n].holds(ask):
            return False
        devices = self.devices(machines[n], ask, self.fleet) if ask.gpus else ()
        machines[n].take(ask, devices)
        spots.append(Spot(n, devices, ask))
        return True

    def _best(self, machines: Sequence[Machine], ask: Ask) -> int | None:
        nodes = [n for n, m in enumerate(machines) if m.holds(ask)]
        return max(nodes, key=lambda n: self.score(machines[n], ask, self.fleet), default=None)

    def _put_close(self, machines: Sequence[Machine], ask: Ask, size: int, spots: list[Spot]) -> bool:
        """Put the gang on few nodes: the one with least room that holds all that is left, else the roomiest."""
        nodes = self._region(machines, ask, size) if self.gang == "topology" else list(range(len(machines)))
        left = size
        while left > 0:
            room = {n: machines[n].room(ask, PLENTY if ask.gpus else 99) for n in nodes}
            holding = [n for n in nodes if room[n] >= left]
            if holding:
                n = min(holding, key=lambda n: room[n])
            else:
                n = max(nodes, key=lambda n: room[n])
            if room[n] == 0 or not all(self._put(machines, ask, n, spots) for _ in range(min(room[n], left))):
                return False
            left -= min(room[n], left)
        return True

    def _region(self, machines: Sequence[Machine], ask: Ask, size: int) -> list[int]:
        """Return the nodes of the rack, else the network domain, with least room for the gang; else all nodes."""
        everywhere = list(range(len(machines)))
        room = [m.room(ask, PLENTY if ask.gpus else 99) for m in machines]
        if max(room) >= size:
            return everywhere
        for level in ("rack", "domain"):
            names = list(dict.fromkeys(getattr(m.node, level) for m in machines))
            regions = [[n for n in everywhere if getattr(machines[n].node, level) == name] for name in names if name]
            enough = [region for region in regions if sum(room[n] for n in region) >= size]
            if enough:
                return min(enough, key=lambda region: sum(room[n] for n in region))
        return everywhere


def _roles(job: Job, k: int) -> list[int]:
    """Return the roles of job up to that of its instance k."""
    ends = [sum(size for _, size in job.groups[: g + 1]) for g in range(len(job.groups))]
    return [g for g, end in enumerate(ends) if g == 0 or ends[g - 1] <= k]


def _number(devices: Sequence[int]) -> int:
    return sum(1 << d for d in devices)


def _choices(machine: Machine, ask: Ask) -> list[tuple[int, ...]]:
    """Return the device sets one more instance could take, as binary numbers in order; of sets alike, the first.

    Whole GPUs are always the first free ones.
    """
    if not machine.holds(ask):
        return []
    if ask.gpus == 0 or ask.milli == WHOLE:
        return [tuple(machine.fitting(ask)[: ask.gpus])]
    found: dict[tuple[tuple[int, int], ...], tuple[int, ...]] = {}
    for devices in sorted(combinations(machine.fitting(ask), ask.gpus), key=_number):
        found.setdefault(tuple(sorted((machine.share[d], machine.gpu_memory[d]) for d in devices)), devices)
    return list(found.values())


def _least(now: Machine, later: Machine) -> Machine:
    """Return what is free both now and later, with the present company."""
    both = now.copy()
    both.free = {a: min(now.free[a], later.free[a]) for a in AMOUNTS}
    both.share = [min(pair) for pair in zip(now.share, later.share, strict=True)]
    both.gpu_memory = [min(pair) for pair in zip(now.gpu_memory, later.gpu_memory, strict=True)]
    both.applications |= later.applications  # the larger count of each
    return both


# --- The loop. ---


class Reference:
    """One run."""

    def __init__(
        self,
        nodes: Sequence[Node],
        jobs: Sequence[Job],
        order: str,
        backfill: str,
        placement: str,
        max_wait: float = math.inf,
    ) -> None:
        self.backfill, self.max_wait = backfill, max_wait
        jobs = [replace(job, groups=hardest_first(job.groups, nodes)) for job in jobs]
        self.jobs = jobs
        self.starving: set[int] = set()
        self.key = ORDERS[order]
        self.placer = Placer(placement, Fleet(nodes, jobs))
        self.machines = [Machine(n) for n in nodes]
        self.outcomes = [Outcome() for _ in jobs]
        self.waiting: list[int] = []
        self.running: list[int] = []
        self.end: dict[int, float] = {}
        self.believed_end: dict[int, float] = {}
        self.outlived: dict[int, float] = {}
        """When each job will have run as long as it is believed to."""
        self.reserved: tuple[int, float, tuple[Spot, ...]] | None = None
        self.plans: dict[int, tuple[float, tuple[Spot, ...]]] = {}
        self.plans_hold = True
        self.promises: dict[int, float] = {}
        """The first start that each job was promised, s."""
        self.now = -math.inf

    def simulate(self) -> list[Outcome]:
        coming = sorted(range(len(self.jobs)), key=lambda j: (self.jobs[j].submit, j))
        never = [self.placer.place(self.machines, job) is None for job in self.jobs]
        while coming or self.running or self.plans:
            corrections = [self.outlived[j] for j in self.running if self.now <= self.outlived[j] < self.end[j]]
            events = [self.end[j] for j in self.running] + [start for start, _ in self.plans.values()]
            if self.backfill in ("easy", "conservative") or (self.backfill == "greedy" and self.max_wait < math.inf):
                events += corrections
            events += [self._starves(j) for j in self.waiting if j not in self.starving and self.max_wait < math.inf]
            self._advance(min(events + [self.jobs[j].submit for j in coming[:1]]))
            for j in [j for j in self.running if self.end[j] == self.now]:
                self._finish(j)
            for j in self.running:
                if self.outlived[j] == self.now:
                    self.outlived[j] = self.now + max(self.now - self.outcomes[j].start, 1.0)
                    self.believed_end[j] = self.outlived[j]
                    self.reserved, self.plans_hold = None, False
            for j in self.waiting:
                if j not in self.starving and self._starves(j) == self.now:
                    self.starving.add(j)
                    self.reserved, self.plans_hold = None, False
            while coming and self.jobs[coming[0]].submit == self.now:
                j = coming.pop(0)
                if never[j]:
                    self.outcomes[j].fate = "never fits"
                elif self.backfill != "loss":
                    self.waiting.append(j)
                elif not self._try(j, self.machines):
                    self.outcomes[j].fate = "lost"
            self.waiting.sort(key=lambda j: (-math.inf if j in self.starving else self.key(self.jobs[j]), j))
            self._pass()
        return self.outcomes

    def _starves(self, j: int) -> float:
        return self.jobs[j].submit + self.max_wait

    def _rule(self) -> str:
        """Return the rule of overtaking in force: no greed while somebody has reached the longest wait."""
        limited = self.backfill == "greedy" and self.waiting and self.waiting[0] in self.starving
        return "easy" if limited else self.backfill

    def _advance(self, to: float) -> None:
        """Go on to the next instant and charge what passed to what each waiting job waits for."""
        for j in self.waiting:
            self.outcomes[j].waited[self._cause(j)] += to - self.now
        self.now = to

    def _finish(self, j: int) -> None:
        self.running.remove(j)
        self.outcomes[j].fate = "finished"
        for spot in self.outcomes[j].spots:
            self.machines[spot.node].take(spot.ask, spot.devices, -1)
        if self.believed_end[j] != self.now:
            self.reserved, self.plans_hold = None, False

    def _try(self, j: int, machines: Sequence[Machine]) -> bool:
        """Start job j where the policy puts it on `machines` (the cluster, or what of it j may use)."""
        spots = self.placer.place(machines, self.jobs[j])
        if spots is not None:
            self._start(j, spots)
        return spots is not None

    def _start(self, j: int, spots: tuple[Spot, ...]) -> None:
        for spot in spots:
            self.machines[spot.node].take(spot.ask, spot.devices)
        outcome = self.outcomes[j]
        outcome.fate, outcome.start, outcome.spots = "runs", self.now, spots
        self.end[j], self.outlived[j] = self.now + self.jobs[j].duration, self.now + self.jobs[j].predicted
        self.believed_end[j] = self._finish_of(j, self.now) if self.backfill == "conservative" else self.outlived[j]
        self.running.append(j)
        if j in self.waiting:
            self.waiting.remove(j)

    def _pass(self) -> None:
        if self.backfill == "conservative":
            self._plan_all()
            return
        while self._rule() != "greedy" and self.waiting and self._try(self.waiting[0], self.machines):
            # Whoever goes before the first blocked job may take what was reserved for that one.
            self.reserved = None
        if self._rule() == "greedy":
            for j in list(self.waiting):
                self._try(j, self.machines)
        if self._rule() != "easy" or not self.waiting:
            return
        if self.reserved is None or self.reserved[0] != self.waiting[0]:
            self.reserved = self._reserve(self.waiting[0])
        for j in self.waiting[1:]:
            short = self.now + self.jobs[j].predicted <= self.reserved[1]
            self._try(j, self.machines if short else self._beside_reservation())

    def _after(self, time: float) -> list[Machine]:
        """Return the cluster once all jobs believed to end by `time` have ended."""
        machines = [m.copy() for m in self.machines]
        for j in self.running:
            if self.believed_end[j] <= time:
                for spot in self.outcomes[j].spots:
                    machines[spot.node].take(spot.ask, spot.devices, -1)
        return machines

    def _reserve(self, j: int) -> tuple[int, float, tuple[Spot, ...]]:
        """Return the first believed end at which job j fits, and where it will go."""
        for time, _ in groupby(sorted(self.believed_end[k] for k in self.running)):
            spots = self.placer.place(self._after(time), self.jobs[j])
            if spots is not None:
                self.promises.setdefault(j, time)
                return j, time, spots
        raise AssertionError("a job that fits on the empty cluster fits once everybody has ended")

    def _beside_reservation(self) -> list[Machine]:
        """Return what is free both now and beside the reservation once it begins."""
        assert self.reserved is not None
        _, begin, spots = self.reserved
        then = self._after(begin)
        for spot in spots:
            then[spot.node].take(spot.ask, spot.devices)
        return [_least(now, later) for now, later in zip(self.machines, then, strict=True)]

    # --- Conservative backfilling: everybody has a plan, and nobody may get in another's way. ---

    def _finish_of(self, j: int, start: float) -> float:
        """Return when a plan of job j would end: what lasts no time has its place until the next moment."""
        return max(start + self.jobs[j].predicted, math.nextafter(start, math.inf))

    def _plan_all(self) -> None:
        """Plan who has no plan and start who is due; where ends differ from what was believed, look at every plan.

        One by one, in order: a plan that no longer holds is made anew, and one that can start earlier is moved.
        """
        look, self.plans_hold = not self.plans_hold, True
        for j in list(self.waiting):
            if j not in self.plans:
                self.plans[j] = self._plan(j)
            elif look:
                before = self.plans.pop(j)
                found = self._plan(j)
                self.plans[j] = before if self._holds(j, before) and found[0] >= before[0] else found
            if self.plans[j][0] <= self.now:
                self._start(j, self.plans.pop(j)[1])

    def _plan(self, j: int) -> tuple[float, tuple[Spot, ...]]:
        """Return the earliest time from which job j fits for as long as it is believed to run, and where."""
        ends = {self.believed_end[k] for k in self.running}
        ends |= {self._finish_of(k, start) for k, (start, _) in self.plans.items()}
        for time in [self.now, *sorted(end for end in ends if end > self.now)]:
            spots = self.placer.place(self._fullest_between(time, self._finish_of(j, time)), self.jobs[j])
            if spots is not None:
                self.promises.setdefault(j, time)
                return time, spots
        raise AssertionError("a job that fits on the empty cluster fits once everybody has ended")

    def _holds(self, j: int, plan: tuple[float, tuple[Spot, ...]]) -> bool:
        """Return whether job j, which has no plan now, fits where and when this plan says."""
        start, spots = plan
        machines = self._fullest_between(start, self._finish_of(j, start))
        for spot in spots:
            machine = machines[spot.node]
            if not machine.holds(spot.ask) or not set(spot.devices) <= set(machine.fitting(spot.ask)):
                return False
            machine.take(spot.ask, spot.devices)
        return True

    def _fullest_between(self, begin: float, end: float) -> list[Machine]:
        """Return the least that is free at any moment in [begin, end); it falls only when a plan starts."""
        moments = [begin, *(start for start, _ in self.plans.values() if begin < start < end)]
        least = self._planned_at(begin)
        for moment in moments[1:]:
            least = [_least(m, other) for m, other in zip(least, self._planned_at(moment), strict=True)]
        for machine in least:
            # A plan that somebody overruns holds more than there is; it cannot take from other devices.
            machine.free = {a: max(x, 0) for a, x in machine.free.items()}
            machine.share = [max(x, 0) for x in machine.share]
            machine.gpu_memory = [max(x, 0) for x in machine.gpu_memory]
        for moment in moments:
            then = self._planned_at(moment)
            for k, (start, spots) in self.plans.items():
                if start <= moment < self._finish_of(k, start):
                    for spot in spots:
                        least[spot.node].bear(spot.ask, then[spot.node].applications[spot.ask.application])
        return least

    def _planned_at(self, moment: float) -> list[Machine]:
        """Return the cluster beside the plans in force then; who is only planned is no company yet."""
        machines = self._after(moment)
        company = [Counter(m.classes) for m in machines]
        for k, (start, spots) in self.plans.items():
            if start <= moment < self._finish_of(k, start):
                for spot in spots:
                    machines[spot.node].take(spot.ask, spot.devices)
        for machine, classes in zip(machines, company, strict=True):
            machine.classes = classes
        return machines

    # --- Why jobs wait. ---

    def _cause(self, j: int) -> str:
        head = self.waiting[0]
        if self.backfill == "strict" and j != head:
            return "behind_other_job"
        rule = self._rule()
        first = rule == "easy" and self.jobs[j].groups == self.jobs[head].groups
        if rule in ("easy", "conservative") and not first and self._each_group_fits(j):
            return "behind_other_job"
        return self._shortage(self.jobs[j])

    def _room(self, ask: Ask, size: int, *ignoring: str) -> bool:
        return sum(m.room(ask, size, ignoring=ignoring) for m in self.machines) >= size

    def _each_group_fits(self, j: int) -> bool:
        return all(self._room(ask, size) for ask, size in self.jobs[j].groups)

    def _shortage(self, job: Job) -> str:
        for ask, size in job.groups:
            if self._room(ask, size):
                continue
            if ask.gpus > 0:
                needed = size * ask.gpus * ask.milli
                if sum(m.gpu_free for m in self.machines if m.allows(ask)) < needed:
                    return "gpu_model" if sum(m.gpu_free for m in self.machines) >= needed else "gpu_shortage"
                if not self._room(ask, size, *AMOUNTS, "limit"):
                    return "fragmentation"
            if self._room(ask, size, "limit"):
                return "max_per_node"
            if self._room(ask, size, "limit", "rdma"):
                return "rdma"
            free = {a: sum(m.free[a] for m in self.machines) for a in ("cpu", "memory", "disk")}
            enough = all(free[a] >= size * getattr(ask, a) for a in free)
            return "fragmentation" if ask.gpus == 0 and enough else "cpu_or_memory"
        return "fragmentation"


def simulate(
    nodes: Sequence[Node], jobs: Sequence[Job], order: str, backfill: str, placement: str, max_wait: float = math.inf
) -> list[Outcome]:
    """Return what becomes of each job; one that has waited `max_wait` seconds goes before all others, reserved for."""
    return Reference(nodes, jobs, order, backfill, placement, max_wait).simulate()
