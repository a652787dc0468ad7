"""Fairness between tenants in the plain simulator: the gate before fit, turns, and the order within a tenant.

In each step of a pass every waiting job is looked at anew. Jobs the gate refuses are passed over. Of the others, the first
in order of each shape of each tenant is a candidate (under greedy skip: if it can be placed). The tenant of the candidate
with the lowest (turn, job) has its turn, and its first candidate in order starts; where there are no turns, simply the
first candidate in order. Under strict order the pass ends when that job cannot be placed. Under EASY it then has a
reservation, made anew in each pass, and of each other shape of each tenant the first in order that can be placed without
delaying it is a candidate.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from tests.oracles.reference import WHOLE, Job, Machine, Node, Outcome, Reference
from tests.oracles.reference_turns import Groups, Lottery, ideal_ends, minus_rho

CPU, MEMORY, GPU, GPU_MEMORY = range(4)


def demand_of(job: Job) -> list[float]:
    asked = [0.0] * 4
    for ask, size in job.groups:
        milli = ask.milli if ask.gpus else 0
        for r, amount in enumerate((ask.cpu, ask.memory, ask.gpus * milli, ask.gpus * ask.gpu_memory)):
            asked[r] += size * amount
    return asked


def capacity_of(nodes: Sequence[Node]) -> list[float]:
    with_gpus = [n for n in nodes if n.gpus]
    cpu = math.inf if any(n.cpu is None for n in nodes) else sum(n.cpu or 0 for n in nodes)
    memory = math.inf if any(n.memory is None for n in nodes) else sum(n.memory or 0 for n in nodes)
    on_gpus = sum(n.gpus * (n.gpu_memory or 0) for n in with_gpus)
    gpu_memory = math.inf if any(n.gpu_memory is None for n in with_gpus) else on_gpus
    return [float(cpu), float(memory), float(sum(n.gpus for n in nodes) * WHOLE), float(gpu_memory)]


class FairReference(Reference):
    """One run with fairness."""

    def __init__(
        self,
        nodes: Sequence[Node],
        jobs: Sequence[Job],
        order: str,
        backfill: str,
        placement: str,
        fairness: str,
        parameters: Mapping[str, float],
        weights: Sequence[float],
        groups: Sequence[str] = (),
        group_weights: dict[str, float] | None = None,
        tickets: Sequence[Sequence[float]] = (),
    ) -> None:
        super().__init__(nodes, jobs, order, backfill, placement)
        self.fairness, self.parameters, self.weights = fairness, parameters, weights
        self.shapes = [job.groups for job in jobs]  # as given: the same groups in another order are another shape
        tenants = range(len(weights))
        self.capacity = capacity_of(nodes)
        self.demand = [demand_of(job) for job in jobs]
        self.part = [max((d / c if c > 0 else 0.0) for d, c in zip(x, self.capacity, strict=True)) for x in self.demand]
        self.held = [[0.0] * 4 for _ in tenants]
        self.used: list[list[tuple[float, float, float]]] = [[(0.0, 0.0, 0.0)] for _ in tenants]
        """When each tenant's use changed, what it had used by then, and what it held from then on."""
        self.tag, self.finish, self.virtual = [0.0 for _ in tenants], [0.0 for _ in tenants], 0.0
        self.groups = Groups(groups or [""] * len(weights), weights, group_weights or {})
        self.lottery = Lottery(tickets or [[weight] * 4 for weight in weights])
        self.ideal = ideal_ends(self)
        self.known: set[int] = set()
        self.head: tuple[int, object] | None = None

    def _class(self, j: int) -> tuple[int, object]:
        return self.jobs[j].tenant, self.shapes[j]

    def _allowed(self, j: int) -> bool:
        if self.fairness != "quota":
            return True
        held, share, gpus = (
            self.held[self.jobs[j].tenant],
            self.parameters.get("share", math.inf),
            self.parameters.get("gpus", math.inf),
        )
        for r in range(4):
            most = share * (self.capacity[r] if self.capacity[r] > 0 else 1.0)
            if r == GPU:
                most = min(most, gpus * WHOLE)
            if self.demand[j][r] > 0 and held[r] + self.demand[j][r] > most:
                return False
        return True

    def _turn(self, t: int) -> float:
        if self.fairness == "drf":
            parts = [h / (c * self.weights[t]) for h, c in zip(self.held[t], self.capacity, strict=True) if h > 0]
            return max(parts, default=0.0)
        if self.fairness in ("wfq", "lottery"):
            return self.tag[t]
        if self.fairness == "themis":
            return minus_rho(self, t, self.ideal)
        return self._used(t, self._worked_out()) / self.weights[t]

    def _used(self, t: int, at: float) -> float:
        """Return what tenant t has used until `at`, halved every half-life."""
        since, usage, rate = [entry for entry in self.used[t] if entry[0] <= at][-1]
        half_life = self.parameters.get("half_life", 604800.0)
        if half_life <= 0:
            return usage + rate * (at - since)
        faded = 0.5 ** ((at - since) / half_life)
        return usage * faded + rate * half_life / 0.6931471805599453 * (1.0 - faded)

    def _worked_out(self) -> float:
        """Return when turns by usage were last worked out: at the last multiple of the period."""
        period = self.parameters.get("period", 300.0)
        return self.now if period <= 0 else math.floor(self.now / period) * period

    def _charge(self, j: int, sign: int) -> None:
        t = self.jobs[j].tenant
        if self.fairness == "fair-share":
            rate = self.used[t][-1][2] + sign * self.part[j]
            self.used[t].append((self.now, self._used(t, self.now), rate))
        self.held[t] = [h + sign * d for h, d in zip(self.held[t], self.demand[j], strict=True)]
        if sign > 0:
            self.virtual = max(self.virtual, self.tag[t])
            self.finish[t] = self.tag[t] + self.part[j] * self.jobs[j].predicted / self.weights[t]
            self.tag[t] = self.finish[t]
            self.lottery.made_with[t] = None

    def _start(self, j: int, spots: tuple) -> None:
        super()._start(j, spots)
        self._charge(j, 1)

    def _finish(self, j: int) -> None:
        super()._finish(j)
        self._charge(j, -1)

    def _note_arrivals(self) -> None:
        """A tenant of whom nobody waited begins at the present virtual time."""
        waited = {self.jobs[j].tenant for j in self.waiting if j in self.known}
        for j in self.waiting:
            t = self.jobs[j].tenant
            if j not in self.known and t not in waited:
                self.tag[t] = max(self.virtual, self.finish[t])
                waited.add(t)
        self.known = set(self.waiting)

    def _pass(self) -> None:
        # Who exceeds its tenant's limit all alone never starts.
        for j in [j for j in self.waiting if self._too_large(j)]:
            self.waiting.remove(j)
            self.outcomes[j].fate = "never fits"
        self._note_arrivals()
        self.head, self.reserved = None, None
        while True:
            first: dict[tuple[int, object], int] = {}
            for j in self.waiting:  # in the chosen order
                if self._allowed(j) and (self.reserved is None or self._can_overtake(j)):
                    first.setdefault(self._class(j), j)
            candidates = list(first.values())
            if self.backfill == "greedy":
                candidates = [j for j in candidates if self.placer.place(self.machines, self.jobs[j]) is not None]
            if self.fairness == "lottery":
                self.lottery.draw_for_all(self)
            if not candidates:
                break
            place = {j: i for i, j in enumerate(self.waiting)}
            if self.fairness == "hdrf":
                t = self.groups.whose_turn(self, candidates)
                candidates = [j for j in candidates if self.jobs[j].tenant == t]
            elif self.fairness != "quota":
                t = self.jobs[min(candidates, key=lambda j: (self._turn(self.jobs[j].tenant), j))].tenant
                candidates = [j for j in candidates if self.jobs[j].tenant == t]
            j = min(candidates, key=lambda j: place[j])
            if not self._try(j, self._open_to(j)):
                self.head = self._class(j)
                if self.backfill != "easy":
                    break
                self.reserved = self._reserve(j)

    def _open_to(self, j: int) -> list[Machine]:
        """Return the nodes as job j may use them: beside the reservation, unless it ends before that begins."""
        if self.reserved is None or self.now + self.jobs[j].predicted <= self.reserved[1]:
            return self.machines
        return self._beside_reservation()

    def _can_overtake(self, j: int) -> bool:
        return self._class(j) != self.head and self.placer.place(self._open_to(j), self.jobs[j]) is not None

    def _too_large(self, j: int) -> bool:
        t = self.jobs[j].tenant
        held, self.held[t] = self.held[t], [0.0] * 4
        alone = self._allowed(j)
        self.held[t] = held
        return not alone

    def _cause(self, j: int) -> str:
        if not self._allowed(j):
            return "quota_or_fairness"
        if self.head is not None and self._class(j) != self.head and self._each_group_fits(j):
            return "behind_other_job"
        return self._shortage(self.jobs[j])


def simulate_fair(
    nodes: Sequence[Node],
    jobs: Sequence[Job],
    rules: tuple[str, str, str],
    fairness: str,
    parameters: Mapping[str, float],
    weights: Sequence[float],
    groups: Sequence[str] = (),
    group_weights: dict[str, float] | None = None,
    tickets: Sequence[Sequence[float]] = (),
) -> list[Outcome]:
    """Return what becomes of each job under (order, backfill, placement) and a rule of fairness."""
    terms = groups, group_weights, tickets
    return FairReference(nodes, jobs, *rules, fairness, parameters, weights, *terms).simulate()
