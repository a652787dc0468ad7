"""Closed networks: a fixed number of users who compute, think, and compute again (mean value analysis)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from gputwin.core.errors import UserError


class Station(NamedTuple):
    """A place jobs visit: total service per round, s, and how many servers it has; None for no queueing (think time)."""

    name: str
    demand: float
    servers: int | None = 1


class StationFigures(NamedTuple):
    """What happens at one station."""

    name: str
    response: float
    """s per round, waiting and served."""
    jobs: float
    utilisation: float | None


class Network(NamedTuple):
    """A closed network in steady state."""

    throughput: float
    """Rounds per second."""
    response: float
    """s per round without think time."""
    stations: tuple[StationFigures, ...]
    bottleneck: str


def closed_network(jobs: int, stations: Sequence[Station]) -> Network:
    """Return exact mean values of a closed product-form network with `jobs` going round.

    Reiser and Lavenberg, "Mean-Value Analysis of Closed Multichain Queuing Networks", 1980; stations of several servers
    by their load-dependent form (Bolch et al., Queueing Networks and Markov Chains, 2006, section 8.2.1.2). Exponential
    service in order of arrival, or any service where the station shares processors.
    """
    if jobs < 1:
        raise UserError("a closed network needs at least one job")
    queues = [s for s in stations if s.servers is not None]
    if not queues:
        raise UserError("a closed network needs at least one station where jobs queue")
    if any(s.demand < 0 or (s.servers is not None and s.servers < 1) for s in stations):
        raise UserError("demands cannot be negative and stations need a server")
    length = [0.0] * len(stations)
    # share[i][k]: chance that k jobs are at station i, kept for stations of several servers up to servers − 1.
    share = [[1.0] + [0.0] * ((s.servers or 1) - 1) for s in stations]
    throughput, response = 0.0, [0.0] * len(stations)
    for n in range(1, jobs + 1):
        for i, s in enumerate(stations):
            if s.servers is None:
                response[i] = s.demand
            else:
                idle = sum((s.servers - 1 - k) * share[i][k] for k in range(s.servers - 1))
                response[i] = s.demand / s.servers * (1 + length[i] + idle)
        total = sum(response)
        throughput = n / total if total > 0 else float("inf")
        for i, s in enumerate(stations):
            length[i] = throughput * response[i]
            if s.servers is not None and s.servers > 1:
                old = share[i]
                new = [0.0] * s.servers
                for k in range(1, s.servers):
                    new[k] = throughput * s.demand / k * old[k - 1]
                taken = sum((s.servers - k) * new[k] for k in range(1, s.servers))
                new[0] = max(1 - (throughput * s.demand + taken) / s.servers, 0.0)
                share[i] = new
    figures = tuple(
        StationFigures(s.name, r, x, None if s.servers is None else throughput * s.demand / s.servers)
        for s, r, x in zip(stations, response, length, strict=True)
    )
    thinking = sum(r for s, r in zip(stations, response, strict=True) if s.servers is None)
    worst = max(queues, key=lambda s: s.demand / (s.servers or 1))
    return Network(throughput, sum(response) - thinking, figures, worst.name)


def throughput_bounds(jobs: int, stations: Sequence[Station]) -> tuple[float, float]:
    """Return the least and most throughput, rounds per second, whatever the distributions.

    Asymptotic bounds (Muntz and Wong, 1974; Lazowska et al., Quantitative System Performance, 1984, section 5.2).
    """
    queued = sum(s.demand for s in stations if s.servers is not None)
    thinking = sum(s.demand for s in stations if s.servers is None)
    slowest = max((s.demand / s.servers for s in stations if s.servers is not None), default=0.0)
    most = jobs / (queued + thinking)
    return jobs / (jobs * queued + thinking), min(most, 1 / slowest) if slowest > 0 else most
