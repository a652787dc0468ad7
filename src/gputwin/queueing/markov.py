"""Queues with memoryless arrivals or service, solved exactly."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gputwin.core.errors import UserError
from gputwin.queueing.erlang import erlang_c
from gputwin.queueing.steady import UnstableError, Waiting, check_positive, check_stable


def mm1(arrival_rate: float, service_rate: float) -> Waiting:
    """Return the waits of M/M/1: Poisson arrivals, exponential service, one server, in order of arrival."""
    return mmc(1, arrival_rate, service_rate)


def mmc(servers: float, arrival_rate: float, service_rate: float) -> Waiting:
    """Return the waits of M/M/c (Erlang, 1917): Poisson arrivals, exponential service, in order of arrival."""
    check_positive(servers=servers, arrival_rate=arrival_rate, service_rate=service_rate)
    load = arrival_rate / service_rate
    waits = erlang_c(servers, load)
    mean = waits / (servers * service_rate - arrival_rate)
    return Waiting(servers, arrival_rate, load / servers, waits, mean)


def gm1(arrival_transform: Callable[[float], float], arrival_rate: float, service_rate: float) -> Waiting:
    """Return the waits of GI/M/1: independent times between arrivals, exponential service, one server.

    `arrival_transform` is the Laplace transform of the time between arrivals. An arrival waits with probability σ, the
    root of σ = A*(μ(1 − σ)) below 1, and then exponentially (Kleinrock, Queueing Systems I, 1975, section 6.4).
    """
    check_positive(arrival_rate=arrival_rate, service_rate=service_rate)
    check_stable(arrival_rate / service_rate, 1)
    from scipy import optimize

    def gap(z: float) -> float:
        return z - arrival_transform(service_rate * (1 - z))

    # The other root is 1 itself: step away from it until the sign shows that the one sought lies between.
    below = 1e-3
    while gap(1 - below) <= 0:
        below /= 10
        if below < 1e-14:
            raise UnstableError("the load is so near 1 that the wait cannot be computed")
    root = float(optimize.brentq(gap, 0.0, 1 - below, xtol=1e-15))
    return Waiting(1, arrival_rate, arrival_rate / service_rate, root, root / (service_rate * (1 - root)))


@dataclass(frozen=True)
class Finite:
    """A queue with room for so many: who is turned away, and how those who enter fare."""

    lost: float
    """Share of arrivals turned away."""
    utilisation: float
    wait_probability: float
    """Share of those who enter that wait."""
    mean_wait: float
    """s, of those who enter."""
    queue_length: float


def mmck(servers: int, room: int, arrival_rate: float, service_rate: float) -> Finite:
    """Return M/M/c/K: as M/M/c, but who finds `room` jobs in the system (running and waiting) is turned away.

    Birth and death (Gross et al., Fundamentals of Queueing Theory, 2008, section 2.5); stable at any load.
    """
    check_positive(servers=servers, arrival_rate=arrival_rate, service_rate=service_rate)
    if room < servers:
        raise UserError(f"room for {room} jobs is less than the {servers} servers hold")
    jobs = np.arange(1, room + 1)
    log_weight = np.concatenate([[0.0], np.cumsum(np.log(arrival_rate / (service_rate * np.minimum(jobs, servers))))])
    share = np.exp(log_weight - log_weight.max())
    share /= share.sum()
    entering = 1 - float(share[-1])
    waiting = float(share[servers:] @ np.arange(room - servers + 1))
    return Finite(
        lost=1 - entering,
        utilisation=arrival_rate * entering / (servers * service_rate),
        wait_probability=float(share[servers:-1].sum()) / entering,
        mean_wait=waiting / (arrival_rate * entering),
        queue_length=waiting,
    )


@dataclass(frozen=True)
class Impatient:
    """A queue some leave before they are served."""

    wait_probability: float
    abandoned: float
    """Share of arrivals that leave unserved."""
    mean_wait: float
    """s, over all arrivals, until served or gone."""
    queue_length: float
    utilisation: float


def erlang_a(servers: int, arrival_rate: float, service_rate: float, patience_rate: float) -> Impatient:
    """Return M/M/c+M (Palm, 1957): as M/M/c, but who waits leaves after an exponential time of mean 1/patience_rate.

    Solved as a birth-and-death process (Garnett, Mandelbaum and Reiman, "Designing a Call Center with Impatient
    Customers", MSOM 2002); stable at any load.
    """
    check_positive(servers=servers, arrival_rate=arrival_rate, service_rate=service_rate, patience_rate=patience_rate)
    below = np.cumsum(np.log(arrival_rate / (service_rate * np.arange(1, servers + 1))))
    log_weight = np.concatenate([[0.0], below])
    block = 1024
    while log_weight[-1] > log_weight.max() - 45 or log_weight.size == servers + 1:
        first = log_weight.size - servers
        rates = servers * service_rate + patience_rate * np.arange(first, first + block)
        log_weight = np.concatenate([log_weight, log_weight[-1] + np.cumsum(np.log(arrival_rate / rates))])
        block *= 2
        if log_weight.size > 50_000_000:
            raise UserError("patience is so long that the queue is beyond computing; use M/M/c")
    share = np.exp(log_weight - log_weight.max())
    share /= math.fsum(share)
    waiting = float(share[servers:] @ np.arange(share.size - servers))
    busy = float(share @ np.minimum(np.arange(share.size), servers))
    return Impatient(
        wait_probability=float(share[servers:].sum()),
        abandoned=patience_rate * waiting / arrival_rate,
        mean_wait=waiting / arrival_rate,
        queue_length=waiting,
        utilisation=busy / servers,
    )
