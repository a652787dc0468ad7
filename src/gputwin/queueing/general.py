"""Queues whose times have any distribution: one server exactly, several by the approximations in use."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from gputwin.core.errors import UserError
from gputwin.queueing.distributions import Complexes, Distribution, Floats, scv
from gputwin.queueing.markov import mmc
from gputwin.queueing.steady import Waiting, check_positive, check_stable


def mg1(arrival_rate: float, service: Distribution) -> Waiting:
    """Return the waits of M/G/1 (Pollaczek, 1930; Khinchine, 1932): Poisson arrivals, one server, in order of arrival.

    Share that waits and mean are exact; for the exact distribution use `mg1_wait_exceeds`.
    """
    check_positive(arrival_rate=arrival_rate, mean_service=service.mean)
    load = arrival_rate * service.mean
    check_stable(load, 1)
    return Waiting(1, arrival_rate, load, load, arrival_rate * service.second_moment / (2 * (1 - load)))


def mg1_wait_exceeds(arrival_rate: float, service: Distribution, seconds: Floats) -> Floats:
    """Return the shares of arrivals that wait longer than each of `seconds` in M/G/1, in order of arrival.

    By numerical inversion of Pollaczek and Khinchine's transform with the Euler algorithm (Abate and Whitt, "Numerical
    Inversion of Laplace Transforms of Probability Distributions", ORSA J. Computing 1995); errors are about 1e-7 where
    the distribution is smooth.
    """
    load = arrival_rate * service.mean
    check_stable(load, 1)

    def tail(s: Complexes) -> Complexes:
        """Return the transform of P(W > t): (1 − W*(s)) / s."""
        wait = (1 - load) * s / (s - arrival_rate * (1 - service.transform(s)))
        return np.asarray((1 - wait) / s)

    shares = [load if t <= 0 else _invert(tail, float(t)) for t in np.atleast_1d(seconds)]
    return np.asarray(np.clip(np.array(shares), 0.0, load), np.float64)


def _invert(transform: Callable[[Complexes], Complexes], t: float) -> float:
    """Return f(t) from its Laplace transform: a Fourier series, summed by Euler's weights over its last terms."""
    first_terms, averaged, precision = 38, 11, 18.4
    n = np.arange(first_terms + averaged + 1)
    points = np.asarray((precision + 2j * np.pi * n) / (2 * t), np.complex128)
    values = transform(points).real
    terms = np.where(n % 2 == 0, 1.0, -1.0) * values
    terms[0] /= 2
    partial = np.cumsum(terms)[first_terms:]
    weights = np.array([math.comb(averaged, k) for k in range(averaged + 1)]) / 2.0**averaged
    return float(math.exp(precision / 2) / t * (weights @ partial))


def kingman_bound(arrival_rate: float, arrival_scv: float, service: Distribution) -> float:
    """Return an upper bound of the mean wait in GI/G/1, s (Kingman, 1962): λ(σa² + σs²) / (2(1 − ρ))."""
    load = arrival_rate * service.mean
    check_stable(load, 1)
    variance = arrival_scv / arrival_rate**2 + scv(service) * service.mean**2
    return arrival_rate * variance / (2 * (1 - load))


def allen_cunneen(servers: float, arrival_rate: float, service: Distribution, arrival_scv: float = 1.0) -> Waiting:
    """Return the waits of GI/G/c, approximately: those of M/M/c times (ca² + cs²)/2.

    Allen, Probability, Statistics and Queueing Theory, 1990, section 5.5. Exact for M/M/c and M/G/1; within 15 % of
    exact M/D/c up to 12 servers at loads from 0.7. With 8 servers at load 0.8 it overstates E2/M/8 by 17 % and
    lognormal service of cs² 4 by 28 %, and understates H2 arrivals of ca² 4 by 21 % (docs/queueing-models.md).
    """
    _check_scv(arrival_scv)
    base = mmc(servers, arrival_rate, 1 / service.mean)
    return _scaled(base, (arrival_scv + scv(service)) / 2, base.probability)


