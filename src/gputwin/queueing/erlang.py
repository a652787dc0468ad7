"""Erlang's formulas, stable for hundreds of thousands of servers and defined between whole numbers of them."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

from gputwin.core.errors import UserError
from gputwin.queueing.steady import check_stable


def erlang_b(servers: float, load: float) -> float:
    """Return the share of arrivals lost in M/G/c/c (Erlang, 1917), whatever the distribution of service.

    By the recurrence 1/B(c) = 1 + c/(a B(c−1)), all of whose terms are positive (Jagerman, "Some Properties of the
    Erlang Loss Function", BSTJ 1974). Between whole numbers it starts from Fortet's integral
    1/B(x) = ∫ e^(−u)(1 + u/a)^x du, which is the function's continuation.
    """
    if not (math.isfinite(servers) and servers >= 0):
        raise UserError(f"servers must be at least 0, not {servers:g}")
    if not (math.isfinite(load) and load >= 0):
        raise UserError(f"load must be at least 0, not {load:g}")
    if load == 0:
        return 1.0 if servers == 0 else 0.0
    whole = math.floor(servers)
    part = servers - whole
    if part == 0:
        return 1.0 / _inverse_b(whole, load)
    inverse = _fortet(part, load)
    for step in range(1, whole + 1):
        inverse = 1.0 + inverse * (part + step) / load
    return 1.0 / inverse


def _inverse_b(servers: int, load: float) -> float:
    """Return 1/B for a whole number of servers and a load above 0."""
    inverse = 1.0
    for step in range(1, servers + 1):
        inverse = 1.0 + inverse * step / load
    return inverse


def _fortet(x: float, load: float) -> float:
    from scipy import integrate

    value, _ = integrate.quad(lambda u: math.exp(-u) * (1 + u / load) ** x, 0, math.inf, epsabs=0, epsrel=1e-12)
    return float(value)


def erlang_c(servers: float, load: float) -> float:
    """Return the share of arrivals that wait in M/M/c (Erlang, 1917)."""
    check_stable(load, servers)
    lost = erlang_b(servers, load)
    return lost / (1 - load / servers * (1 - lost))


def servers_for_loss(load: float, most_lost: float) -> int:
    """Return the least number of servers that lose no more than the share `most_lost` in M/G/c/c."""
    if not 0 < most_lost < 1:
        raise UserError(f"the share lost must be between 0 and 1, not {most_lost:g}")
    lost, servers = 1.0, 0
    while lost > most_lost:
        servers += 1
        lost = load * lost / (servers + load * lost)
    return servers


def servers_for_wait(load: float, mean_service: float, seconds: float, share: float = 0.95) -> int:
    """Return the least number of servers so that `share` of arrivals wait no longer than `seconds` in M/M/c."""
    if not 0 < share < 1:
        raise UserError(f"the share must be between 0 and 1, not {share:g}")
    if seconds < 0:
        raise UserError(f"a wait cannot be shorter than 0 s, so none is below {seconds:g} s")
    if not 0 < load < math.inf:
        erlang_b(1, load)  # says what is wrong with the load
        return 1
    return _search()(load, seconds / mean_service, 1.0 - share)


@functools.cache
def _search() -> Callable[[float, float, float], int]:
    """Return the compiled search; imported late, since most uses of Erlang's formulas need no compiler."""
    from gputwin.queueing.erlang_search import least_servers

    return least_servers
