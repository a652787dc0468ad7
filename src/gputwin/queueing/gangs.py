"""Jobs that need several servers at once: how much load they can bring, and how long they wait.

First come first served leaves servers idle before a gang that does not fit, so the queue can grow without end at loads
below 1: how far below depends on the sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from gputwin.core.errors import UserError
from gputwin.queueing.distributions import Floats
from gputwin.queueing.steady import UnstableError, Waiting

_MOST_STATES = 200_000
_NOBODY, _PLENTY = -1, -1
_NEVER = 1e-9


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

    The saturated system (Baccelli and Foss, "On the Saturation Rule for the Stability of Queues", 1995): there is
    always a next job, drawn from the shares. Its Markov chain is solved as it stands.
    """
    chain = _Chain(servers, gangs)
    states, edges = chain.explore(chain.admit(chain.empty, _PLENTY), lambda state: chain.completions(state, _PLENTY))
    share = _stationary(len(states), edges)
    speed = [sum(n * r for n, r in zip(state.running, chain.rates, strict=True)) for state in states]
    return float(share @ np.array(speed))


def gang_wait(servers: int, arrival_rate: float, gangs: Sequence[Gang]) -> Waiting:
    """Return the waits of gangs first come first served: Poisson arrivals, exponential service by class.

    The Markov chain of what runs, who stands at the head and how many wait behind (Brill and Green, "Queues in Which
    Customers Receive Simultaneous Service from a Random Number of Servers", 1984, for any number of servers), cut where
    the queue is as good as never so long. Share that waits and mean are exact; for a handful of servers and classes.
    """
    most = saturated_throughput(servers, gangs)
    if arrival_rate >= most:
        raise UnstableError(
            f"{arrival_rate:.3g} gangs/s arrive and at most {most:.3g} can be served in order of arrival: "
            "the queue grows without end"
        )
    chain = _Chain(servers, gangs)
    longest = 100
    while True:
        start = [(_State(chain.empty, _NOBODY, 0), 1.0)]
        states, edges = chain.explore(start, partial(chain.moves, arrival_rate=arrival_rate, longest=longest))
        share = _stationary(len(states), edges)
        waiting = np.array([s.behind + (s.head != _NOBODY) for s in states])
        if share[waiting > longest - 2].sum() < _NEVER:
            break
        longest *= 2
    blocked = np.array([1.0 if s.head != _NOBODY else chain.refused(s.running) for s in states])
    busy = np.array([servers - chain.free(s.running) for s in states])
    mean = float(share @ waiting) / arrival_rate
    return Waiting(servers, arrival_rate, float(share @ busy) / servers, float(share @ blocked), mean)


class _State(NamedTuple):
    """How many of each class run, the class at the head of the queue, and how many of yet unknown class wait behind."""

    running: tuple[int, ...]
    head: int
    behind: int


class _Chain:
    """Moves of gangs on servers, first come first served."""

    def __init__(self, servers: int, gangs: Sequence[Gang]) -> None:
        _check(servers, gangs)
        total = sum(g.share for g in gangs)
        self.servers = servers
        self.shares = [g.share / total for g in gangs]
        self.needs = [g.servers for g in gangs]
        self.rates = [1 / g.mean_service for g in gangs]
        self.empty = (0,) * len(gangs)

    def free(self, running: tuple[int, ...]) -> int:
        """Return the servers not in use."""
        return self.servers - sum(n * b for n, b in zip(running, self.needs, strict=True))

    def refused(self, running: tuple[int, ...]) -> float:
        """Return the share of arrivals that would not fit beside these."""
        free = self.free(running)
        return sum(share for share, need in zip(self.shares, self.needs, strict=True) if need > free)

    def admit(self, running: tuple[int, ...], waiting: int) -> list[tuple[_State, float]]:
        """Return the states, with their chances, once those of the waiting who fit have started in turn."""
        if waiting == 0:
            return [(_State(running, _NOBODY, 0), 1.0)]
        free, result = self.free(running), []
        for k, (share, need) in enumerate(zip(self.shares, self.needs, strict=True)):
            left = waiting if waiting == _PLENTY else waiting - 1
            if share > 0 and need > free:
                result.append((_State(running, k, left), share))
            elif share > 0:
                result += [(state, chance * share) for state, chance in self.admit(_plus(running, k), left)]
        return result

    def completions(self, state: _State, waiting: int) -> Iterator[tuple[_State, float]]:
        """Yield the states, with their rates, after each job that can end; `waiting` of unknown class stand behind."""
        for k, count in enumerate(state.running):
            if not count:
                continue
            left, rate = _plus(state.running, k, -1), count * self.rates[k]
            if state.head == _NOBODY:
                yield _State(left, _NOBODY, 0), rate
            elif self.needs[state.head] > self.free(left):
                yield _State(left, state.head, waiting), rate
            else:
                for after, chance in self.admit(_plus(left, state.head), waiting):
                    yield after, rate * chance

    def moves(self, state: _State, *, arrival_rate: float, longest: int) -> Iterator[tuple[_State, float]]:
        """Yield the states, with their rates, after the next arrival or completion."""
        if state.head == _NOBODY:
            for after, chance in self.admit(state.running, 1):
                yield after, arrival_rate * chance
        elif state.behind + 1 < longest:
            yield _State(state.running, state.head, state.behind + 1), arrival_rate
        yield from self.completions(state, state.behind)

    def explore(
        self, start: Sequence[tuple[_State, float]], moves: Callable[[_State], Iterable[tuple[_State, float]]]
    ) -> tuple[list[_State], list[tuple[int, int, float]]]:
        """Return every state that can be reached, and the moves between them as (from, to, rate)."""
        number = {state: i for i, state in enumerate(dict.fromkeys(s for s, _ in start))}
        order, edges = list(number), []
        for state in order:
            for after, rate in moves(state):
                if after not in number:
                    number[after] = len(order)
                    order.append(after)
                    if len(order) > _MOST_STATES:
                        raise UserError(f"more than {_MOST_STATES:,} states; use fewer servers or classes")
                edges.append((number[state], number[after], rate))
        return order, edges


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
