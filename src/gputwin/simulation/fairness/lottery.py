"""Lottery scheduling: the next turn is drawn, each tenant's chance being its part of the tickets.

Waldspurger and Weihl, Lottery Scheduling: Flexible Proportional-Share Resource Management, OSDI 1994. Of n turns a tenant
with the part p of the tickets gets n·p, give or take √(n·p·(1−p)).

In a run each tenant's turn comes after an exponential time of mean 1/tickets (`draw_turn` of the engine), which is the
same lottery: the first to come is a tenant's with chance tickets / all tickets. A turn is kept until one of the tenant's
jobs fits. Tickets are weights; those for the resource count of which the tenant's next job asks for the largest part.
"""

from __future__ import annotations

import math

import numpy as np

from gputwin.simulation.engine.state.tenants import Tenants
from gputwin.simulation.fairness.drf import Table
from gputwin.simulation.policy import FAIRNESS, FairnessRule


def draw_key(uniform: float, tickets: float) -> float:
    """Return the key of a tenant in a draw: the lowest of −log(u)/tickets wins with chance tickets / all tickets.

    A race of exponential clocks, so that one number per tenant decides and no list of tickets is needed. Without
    tickets the key is infinite. `uniform` is from 0 (excluded) to 1.
    """
    return -math.log(uniform) / tickets if tickets > 0.0 else math.inf


def tickets_for(tickets: Table, demand: Table, capacity: Table, t: int) -> float:
    """Return the tickets of tenant t that count for a demand: those for the resource it needs most of.

    `tickets` has a row per tenant and a column per resource.
    """
    dominant = 0
    for r in range(1, capacity.shape[0]):
        if demand[r] / capacity[r] > demand[dominant] / capacity[dominant]:
            dominant = r
    return float(tickets[t, dominant])


def draws(tickets: Table, number: int, seed: int) -> np.ndarray:
    """Return the winners of that many draws."""
    uniform = 1.0 - np.random.default_rng(seed).random((number, tickets.size))
    keys = np.divide(-np.log(uniform), tickets, out=np.full(uniform.shape, np.inf), where=tickets > 0)
    return np.asarray(keys.argmin(axis=1))


def turn(tenants: Tenants, t: int, now: float) -> float:
    """Return the virtual time drawn for tenant t's next turn."""
    return tenants.tag[t]


FAIRNESS.add(
    FairnessRule(
        "lottery",
        "the tenant whose turn it is is drawn, with a chance of its tickets (its weight, which may differ by resource) "
        "over those of all who wait; the same seed gives the same draws",
        turn=turn,
        source="Waldspurger and Weihl, Lottery Scheduling, OSDI'94",
        turns_by="draw",
    )
)
