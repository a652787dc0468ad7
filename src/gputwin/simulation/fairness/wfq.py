"""Weighted fair queueing by virtual time.

Parekh and Gallager, A Generalized Processor Sharing Approach to Flow Control, 1993: serve in the order in which a fluid
server that divides itself by weights would finish; each item then ends at most one largest item later than there.
Goyal, Vin and Cheng, Start-time Fair Queueing, 1996: serve by start tags, with the tag last served as virtual time;
needs no fluid server, so it also goes where capacity changes.
"""

from __future__ import annotations

import heapq

import numpy as np

from gputwin.simulation.engine.state.tenants import Tenants
from gputwin.simulation.fairness.drf import Table
from gputwin.simulation.policy import FAIRNESS, FairnessRule


def start_tag(virtual_time: float, last_finish: float) -> float:
    """Return the virtual time at which a tenant's next item starts: now, or when its last one ends."""
    return max(virtual_time, last_finish)


def finish_tag(start: float, size: float, weight: float) -> float:
    """Return the virtual time at which an item of `size` ends that starts at virtual time `start`."""
    return start + size / weight


def fluid_finishes(arrival: Table, tenant: np.ndarray, size: Table, weight: Table, rate: float) -> tuple[Table, Table]:
    """Return when each item ends on a fluid server of this rate divided by weights, s, and its virtual finish tag.

    Items are in order of arrival. Virtual time grows at rate / Σ weights of the tenants that have work.
    """
    tag = np.zeros(arrival.size)
    end = np.zeros(arrival.size)
    last = np.zeros(weight.size)
    waiting: list[tuple[float, int]] = []
    now = virtual = 0.0

    def busy_weight() -> float:
        return float(weight[last > virtual].sum())

    def serve_until(until: float) -> None:
        nonlocal now, virtual
        while waiting:
            total = busy_weight()
            ends = now + (waiting[0][0] - virtual) * total / rate
            if ends > until:
                virtual += (until - now) * rate / total
                break
            now, virtual = max(now, ends), waiting[0][0]
            end[heapq.heappop(waiting)[1]] = now
        now = max(now, until) if np.isfinite(until) else now

    for i in range(arrival.size):
        serve_until(arrival[i])
        t = tenant[i]
        tag[i] = finish_tag(start_tag(virtual, last[t]), size[i], weight[t])
        last[t] = tag[i]
        heapq.heappush(waiting, (tag[i], i))
    serve_until(np.inf)
    return end, tag


def packet_finishes(arrival: Table, size: Table, tag: Table, rate: float) -> Table:
    """Return when each item ends on one server that serves whole items, the lowest finish tag first, s."""
    end = np.zeros(arrival.size)
    waiting: list[tuple[float, int]] = []
    now, i = 0.0, 0
    while i < arrival.size or waiting:
        if not waiting:
            now = max(now, arrival[i])
        while i < arrival.size and arrival[i] <= now:
            heapq.heappush(waiting, (tag[i], i))
            i += 1
        j = heapq.heappop(waiting)[1]
        now += size[j] / rate
        end[j] = now
    return end


def turn(tenants: Tenants, t: int, now: float) -> float:
    """Return the virtual time at which tenant t's next job starts."""
    return tenants.tag[t]


FAIRNESS.add(
    FairnessRule(
        "wfq",
        "the tenant with the lowest start tag goes next; a job that starts moves its tenant's tag on by its part of the "
        "cluster × predicted duration / weight",
        turn=turn,
        source="Goyal, Vin and Cheng, Start-time Fair Queueing, SIGCOMM'96",
    )
)
