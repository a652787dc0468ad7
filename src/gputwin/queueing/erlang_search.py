"""The search for the least number of servers, compiled: an autoscaler makes it in every decision."""

from __future__ import annotations

import math

from numba import njit


@njit("int64(float64, float64, float64)", cache=True)
def least_servers(load: float, services: float, most: float) -> int:
    """Return the least number of servers so that at most the share `most` waits longer than so many mean services, in M/M/c.

    Erlang C is 1 / (ρ + (1 − ρ) / B), and 1/B(c) = 1 + c/(a B(c−1)). Each further server shortens the wait's tail
    exp(−(c − a) t) by the same factor.
    """
    servers = math.floor(load) + 1
    inverse = 1.0
    for step in range(1, servers + 1):
        inverse = 1.0 + inverse * step / load
    needed, shorter = math.exp((load - servers) * services) / most, math.exp(-services)
    while True:
        use = load / servers
        if use + (1.0 - use) * inverse >= needed:
            return servers
        servers += 1
        inverse = 1.0 + inverse * servers / load
        needed *= shorter
