"""Arrivals whose rate changes with time: what each moment would be in steady state, and what load it really carries."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gputwin.core.errors import UserError
from gputwin.queueing.distributions import Distribution, Floats, tail_grid
from gputwin.queueing.markov import mmc

_MOST_LAPS = 1000


@dataclass(frozen=True)
class Varying:
    """Waits under a rate that changes, over all arrivals; the mean is None where some moments have no steady state."""

    load: Floats
    """Erlangs at each moment."""
    wait_probability: Floats
    """Share that waits of those who arrive at each moment; 1 where the load exceeds the servers."""
    share_waiting: float
    mean_wait: float | None
    """s."""
    overloaded: float
    """Share of arrivals at moments whose load is at least the number of servers."""


def pointwise_stationary(rates: Floats, servers: int, mean_service: float) -> Varying:
    """Return the waits if every moment were in the steady state of its own rate (Green and Kolesar, 1991).

    `rates` are over equal steps. Right where rates change slowly beside service and clearing the queue; it overstates
    peaks otherwise.
    """
    return _averaged(np.asarray(rates) * mean_service, np.asarray(rates), servers, mean_service)


def modified_offered_load(rates: Floats, step: float, service: Distribution, servers: int) -> Varying:
    """Return the waits with the load each moment really carries in place of its rate times mean service.

    Jagerman (1975); Jennings, Mandelbaum, Massey and Whitt, "Server Staffing to Meet Time-Varying Demand", 1996:
    the busy servers of Mt/G/∞, m(t) = ∫ λ(t − u) P(S > u) du, lag and damp the rate. `rates` are over equal steps of
    `step` s and repeat (a day, a week).
    """
    rates = np.asarray(rates, np.float64)
    if rates.size == 0 or step <= 0:
        raise UserError("rates over time need at least one step of positive length")
    load = offered_load(rates, step, service)
    return _averaged(load, rates, servers, service.mean)


def offered_load(rates: Floats, step: float, service: Distribution) -> Floats:
    """Return the mean number of servers busy in Mt/G/∞ at the middle of each step of a rate that repeats."""
    period = rates.size
    edges = np.arange(2 * period + 1) * step / 2
    share, weight = tail_grid()
    times = service.quantile(share)
    work = times * weight
    # E[min(S, x)], which is the integral of P(S > u) up to x.
    limited = np.cumsum(work) - work / 2 + times * (1 - np.cumsum(weight) + weight / 2)
    limited *= service.mean / limited[-1]
    # What of a job's life falls on each half step after its arrival, folded over the period.
    alive, done, laps = np.zeros(2 * period), 0.0, 0
    while done < (1 - 1e-9) * service.mean and laps < _MOST_LAPS:
        upto = np.interp(edges + laps * edges[-1], np.append(0.0, times), np.append(0.0, limited))
        alive += np.diff(upto)
        done, laps = float(upto[-1]), laps + 1
    alive += (service.mean - done) / alive.size
    # Seen from the middle of a step, arrivals of the step k before it are between k − 1/2 and k + 1/2 steps old.
    spread = alive[0::2] + np.roll(alive[1::2], 1)
    load = np.real(np.fft.ifft(np.fft.fft(rates) * np.fft.fft(spread)))
    return np.maximum(load, 0.0)


def _averaged(load: Floats, rates: Floats, servers: int, mean_service: float) -> Varying:
    total = float(rates.sum())
    if not total > 0:
        raise UserError("nothing arrives, so nobody waits")
    waits = np.ones(load.size)
    means = np.full(load.size, np.nan)
    for i, now in enumerate(load):
        if now <= 0:
            waits[i], means[i] = 0.0, 0.0
        elif now < servers:
            at = mmc(servers, float(now) / mean_service, 1 / mean_service)
            waits[i], means[i] = at.probability, at.mean
    weight = rates / total
    over = load >= servers
    return Varying(
        load=load,
        wait_probability=waits,
        share_waiting=float(weight @ waits),
        mean_wait=None if over.any() else float(weight @ means),
        overloaded=float(weight[over].sum()),
    )
