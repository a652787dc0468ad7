"""Jobs that need several servers at once: how much load they can bring, and how long they wait.

First come first served leaves servers idle before a gang that does not fit, so the queue can grow without end at loads
below 1: how far below depends on the sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gputwin.core.errors import UserError
from gputwin.queueing.distributions import Floats
from gputwin.queueing.erlang import erlang_c
from gputwin.queueing.steady import UnstableError, Waiting

_MOST_STATES = 20_000
State = tuple[int, ...]
"""How many of each class run, and which class stands at the head of the queue."""


class Gang(NamedTuple):
    """Jobs of one size: their share of all jobs, the servers each takes, and their mean run time, s."""

    share: float
    servers: int
    mean_service: float


class Region(NamedTuple):
    """The largest load, as a share of all servers, that is stable first come first served."""

    surely: float
    """Whatever the distribution of service: at most (largest gang − 1) servers idle while anyone waits."""
    most: float
    """Never more than this: what whole gangs can fill at best."""


def stability_bounds(servers: int, gangs: Sequence[Gang]) -> Region:
    """Return bounds of the stable load that hold for any distribution of service."""
    _check(servers, gangs)
    largest = max(g.servers for g in gangs)
    surely = (servers - largest + 1) / servers
    sizes = {g.servers for g in gangs}
    fillable = {0}
    for n in range(1, servers + 1):
        if any(n - b in fillable for b in sizes):
            fillable.add(n)
    return Region(surely, max(fillable) / servers)


def saturated_jobs(servers: int, gangs: Sequence[Gang]) -> float:
    """Return the mean number of jobs that run while there is always one waiting, equal exponential service for all.

    Rumyantsev and Morozov, "Stability criterion of a multiserver model with simultaneous service", Annals of OR 2017:
    the queue is stable while λE[S] is below 1/Σ(1/i)·π(i), where π(i) is the chance that i jobs in a row fit and the
    next one does not.
    """
    _check(servers, gangs)
    size = np.zeros(servers + 1)
    for g in gangs:
        size[g.servers] += g.share
    size /= size.sum()
    no_room = np.array([size[servers - used + 1 :].sum() for used in range(servers + 1)])
    total, row, inverse = 0.0, np.eye(servers + 1)[0], 0.0
    for i in range(1, servers + 1):
        row = np.convolve(row, size)[: servers + 1]
        stops = float(row @ no_room)
        inverse += stops / i
        total += stops
    return total / inverse


def saturated_throughput(servers: int, gangs: Sequence[Gang]) -> float:
    """Return the largest stable arrival rate, jobs per second, first come first served, exponential service by class.

    The saturated system (Baccelli and Foss, 1995): there is always a next job, drawn from the shares. Its Markov chain
    (how many of each class run, and which class stands at the head) is solved as it stands.
    """
    _check(servers, gangs)
    total = sum(g.share for g in gangs)
    shares, needs = [g.share / total for g in gangs], [g.servers for g in gangs]
    rates = [1 / g.mean_service for g in gangs]

    def admit(running: State, chance: float, into: dict[State, float]) -> None:
        """Draw next jobs until one does not fit; a state is the running counts and the class at the head."""
        free = servers - sum(n * b for n, b in zip(running, needs, strict=True))
        for k, (share, need) in enumerate(zip(shares, needs, strict=True)):
            if need > free:
                state = (*running, k)
                into[state] = into.get(state, 0.0) + chance * share
            elif share > 0:
                admit(_plus(running, k), chance * share, into)

    first: dict[State, float] = {}
    admit((0,) * len(gangs), 1.0, first)
    number = {state: i for i, state in enumerate(first)}
    order, edges = list(first), []
    for state in order:
        running, head = state[:-1], state[-1]
        for k, count in enumerate(running):
            if not count:
                continue
            after: dict[State, float] = {}
            left = _plus(running, k, -1)
            if needs[head] <= servers - sum(n * b for n, b in zip(left, needs, strict=True)):
                admit(_plus(left, head), 1.0, after)
            else:
                after[(*left, head)] = 1.0
            for target, chance in after.items():
                if target not in number:
                    number[target] = len(order)
                    order.append(target)
                    if len(order) > _MOST_STATES:
                        raise UserError(f"more than {_MOST_STATES:,} states; use fewer servers or classes")
                edges.append((number[state], number[target], count * rates[k] * chance))
    share = _stationary(len(order), edges)
    speed = [sum(n * r for n, r in zip(state[:-1], rates, strict=True)) for state in order]
    return float(share @ np.array(speed))


def gang_wait(servers: int, arrival_rate: float, gangs: Sequence[Gang], throughput: float | None = None) -> Waiting:
    """Return the waits of gangs first come first served, approximately: M/M/k with k the jobs that run in saturation.

    k = throughput × mean service need not be whole, and makes the queue unstable exactly where it is. It is exact where
    all gangs have one size that divides the servers; between, it is a heuristic whose errors docs/queueing.md lists.
    """
    most = saturated_throughput(servers, gangs) if throughput is None else throughput
    total = sum(g.share for g in gangs)
    mean = sum(g.share * g.mean_service for g in gangs) / total
    if arrival_rate >= most:
        raise UnstableError(
            f"{arrival_rate:.3g} gangs/s arrive and at most {most:.3g} can be served in order of arrival: "
            "the queue grows without end"
        )
    k = most * mean
    load = arrival_rate * mean
    waits = erlang_c(k, load)
    busy = arrival_rate * sum(g.share * g.mean_service * g.servers for g in gangs) / total / servers
    return Waiting(servers, arrival_rate, busy, waits, waits / (most - arrival_rate))


def _plus(counts: tuple[int, ...], k: int, by: int = 1) -> tuple[int, ...]:
    return (*counts[:k], counts[k] + by, *counts[k + 1 :])


def _stationary(size: int, edges: list[tuple[int, int, float]]) -> Floats:
    """Return the shares of time of a Markov chain given as (from, to, rate)."""
    from scipy import sparse
    from scipy.sparse.linalg import spsolve

    source, target, rate = (np.array(column) for column in zip(*edges, strict=True))
    source, target = source.astype(np.int64), target.astype(np.int64)
    generator = sparse.coo_matrix((rate, (target, source)), (size, size)).tolil()
    generator.setdiag(generator.diagonal() - np.bincount(source, rate, size))
    generator[0, :] = 1.0
    right = np.zeros(size)
    right[0] = 1.0
    return np.asarray(spsolve(generator.tocsc(), right))


def _check(servers: int, gangs: Sequence[Gang]) -> None:
    if not gangs:
        raise UserError("no gangs, so there is no load")
    for g in gangs:
        if not 1 <= g.servers <= servers:
            raise UserError(f"a gang of {g.servers} never fits on {servers} servers")
        if g.mean_service <= 0 or g.share < 0:
            raise UserError("gangs need a positive mean service and no negative share")
