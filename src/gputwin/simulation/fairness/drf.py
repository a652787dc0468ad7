"""Dominant resource fairness: the tenant with the lowest dominant share goes next.

Ghodsi et al., Dominant Resource Fairness: Fair Allocation of Multiple Resource Types, NSDI 2011; weights as in its
section 4.3. A dominant share is the largest part a tenant holds of any resource; GPU compute and GPU memory are
resources of their own.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gputwin.simulation.engine.compiled import inlined
from gputwin.simulation.engine.state.tenants import Tenants
from gputwin.simulation.policy import FAIRNESS, FairnessRule

Table = NDArray[np.float64]

NEGLIGIBLE = 1e-12
"""The part of a capacity below which what is left counts as nothing."""


def dominant_share(held: Table, capacity: Table, weights: Table, t: int) -> float:
    """Return tenant t's weighted dominant share: its turn comes when this is the lowest.

    `held` and `weights` have a row per tenant and a column per resource. Written for compiled code.
    """
    share = 0.0
    for r in range(capacity.shape[0]):
        if held[t, r] > 0.0:
            part = held[t, r] / (capacity[r] * weights[t, r])
            if part > share:
                share = part
    return share


def fill_by_tasks(
    demands: Table, capacity: Table, weights: Table, tasks: Sequence[int] | None = None
) -> tuple[list[int], NDArray[np.int64]]:
    """Return the sequence of tenants served and each one's tasks, one whole task at a time (the paper's Algorithm 1).

    A tenant whose next task does not fit, or who has no more, is passed over. Ties go to the first tenant.
    """
    n = demands.shape[0]
    left = np.full(n, np.iinfo(np.int64).max) if tasks is None else np.array(tasks, dtype=np.int64)
    held = np.zeros(demands.shape)
    count = np.zeros(n, dtype=np.int64)
    order: list[int] = []
    while True:
        free = capacity - held.sum(axis=0) + NEGLIGIBLE * capacity
        ready = [t for t in range(n) if left[t] > count[t] and (demands[t] <= free).all() and demands[t].any()]
        if not ready:
            return order, count
        t = min(ready, key=lambda i: (dominant_share(held, capacity, weights, i), i))
        held[t] += demands[t]
        count[t] += 1
        order.append(t)


def fill(demands: Table, capacity: Table, weights: Table, tasks: Table | None = None) -> Table:
    """Return each tenant's tasks, divisible, when all dominant shares grow alike until nothing more can be given.

    Progressive filling (section 4.1): when a resource is used up, the shares of those who need it stop.
    """
    n = demands.shape[0]
    most = np.full(n, np.inf) if tasks is None else np.asarray(tasks, dtype=float)
    per_task = np.array([dominant_share(demands, capacity, weights, t) for t in range(n)])
    speed = np.divide(1.0, per_task, out=np.zeros(n), where=per_task > 0)
    given = np.zeros(n)
    growing = speed > 0
    while growing.any():
        free = capacity - given @ demands
        use = (speed * growing) @ demands
        until_used_up = np.divide(free, use, out=np.full(free.size, np.inf), where=use > 0)
        until_enough = np.divide(most - given, speed, out=np.full(n, np.inf), where=growing)
        step = max(0.0, min(until_used_up.min(), until_enough.min()))
        given[growing] += step * speed[growing]
        used_up = capacity - given @ demands <= NEGLIGIBLE * capacity
        used_up |= until_used_up <= step
        growing &= ~((demands > 0) & used_up).any(axis=1) & (until_enough > step)
    return given


_dominant_share = inlined(dominant_share)


def turn(tenants: Tenants, t: int, now: float) -> float:
    """Return tenant t's weighted dominant share of the cluster."""
    return _dominant_share(tenants.held, tenants.capacity, tenants.weights, t)


FAIRNESS.add(
    FairnessRule(
        "drf",
        "the tenant with the lowest dominant share goes next: the largest part it holds of CPU, memory, GPU compute or "
        "GPU memory, over its weight",
        turn=turn,
        source="Ghodsi et al., Dominant Resource Fairness, NSDI'11, section 4",
    )
)
