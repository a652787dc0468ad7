"""Workloads in queues with quotas, and the state in which preemption is tried: removed, put back, asked for room."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cmp_to_key
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputwin.simulation.quotas.balance import available, fits, give_back, take, within_nominal
from gputwin.simulation.quotas.shares import Share, dominant_share
from gputwin.simulation.quotas.tree import Amounts, FlavorResource, PreemptionPolicy, QuotaTree

WITHIN_QUEUE = "InClusterQueue"
RECLAIM = "InCohortReclamation"
RECLAIM_BORROWING = "InCohortReclaimWhileBorrowing"
FAIR_SHARING = "InCohortFairSharing"


@dataclass(frozen=True)
class Workload:
    """A job in a queue: what it holds (or asks for) of each resource of a flavor."""

    name: str
    queue: str
    amounts: Mapping[FlavorResource, float]
    priority: int = 0
    admitted_at: float = 0.0
    created_at: float = 0.0
    evicted: bool = False
    """Whether it is already on its way out."""
    local_queue: str = ""
    local_usage: float | None = None
    """What its local queue has used lately, where the queue shares by usage (Kueue's admission fair sharing)."""


class Victim(NamedTuple):
    """A workload to preempt and the rule that allows it."""

    workload: Workload
    reason: str


class Contention:
    """A workload that does not fit, the queues' usage, and the workloads admitted: what victim search works on.

    `remove` and `put_back` change usage only here; the caller's data stays as it was.
    """

    def __init__(self, tree: QuotaTree, admitted: Iterable[Workload], incoming: Workload) -> None:
        self.tree = tree
        self.incoming = incoming
        self.queue = tree.queue(incoming.queue)
        self.policy: PreemptionPolicy = tree.nodes[self.queue].preemption
        self.usage = tree.no_usage()
        self.column = {fr: r for r, fr in enumerate(tree.resources)}
        self.workloads: dict[int, list[Workload]] = {}
        for workload in admitted:
            self.workloads.setdefault(tree.queue(workload.queue), []).append(workload)
            self.put_back(workload)
        self.request = self._vector(incoming)
        self.contested = self._contested()

    def _vector(self, workload: Workload) -> Amounts:
        vector = np.zeros(len(self.tree.resources))
        for fr, amount in workload.amounts.items():
            vector[self.column[fr]] += amount
        return vector

    def _contested(self) -> NDArray[np.bool_]:
        """Return which requested resources the incoming workload does not find free."""
        t = self.tree
        room = [
            available(t.parent, t.subtree, t.guaranteed, t.borrowing, self.usage, self.queue, r)
            for r in range(len(t.resources))
        ]
        return self.request > np.array(room)

    def put_back(self, workload: Workload) -> None:
        """Count the workload's usage."""
        q = self.tree.queue(workload.queue)
        for fr, amount in workload.amounts.items():
            take(self.tree.parent, self.tree.guaranteed, self.usage, q, self.column[fr], amount)

    def remove(self, workload: Workload) -> None:
        """Stop counting the workload's usage."""
        q = self.tree.queue(workload.queue)
        for fr, amount in workload.amounts.items():
            give_back(self.tree.parent, self.tree.guaranteed, self.usage, q, self.column[fr], amount)

    def fits(self, may_borrow: bool) -> bool:
        """Return whether the incoming workload fits now."""
        t = self.tree
        return fits(t.parent, t.subtree, t.guaranteed, t.borrowing, self.usage, self.queue, self.request, may_borrow)

    def within_nominal(self, n: int) -> bool:
        """Return whether node n uses no more than its quota of every contested resource."""
        return within_nominal(self.tree.subtree, self.usage, n, self.contested)

    def share(self, n: int) -> Share:
        """Return the dominant share of node n."""
        return dominant_share(self.tree, self.usage, n)

    def uses_contested(self, workload: Workload) -> bool:
        """Return whether the workload holds a contested resource."""
        return any(self.contested[self.column[fr]] for fr in workload.amounts)

    def may_preempt(self, workload: Workload) -> bool:
        """Return whether the queue's policy lets the incoming workload preempt this one, by priority and age."""
        same = workload.queue == self.incoming.queue
        policy = self.policy.within_queue if same else self.policy.reclaim_within_cohort
        lower = workload.priority < self.incoming.priority
        if policy == "LowerPriority":
            return lower
        if policy == "LowerOrNewerEqualPriority":
            newer = workload.priority == self.incoming.priority and self.incoming.created_at < workload.created_at
            return lower or newer
        return policy == "Any"

    def order(self, workload: Workload) -> Any:
        """Return the sort key of candidates.

        Already evicted first, then other queues' before one's own, of two local queues of one queue that of higher usage,
        lower priority, admitted later, and by name.
        """
        return cmp_to_key(self._compare)(workload)

    def _compare(self, a: Workload, b: Workload) -> int:
        """Return less than 0 where a goes before b."""
        first, second = ((not w.evicted, w.queue == self.incoming.queue) for w in (a, b))
        apart = first == second and a.queue == b.queue and a.local_queue != b.local_queue
        known = a.local_usage is not None and b.local_usage is not None
        if apart and known and a.local_usage != b.local_usage:
            return -1 if (a.local_usage or 0.0) > (b.local_usage or 0.0) else 1
        rank_a, rank_b = ((w.priority, -w.admitted_at, w.name) for w in (a, b))
        return -1 if (first, rank_a) < (second, rank_b) else int((first, rank_a) > (second, rank_b))

    def keep_back(self, victims: list[Victim], may_borrow: bool) -> list[Victim]:
        """Return the victims still needed: each but the last is put back if the incoming workload fits without it."""
        needed = [victims[-1]]
        for victim in reversed(victims[:-1]):
            self.put_back(victim.workload)
            if not self.fits(may_borrow):
                self.remove(victim.workload)
                needed.append(victim)
        return needed[::-1]
