"""The plain simulator with jobs that slow each other on a GPU: beside each other by a table of pairs, or in turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tests.oracles.reference import WHOLE, Job, Node, emptiest
from tests.oracles.reference_change import Changing, Costs, Segment


@dataclass(frozen=True)
class Turns:
    """Time slices, s; a switch takes between `least` and `most_switch` by the memory that the job fills."""

    quantum: float = 0.1
    least: float = 0.0
    most_switch: float = 0.0
    swap: bool = False
    gb_per_second: float = 12.0


class Shared(Changing):
    """One run in which GPUs are shared; `pairs[a][b]` is by how much kind b slows kind a; `turns` says how jobs alternate.

    With `most`, so many jobs may be on a GPU, whatever they ask for.
    """

    def __init__(
        self,
        nodes: Sequence[Node],
        jobs: Sequence[Job],
        order: str,
        backfill: str,
        placement: str,
        *,
        pairs: Sequence[Sequence[float]] | None = None,
        turns: Turns | None = None,
        most: int | None = None,
        costs: Costs | None = None,
        preemption: str = "",
        node_changes: Sequence[tuple[float, int, str]] = (),
    ) -> None:
        jobs = [_divided(job, most, turns is not None and turns.swap) for job in jobs]
        self.pairs, self.turns = pairs, turns
        super().__init__(
            nodes, jobs, order, backfill, placement, costs=costs, preemption=preemption, node_changes=node_changes
        )
        if most is not None:
            self.placer.devices = emptiest

    def _residents(self, n: int, d: int) -> list[tuple[int, int]]:
        """Return (job, instance) of all that run on a device."""
        return [
            (j, i)
            for j in self.running
            for i, spot in enumerate(self.outcomes[j].spots)
            if spot.node == n and d in spot.devices
        ]

    def _rate_of(self, j: int) -> float:
        rates = [1.0]
        for i, spot in enumerate(self.outcomes[j].spots):
            for d in spot.devices:
                there = self._residents(spot.node, d)
                others = [self.outcomes[v].spots[k].ask for v, k in there if (v, k) != (j, i)]
                if self.pairs is not None:
                    excess = sum(self.pairs[spot.ask.kind][o.kind] * o.demand / WHOLE for o in others)
                    rates.append(1 / (1 + excess))
                elif self.turns is not None and others:
                    rates.append(self._turn(spot.node, spot.ask, others))
        return min(rates)

    def _turn(self, n: int, own, others) -> float:
        turns, memory = self.turns, self.machines[n].node.gpu_memory
        asks = [own, *others]

        def part(ask) -> float:
            return ask.held / memory if ask.held and memory else ask.demand / WHOLE

        parts = [part(ask) for ask in asks]
        seconds = [turns.least + (turns.most_switch - turns.least) * min(p, 1) for p in parts]
        if turns.swap and sum(parts) > 1:
            seconds = [
                s + 2 * p * (memory or 0) * 2**20 / (turns.gb_per_second * 1e9)
                for s, p in zip(seconds, parts, strict=True)
            ]
        length = turns.quantum * len(asks)
        left, shares = length / (length + sum(seconds)), {}
        # Who needs least is served first; nobody gets more than an equal part of what is left.
        waiting = sorted(range(len(asks)), key=lambda k: asks[k].demand)
        for served, k in enumerate(waiting):
            shares[k] = min(asks[k].demand / WHOLE, left / (len(asks) - served))
            left -= shares[k]
        return shares[0] / (own.demand / WHOLE)

    def _schedule(self) -> None:
        super()._schedule()
        for j in self.running:
            life, rate = self.lives[j], self._rate_of(j)
            if abs(rate - life.rate) < 1e-12:
                continue
            if life.began < self.now:
                self.segments.append(
                    Segment(j, life.began, self.now, life.rate, "rate_changed", self.outcomes[j].spots)
                )
            life.began, life.rate = self.now, rate
            self.end[j] = self.now + self._seconds(life.phases, rate)
            believed = self._phases(j, max(self.jobs[j].predicted - life.done, 0.0))
            self.believed_end[j] = self.now + self._seconds(believed, rate)


def _divided(job: Job, most: int | None, swaps: bool) -> Job:
    """Return the job with what it needs of devices; what it would use alone is its demand."""
    groups = []
    for ask, size in job.groups:
        asked = replace(ask, demand=ask.milli if ask.gpus else WHOLE, held=ask.gpu_memory)
        if most is not None and ask.gpus:
            asked = replace(asked, milli=WHOLE // most)
        groups.append((replace(asked, gpu_memory=0) if swaps else asked, size))
    return replace(job, groups=tuple(groups))
