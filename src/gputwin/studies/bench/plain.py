"""The yardstick: the engine's rules in plain Python, for jobs of one instance whose durations are known beforehand.

What one would write without numba and without an index: a heap of ends, a sorted queue, and a scan of the nodes for
each placement. A request that failed is not tried again before something is released. It keeps neither series nor
causes of waiting.
"""

from __future__ import annotations

import heapq
import math
from bisect import insort
from collections import Counter
from typing import NamedTuple

import numpy as np

from gputwin.core.units import WHOLE_GPU_MILLI
from gputwin.simulation.cluster import Cluster
from gputwin.simulation.engine.state.records import Records
from gputwin.simulation.machines import make_machines
from gputwin.simulation.rules import Scheduler
from gputwin.simulation.workload import Workload
from gputwin.studies.bench.plain_placement import SCORES, Ask, Devices, Fleet, Node, Typical, first_fit


class Reservation(NamedTuple):
    """When and where the first blocked job will start (EASY)."""

    job: int
    begin: float
    node: int
    devices: Devices


class PlainSimulator:
    """One run. Jobs, nodes and requests are numbered as in the workload and the cluster."""

    def __init__(self, workload: Workload, cluster: Cluster, scheduler: Scheduler, typical: Records) -> None:
        empty = make_machines(cluster, workload).nodes[["cpu", "memory", "gpu_count", "model"]].tolist()
        whole = WHOLE_GPU_MILLI
        self.nodes = [Node(cpu, memory, [whole] * gpus, gpus * whole, model) for cpu, memory, gpus, model in empty]
        self.fleet = Fleet(
            cpu=max(1, *(n.cpu for n in self.nodes)),
            gpu=max(1, *(n.gpu for n in self.nodes)),
            typical=[Typical(*kind) for kind in typical.tolist()],
        )
        amounts = workload.requests[["cpu", "memory", "gpu_count", "gpu_milli"]].tolist()
        asks = [
            Ask(cpu, memory, gpus, milli, frozenset(np.flatnonzero(allowed).tolist()))
            for (cpu, memory, gpus, milli), allowed in zip(amounts, workload.allowed, strict=True)
        ]
        request = workload.groups["request"][workload.shapes["first_group"]].tolist()
        self.ask = [asks[request[s]] for s in workload.jobs["shape"].tolist()]
        self.submit, self.duration = workload.jobs["submit"].tolist(), workload.jobs["duration"].tolist()
        self.key = self.duration if scheduler.order == "sjf" else self.submit
        self.score, self.backfill = SCORES[scheduler.placement], scheduler.backfill
        self.start = [math.nan] * workload.size
        self.where: dict[int, tuple[int, Devices]] = {}
        self.residents: list[set[int]] = [set() for _ in self.nodes]
        self.ends: list[tuple[float, int]] = []
        self.queue: list[tuple[float, int]] = []
        self.asked: Counter[Ask] = Counter()  # by how many waiting jobs
        self.failed: set[Ask] = set()  # those among them that do not fit, until something is released
        self.reserved: Reservation | None = None

    def run(self) -> list[float]:
        """Return when each job starts, s; NaN where it never does."""
        arrival, jobs = 0, len(self.submit)
        while arrival < jobs or self.ends:
            coming = self.submit[arrival] if arrival < jobs else math.inf
            now = min(coming, self.ends[0][0]) if self.ends else coming
            while self.ends and self.ends[0][0] == now:
                self._finish(heapq.heappop(self.ends)[1])
            while arrival < jobs and self.submit[arrival] == now:
                insort(self.queue, (self.key[arrival], arrival))
                self.asked[self.ask[arrival]] += 1
                arrival += 1
            self._schedule(now)
        return self.start

    def _finish(self, j: int) -> None:
        n, devices = self.where.pop(j)
        self.nodes[n].take(self.ask[j], devices, -1)
        self.residents[n].discard(j)
        self.failed.clear()

    def _schedule(self, now: float) -> None:
        """Start whoever may start now."""
        if self.backfill == "loss":
            for _, j in self.queue:
                self._try(j, now)
            self.queue.clear()
        if self.backfill == "greedy":
            self._pass_over(now)
            return
        while self.queue and self._try(self.queue[0][1], now):
            del self.queue[0]
            self.reserved = None
        if self.queue and self.backfill == "easy":
            self._overtake(now)

    def _pass_over(self, now: float) -> None:
        """Start every job that fits, in order."""
        k = 0
        while k < len(self.queue) and len(self.failed) < len(self.asked):
            if self._try(self.queue[k][1], now):
                del self.queue[k]
            else:
                k += 1

    def _overtake(self, now: float) -> None:
        """Start who does not delay the first blocked job (EASY backfilling: Lifka, 1995)."""
        head = self.queue[0][1]
        if self.reserved is None or self.reserved.job != head:
            self.reserved = self._reserve(head)
        window = self.reserved.begin - now
        too_long: set[Ask] = set()
        k = 1
        while k < len(self.queue) and len(self.failed) < len(self.asked):
            j = self.queue[k][1]
            if self.duration[j] <= window:
                started = self._try(j, now)
            else:
                started = self.ask[j] not in too_long and self._try_beside(j, now, self.reserved)
                if not started:
                    too_long.add(self.ask[j])
            if started:
                del self.queue[k]
            else:
                k += 1

    def _try(self, j: int, now: float) -> bool:
        """Start job j if it fits."""
        ask = self.ask[j]
        if ask in self.failed:
            return False
        found = self._best(ask)
        if found is None:
            self.failed.add(ask)
            return False
        self._start(j, found, now)
        return True

    def _try_beside(self, j: int, now: float, reserved: Reservation) -> bool:
        """Start job j if it fits without what the reservation will need."""
        if self.ask[j] in self.failed:
            return False
        node = self.nodes[reserved.node]
        self.nodes[reserved.node] = self._beside(reserved)
        found = self._best(self.ask[j])
        self.nodes[reserved.node] = node
        if found is None:
            return False
        self._start(j, found, now)
        return True

    def _best(self, ask: Ask) -> tuple[int, Devices] | None:
        """Return the fitting node with the highest score, the lowest among equals, and its devices."""
        best, top = None, -math.inf
        for n, node in enumerate(self.nodes):
            if node.fits(ask):
                points, devices = self.score(node, ask, self.fleet)
                if points > top:
                    best, top = (n, devices), points
                    if self.score is first_fit:
                        break
        return best

    def _start(self, j: int, found: tuple[int, Devices], now: float) -> None:
        n, devices = found
        ask = self.ask[j]
        self.nodes[n].take(ask, devices)
        self.start[j] = now
        self.asked[ask] -= 1
        if self.asked[ask] == 0:
            del self.asked[ask]
        if self.duration[j] < math.inf:
            self.where[j] = found
            self.residents[n].add(j)
            heapq.heappush(self.ends, (now + self.duration[j], j))

    def _reserve(self, j: int) -> Reservation:
        """Return the earliest start of job j: others end on trial, one instant after the other, until it fits."""
        ends = sorted(self.ends)
        freed: list[int] = []
        touched: set[int] = set()
        spot, begin = None, math.inf
        for i, (end, k) in enumerate(ends):
            n, devices = self.where[k]
            self.nodes[n].take(self.ask[k], devices, -1)
            freed.append(k)
            touched.add(n)
            if i + 1 < len(ends) and ends[i + 1][0] == end:
                continue
            spot = self._best_of(touched, self.ask[j])
            if spot is not None:
                begin = end
                break
            touched.clear()
        for k in freed:
            self.nodes[self.where[k][0]].take(self.ask[k], self.where[k][1])
        assert spot is not None, "a job that fits on the empty cluster fits once everybody has ended"
        return Reservation(j, begin, *spot)

    def _best_of(self, nodes: set[int], ask: Ask) -> tuple[int, Devices] | None:
        scored = [(n, *self.score(self.nodes[n], ask, self.fleet)) for n in sorted(nodes) if self.nodes[n].fits(ask)]
        if not scored:
            return None
        n, _, devices = max(scored, key=lambda candidate: candidate[1])
        return n, devices

    def _beside(self, reserved: Reservation) -> Node:
        """Return of the reserved node what is free both now and beside the reservation."""
        now = self.nodes[reserved.node]
        then = Node(now.cpu, now.memory, list(now.share), now.gpu, now.model)
        for k in self.residents[reserved.node]:
            if self.start[k] + self.duration[k] <= reserved.begin:
                then.take(self.ask[k], self.where[k][1], -1)
        then.take(self.ask[reserved.job], reserved.devices)
        share = [min(pair) for pair in zip(now.share, then.share, strict=True)]
        return Node(min(now.cpu, then.cpu), min(now.memory, then.memory), share, sum(share), now.model)
