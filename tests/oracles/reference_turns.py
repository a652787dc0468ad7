"""Whose turn it is in the plain simulator by lottery, finish-time fairness and hierarchical DRF."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from gputwin.core.rng import stream
from gputwin.simulation.fairness.hdrf import ShareTree, hierarchical_shares

if TYPE_CHECKING:
    from tests.oracles.reference_fair import FairReference

_BITS = (1 << 64) - 1


class Lottery:
    """A draw for each tenant that waits, made anew when it has had its turn or other tickets count."""

    def __init__(self, tickets: Sequence[Sequence[float]], seed: int = 0) -> None:
        self.tickets = tickets
        self.states = [int(x) for x in stream(seed, "lottery").integers(1, 1 << 63, len(tickets), np.uint64)]
        self.made_with: list[float | None] = [None for _ in tickets]

    def uniform(self, t: int) -> float:
        x = self.states[t]
        x ^= x >> 12
        x ^= (x << 25) & _BITS
        x ^= x >> 27
        self.states[t] = x
        return ((x * 2685821657736338717 & _BITS) >> 11) / 2**53

    def draw_for_all(self, run: FairReference) -> None:
        """Draw for every tenant that waits and has no draw for the tickets of its next job."""
        for t in {run.jobs[j].tenant for j in run.waiting}:
            j = next_job(run, t)
            parts = [d / c if c > 0 else 0.0 for d, c in zip(run.demand[j], run.capacity, strict=True)]
            tickets = self.tickets[t][parts.index(max(parts))]
            if self.made_with[t] != tickets:
                self.made_with[t] = tickets
                run.tag[t] = run.virtual - math.log(1.0 - self.uniform(t)) / tickets


def next_job(run: FairReference, t: int) -> int:
    return next(j for j in run.waiting if run.jobs[j].tenant == t)


def ideal_ends(run: FairReference) -> list[float]:
    """Return when each job would end on its tenant's own part of the cluster, one job after the other."""
    free, ends = [-math.inf for _ in run.weights], []
    for job, part in zip(run.jobs, run.part, strict=True):
        share = run.weights[job.tenant] / sum(run.weights)
        free[job.tenant] = max(job.submit, free[job.tenant]) + part * job.predicted / share
        ends.append(max(free[job.tenant], job.submit + job.predicted))
    return ends


def minus_rho(run: FairReference, t: int, ideal: Sequence[float]) -> float:
    job = run.jobs[j := next_job(run, t)]
    period = run.parameters.get("period", 60.0)
    at = run.now if period <= 0 else math.floor(run.now / period) * period
    alone = ideal[j] - job.submit
    return -(max(at - job.submit, 0.0) + job.predicted) / alone if alone > 0 else -math.inf


class Groups:
    """A tree of groups: which tenant is in which, and weights of groups."""

    def __init__(self, group_of: Sequence[str], weights: Sequence[float], group_weights: dict[str, float]) -> None:
        self.paths = [""]
        for path in sorted(set(group_of)):
            steps = path.split("/") if path else []
            self.paths += ["/".join(steps[: k + 1]) for k in range(len(steps))]
        self.paths = sorted(set(self.paths), key=lambda p: (len(p.split("/")) if p else 0, p))
        parent = [-1, *(self.paths.index(p.rpartition("/")[0]) for p in self.paths[1:])]
        weight = [1.0, *(group_weights.get(p, 1.0) for p in self.paths[1:])]
        parent += [self.paths.index(path) for path in group_of]
        self.tree = ShareTree(np.array(parent), np.array([*weight, *weights]))

    def whose_turn(self, run: FairReference, candidates: Sequence[int]) -> int:
        """Return the tenant reached from the root by the lowest share below which somebody may start."""
        inner = len(self.paths)
        first: dict[int, int] = {}
        for j in sorted(candidates):
            first.setdefault(inner + run.jobs[j].tenant, j)
        held = np.zeros((self.tree.parent.size, 4))
        held[inner:] = run.held
        capacity = np.array([c if c > 0 else 1.0 for c in run.capacity])
        blocked = np.array([n not in first for n in range(self.tree.parent.size)])
        shares = hierarchical_shares(self.tree, held, capacity, blocked)
        below = self.tree.children()

        def earliest(n: int) -> float:
            return min((earliest(c) for c in below[n]), default=first.get(n, math.inf))

        n = 0
        while below[n]:
            n = min((c for c in below[n] if not shares.blocked[c]), key=lambda c: (shares.share[c], earliest(c)))
        return n - inner