def whitt(servers: float, arrival_rate: float, service: Distribution, arrival_scv: float = 1.0) -> Waiting:
    """Return the waits of GI/G/c by Whitt's refinement ("Approximations for the GI/G/m Queue", POM 1993).

    Mean by equations 2.16 to 2.25, share that waits by 3.1 to 3.10 there. Within 3 % of exact M/D/c from load 0.7 and
    10 % from 0.5, within 13 % of exact GI/M/1 from load 0.8 and 25 % from 0.5, for variations up to 1. At
    squared variations of 4 and 8 servers it is off by 16 to 17 % (docs/queueing-models.md): beyond 1 two moments say
    ever less.
    """
    _check_scv(arrival_scv)
    base = mmc(servers, arrival_rate, 1 / service.mean)
    cs2 = scv(service)
    factor = (arrival_scv + cs2) / 2 * _phi(base.utilisation, arrival_scv, cs2, servers)
    return _scaled(base, factor, _wait_probability(base, arrival_scv, cs2))


def _check_scv(arrival_scv: float) -> None:
    if not (math.isfinite(arrival_scv) and arrival_scv >= 0):
        raise UserError(f"the squared variation of arrivals must be at least 0, not {arrival_scv:g}")


def _scaled(base: Waiting, factor: float, probability: float) -> Waiting:
    return Waiting(base.servers, base.arrival_rate, base.utilisation, probability, base.mean * factor)


def _phi(rho: float, ca2: float, cs2: float, m: float) -> float:
    gamma = min(0.24, (1 - rho) * (m - 1) * (math.sqrt(4 + 5 * m) - 2) / (16 * m * rho))
    phi_1 = 1 + gamma
    phi_3 = (1 - 4 * gamma) * math.exp(-2 * (1 - rho) / (3 * rho))
    phi_4 = min(1.0, (phi_1 + phi_3) / 2)
    c2 = (ca2 + cs2) / 2
    psi = 1.0 if c2 >= 1 else phi_4 ** (2 * (1 - c2))
    if ca2 == cs2:
        return psi
    if ca2 == 0:
        # Equation 2.25 does not come down to that of evenly spaced arrivals (2.17), which is better there.
        return phi_3
    if ca2 > cs2:
        return (4 * (ca2 - cs2) * phi_1 + cs2 * psi) / (4 * ca2 - 3 * cs2)
    return ((cs2 - ca2) * phi_3 + (cs2 + 3 * ca2) * psi) / (2 * (ca2 + cs2))


def _wait_probability(base: Waiting, ca2: float, cs2: float) -> float:
    from scipy import special

    m, rho = base.servers, base.utilisation
    spare = (1 - rho) * math.sqrt(m)
    plain = float(special.ndtr(-spare))
    if plain < 1e-290:
        return base.probability
    pi_4 = min(
        1.0, float(special.ndtr(-(1 + cs2) * spare / (ca2 + cs2))) / plain * base.probability if ca2 + cs2 else 0
    )
    pi_5 = min(1.0, float(special.ndtr(-2 * spare / (1 + ca2))) / plain * base.probability)
    pi_1 = rho**2 * pi_4 + (1 - rho**2) * pi_5
    if m <= 6 or ca2 >= 1:
        return min(pi_1, 1.0)
    z = (ca2 + cs2) / (1 + cs2)
    gamma = (m - m * rho - 0.5) / math.sqrt(m * rho * z) if z > 0 else math.inf
    if gamma <= 0.5:
        return min(pi_1, 1.0)
    pi_6 = float(special.ndtr(-gamma))
    pi_2 = ca2 * pi_1 + (1 - ca2) * pi_6
    if gamma >= 1:
        return min(pi_2, 1.0)
    part = 2 * (1 - ca2) * (gamma - 0.5)
    return min(part * pi_2 + (1 - part) * pi_1, 1.0)


def hayward(servers: float, load: float, mean_service: float, peakedness: float) -> Waiting:
    """Return the waits of c servers offered peaked traffic: `load` erlangs whose variance is `peakedness` times that.

    Hayward's equivalence (Fredericks, "Congestion in Blocking Systems", BSTJ 1980): as Poisson traffic of load/z
    erlangs on c/z servers. Peakedness is variance over mean of the servers busy if there were no end of them; gangs,
    bursts and daily swings all raise it. The arrival rate of the result is that of the equivalent system's units.
    """
    check_positive(servers=servers, load=load, mean_service=mean_service, peakedness=peakedness)
    check_stable(load, servers)
    return mmc(servers / peakedness, load / peakedness / mean_service, 1 / mean_service)
