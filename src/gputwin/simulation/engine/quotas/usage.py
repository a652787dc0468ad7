"""Usage in a tree of quotas: take, give back, what is left, shares. `gputwin.simulation.quotas.balance`, compiled."""

from __future__ import annotations

import numpy as np

from gputwin.simulation.engine.compiled import compiled, inlined
from gputwin.simulation.engine.state.cohorts import Cohorts
from gputwin.simulation.engine.state.records import wide


@compiled
def take(cohorts: Cohorts, n: int, s: int) -> None:
    """Count a job of class s in queue n, and in the nodes above what exceeds their guaranteed quotas."""
    usage, guaranteed = cohorts.usage, cohorts.guaranteed
    for r in range(usage.shape[1]):
        m, amount = n, cohorts.amounts[s, r]
        while m >= 0 and amount > 0.0:
            local = max(0.0, guaranteed[m, r] - usage[m, r])
            usage[m, r] += amount
            amount -= local
            m = cohorts.parent[m]


@compiled
def give_back(cohorts: Cohorts, n: int, s: int) -> None:
    """Stop counting a job of class s in queue n."""
    usage, guaranteed = cohorts.usage, cohorts.guaranteed
    for r in range(usage.shape[1]):
        m, amount = n, cohorts.amounts[s, r]
        while m >= 0 and amount > 0.0:
            above = usage[m, r] - guaranteed[m, r]
            usage[m, r] -= amount
            amount = min(amount, above)
            m = cohorts.parent[m]


@compiled
def available(cohorts: Cohorts, n: int, r: int) -> float:
    """Return how much more of resource r node n may take, never below zero."""
    subtree, guaranteed, usage = cohorts.subtree, cohorts.guaranteed, cohorts.usage
    room, local = np.inf, 0.0
    while cohorts.parent[n] >= 0:
        stored = subtree[n, r] - guaranteed[n, r]
        used_above = max(0.0, usage[n, r] - guaranteed[n, r])
        local += max(0.0, guaranteed[n, r] - usage[n, r])
        room = min(room, local + stored - used_above + cohorts.borrowing[n, r])
        n = cohorts.parent[n]
    room = min(room, local + subtree[n, r] - usage[n, r])
    return max(0.0, room)


@compiled
def fits(cohorts: Cohorts, n: int, s: int, may_borrow: bool) -> bool:
    """Return whether queue n may take one more job of class s; without `may_borrow` only within its own quota."""
    for r in range(cohorts.usage.shape[1]):
        asked = cohorts.amounts[s, r]
        if asked <= 0.0:
            continue
        if not may_borrow and cohorts.usage[n, r] + asked > cohorts.subtree[n, r]:
            return False
        if asked > available(cohorts, n, wide(r)):
            return False
    return True


@inlined
def borrows_with(cohorts: Cohorts, n: int, s: int) -> bool:
    """Return whether queue n would exceed its own quota with one more job of class s."""
    exceeds = False
    for r in range(cohorts.usage.shape[1]):
        asked = cohorts.amounts[s, r]
        exceeds = exceeds or (asked > 0.0 and cohorts.usage[n, r] + asked > cohorts.subtree[n, r])
    return exceeds


@compiled
def within_nominal(cohorts: Cohorts, n: int) -> bool:
    """Return whether node n uses no more than it owns of each contested resource."""
    for r in range(cohorts.usage.shape[1]):
        if cohorts.contested[r] and cohorts.usage[n, r] > cohorts.subtree[n, r]:
            return False
    return True


@compiled
def share(cohorts: Cohorts, n: int) -> tuple[int, float, bool]:
    """Return the dominant share of node n, to compare by the first two, and whether it borrows.

    What it borrows of what its parent could lend, per mille, over its weight; who borrows with weight 0 comes last.
    """
    if cohorts.parent[n] < 0:
        return wide(0), 0.0, False
    best, borrowing = 0.0, False
    for name in range(cohorts.lendable.shape[1]):
        borrowed = 0.0
        for r in range(cohorts.usage.shape[1]):
            if cohorts.resource_of[r] == name:
                borrowed += max(0.0, cohorts.usage[n, r] - cohorts.subtree[n, r])
        borrowing = borrowing or borrowed > 0.0
        if borrowed > 0.0 and cohorts.lendable[n, name] > 0.0:
            best = max(best, borrowed * 1000.0 / cohorts.lendable[n, name])
    if borrowing and cohorts.weight[n] == 0.0:
        return wide(1), best, borrowing
    return wide(0), best / cohorts.weight[n] if best > 0.0 else 0.0, borrowing
