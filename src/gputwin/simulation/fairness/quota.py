"""Quotas of tenants: a guaranteed part, a part that may be borrowed while others leave theirs unused, and reclaim.

The two-level case of a tree of quotas (see `gputwin.simulation.quotas`): each tenant may always have its guarantee, and
up to its limit of what is left.
"""

from __future__ import annotations

import math

import numpy as np

from gputwin.simulation.engine.compiled import inlined
from gputwin.simulation.engine.state.tenants import Tenants
from gputwin.simulation.fairness.drf import Table
from gputwin.simulation.policy import FAIRNESS, FairnessRule


def allows(held: Table, request: Table, most: Table, t: int) -> bool:
    """Return whether tenant t may hold `request` more without exceeding its limits; written for compiled code.

    `held` and `most` have a row per tenant and a column per resource; infinite means without limit.
    """
    exceeded = False
    for r in range(request.shape[0]):
        exceeded |= request[r] > 0.0 and held[t, r] + request[r] > most[t, r]
    return not exceeded


def borrowed(held: Table, guaranteed: Table) -> Table:
    """Return how much each tenant holds above its guarantee."""
    return np.maximum(0.0, held - guaranteed)


def reclaimable(held: Table, request: Table, guaranteed: Table, free: Table, t: int) -> bool:
    """Return whether reclaim serves tenant t: the request is within its guarantee, and free plus borrowed suffice."""
    if (held[t] + request > guaranteed[t]).any():
        return False
    others = borrowed(held, guaranteed)
    others[t] = 0.0
    return bool((request <= free + others.sum(axis=0)).all())


def reclaim_order(held: Table, guaranteed: Table, capacity: Table, t: int) -> list[int]:
    """Return from whom tenant t reclaims: those who borrow, the largest borrowed part of a resource first."""
    part = (borrowed(held, guaranteed) / capacity).max(axis=1)
    return sorted((i for i in range(held.shape[0]) if i != t and part[i] > 0), key=lambda i: (-part[i], i))


_allows = inlined(allows)


def gate(tenants: Tenants, t: int, s: int) -> bool:
    """Return whether tenant t may hold one more job of class s."""
    return _allows(tenants.held, tenants.demands[s], tenants.most, t)


FAIRNESS.add(
    FairnessRule(
        "quota",
        "a tenant holds at most `share` of each resource and `gpus` GPUs (or those of its own terms); who would exceed "
        "that is passed over. With `reclaim=1` a tenant below its guarantee (`guaranteed` GPUs, its own terms, or its part "
        "of the cluster by weight) takes back GPUs from who borrows most, the job that started last first",
        gate=gate,
        source="Kueue's nominal quota; with reclaim, its two-level case with borrowing and reclaimWithinCohort: Any",
        parameters={"share": math.inf, "gpus": math.inf, "reclaim": False, "guaranteed": math.inf},
        at_least={"share": 0.0, "gpus": 0.0, "guaranteed": 0.0},
    )
)
