"""What queueing theory says exactly. Rates are per second, times in seconds, `load` is in erlangs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, sparse
from scipy.sparse.linalg import spsolve

Floats = NDArray[np.float64]


def erlang_b(servers: int, load: float) -> float:
    """Return the share of jobs lost in M/G/c/c (Erlang, 1917)."""
    lost = 1.0
    for c in range(1, servers + 1):
        lost = load * lost / (c + load * lost)
    return lost


def erlang_c(servers: int, load: float) -> float:
    """Return the share of jobs that wait in M/M/c (Erlang, 1917)."""
    lost = erlang_b(servers, load)
    return lost / (1 - load / servers * (1 - lost))


def mmc_wait(servers: int, arrival_rate: float, service_rate: float) -> float:
    """Return the mean wait in M/M/c."""
    return erlang_c(servers, arrival_rate / service_rate) / (servers * service_rate - arrival_rate)


def mmc_wait_exceeds(servers: int, arrival_rate: float, service_rate: float, seconds: float) -> float:
    """Return the share of jobs that wait longer than `seconds` in M/M/c, first come first served."""
    spare = servers * service_rate - arrival_rate
    return erlang_c(servers, arrival_rate / service_rate) * math.exp(-spare * seconds)


def mg1_wait(arrival_rate: float, mean: float, second_moment: float) -> float:
    """Return the mean wait in M/G/1 (Pollaczek, 1930; Khinchine, 1932)."""
    return arrival_rate * second_moment / (2 * (1 - arrival_rate * mean))


def dm1_wait(arrival_rate: float, service_rate: float) -> float:
    """Return the mean wait in D/M/1, by the root of G/M/1's equation (Kleinrock, Queueing Systems I, 6.4)."""
    root = optimize.brentq(lambda z: z - math.exp(-service_rate * (1 - z) / arrival_rate), 0, 1 - 1e-9)
    return root / (service_rate * (1 - root))


def sjf_wait(
    arrival_rate: float, quantile: Callable[[Floats], Floats], second_moment: float, low: float = 0.0, high: float = 1.0
) -> float:
    """Return the mean wait in M/G/1, shortest first, of the jobs between these quantiles of length (Phipps, 1956).

    A job of x s waits λE[S²]/2 / (1 − ρ(x))², where ρ(x) is the load of shorter jobs.
    """
    cells = 1_000_000
    middle = (np.arange(cells) + 0.5) / cells
    length = quantile(middle)
    shorter = arrival_rate * (np.cumsum(length) - length / 2) / cells
    chosen = (low < middle) & (middle < high)
    return float(arrival_rate * second_moment / 2 * np.mean(1 / (1 - shorter[chosen]) ** 2))


def priority_waits(residual: float, loads: Sequence[float]) -> list[float]:
    """Return the mean wait of each class, most urgent first, nobody interrupted (Cobham, 1954).

    `residual` is the mean time until a server is next free, as an arrival sees it: λE[S²]/2 in M/G/1, Erlang C / (cμ)
    in M/M/c; `loads` are of each class, per server.
    """
    upto = np.cumsum([0.0, *loads])
    return [residual / ((1 - a) * (1 - b)) for a, b in pairwise(upto)]


def kaufman_roberts(units: int, loads: Mapping[int, float]) -> dict[int, float]:
    """Return the share of jobs lost of each size, where a job of size b takes b of the units (Kaufman, 1981)."""
    occupied = [1.0]
    for n in range(1, units + 1):
        occupied.append(sum(load * b * occupied[n - b] for b, load in loads.items() if b <= n) / n)
    total = sum(occupied)
    return {b: sum(occupied[units - b + 1 :]) / total for b in loads}


def gang_wait(arrival_rate: float, single: float, single_rate: float, double_rate: float, most: int = 400) -> float:
    """Return the mean wait on two servers where a share `single` of jobs takes one and the others take both.

    Strictly first come first served (Brill and Green, 1984): the Markov chain solved as it stands, cut at `most` jobs.
    States: idle; one server busy; and for n jobs waiting of yet unknown size, both servers busy with two single jobs,
    with a double one, or one server busy and a double job at the head, before those n.
    """
    idle, one = 0, 1

    def singles(n: int) -> int:
        return 2 + 3 * n

    def double(n: int) -> int:
        return 3 + 3 * n

    def blocked(n: int) -> int:
        return 4 + 3 * n

    size = 2 + 3 * most
    rates = sparse.lil_matrix((size, size))

    def go(source: int, target: int, rate: float) -> None:
        if target < size:
            rates[source, target] += rate
            rates[source, source] -= rate

    def admit_beside_one(source: int, n: int, rate: float) -> None:
        """One single job runs and n wait."""
        if n == 0:
            go(source, one, rate)
        else:
            go(source, singles(n - 1), rate * single)
            go(source, blocked(n - 1), rate * (1 - single))

    go(idle, one, arrival_rate * single)
    go(idle, double(0), arrival_rate * (1 - single))
    go(one, idle, single_rate)
    go(one, singles(0), arrival_rate * single)
    go(one, blocked(0), arrival_rate * (1 - single))
    for n in range(most):
        for state in (singles, double, blocked):
            go(state(n), state(n + 1), arrival_rate)
        admit_beside_one(singles(n), n, 2 * single_rate)
        go(blocked(n), double(n), single_rate)
        if n == 0:
            go(double(n), idle, double_rate)
        else:
            go(double(n), double(n - 1), double_rate * (1 - single))
            admit_beside_one(double(n), n - 1, double_rate * single)
    balance = sparse.csr_matrix(rates.T).tolil()
    balance[0, :] = 1.0
    share = spsolve(balance.tocsc(), np.eye(size)[0])
    waiting = [0, 0] + [n + extra for n in range(most) for extra in (0, 0, 1)]
    return float(np.dot(share, waiting)) / arrival_rate
