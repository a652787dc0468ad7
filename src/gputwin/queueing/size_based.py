"""One server that looks at how long jobs are or have run: SJF, SRPT, PS and LAS in M/G/1.

All take continuous distributions of service. Integrals are sums over a fine grid of quantiles; `below` and `above`
restrict a mean to jobs between two shares of the lengths, as in "the shortest half".
"""

from __future__ import annotations

import numpy as np

from gputwin.queueing.distributions import Distribution, Floats, tail_grid
from gputwin.queueing.steady import check_positive, check_stable

_CELLS = 200_000


class _Lengths:
    """Service times on a grid: x s with weight p, and the load of shorter jobs."""

    def __init__(self, arrival_rate: float, service: Distribution) -> None:
        check_positive(arrival_rate=arrival_rate, mean_service=service.mean)
        check_stable(arrival_rate * service.mean, 1)
        self.share, self.weight = tail_grid(_CELLS)
        x = service.quantile(self.share)
        # The grid's own mean is made exact, so that loads near 1 stay on the right side of it.
        self.x: Floats = x * (service.mean / float(x @ self.weight))
        self.rate = arrival_rate
        self.second_moment = service.second_moment
        work = self.x * self.weight
        self.shorter: Floats = arrival_rate * (np.cumsum(work) - work / 2)
        self.longer: Floats = 1 - (np.cumsum(self.weight) - self.weight / 2)

    def mean(self, values: Floats, above: float, below: float) -> float:
        """Return the mean of values over jobs whose length is between these shares."""
        chosen = (above <= self.share) & (self.share < below)
        return float(values[chosen] @ self.weight[chosen] / self.weight[chosen].sum())


def sjf(arrival_rate: float, service: Distribution, *, above: float = 0.0, below: float = 1.0) -> float:
    """Return the mean wait, s, where the shortest waiting job is next and nobody is interrupted.

    Phipps, "Machine Repair as a Priority Waiting-Line Problem", 1956: a job of x s waits λE[S²]/2 / (1 − ρ(x))².
    """
    at = _Lengths(arrival_rate, service)
    wait = arrival_rate * at.second_moment / 2 / (1 - at.shorter) ** 2
    return at.mean(wait, above, below)


def srpt(arrival_rate: float, service: Distribution, *, above: float = 0.0, below: float = 1.0) -> float:
    """Return the mean response (wait and run), s, where the job with least left to do always runs.

    Schrage and Miller, "The Queue M/G/1 with the Shortest Remaining Processing Time Discipline", 1966.
    """
    at = _Lengths(arrival_rate, service)
    square = at.x**2 * at.weight
    upto = np.cumsum(square) - square / 2
    wait = arrival_rate * (upto + at.x**2 * at.longer) / (2 * (1 - at.shorter) ** 2)
    run = np.cumsum(np.diff(at.x, prepend=0.0) / (1 - at.shorter))
    return at.mean(wait + run, above, below)


def processor_sharing(arrival_rate: float, service: Distribution, *, above: float = 0.0, below: float = 1.0) -> float:
    """Return the mean response, s, where all jobs run at once at equal speed: x/(1 − ρ) (Kleinrock, 1967)."""
    at = _Lengths(arrival_rate, service)
    return at.mean(at.x / (1 - arrival_rate * service.mean), above, below)


def least_attained_service(
    arrival_rate: float, service: Distribution, *, above: float = 0.0, below: float = 1.0
) -> float:
    """Return the mean response, s, where the job that has run least runs (LAS, also foreground-background).

    Schrage, "The Queue M/G/1 with Feedback to Lower Priority Queues", 1967: jobs cut off at x s are what one of x s
    sees: λE[min(S, x)²]/2 / (1 − ρx)² + x/(1 − ρx), with ρx = λE[min(S, x)].
    """
    at = _Lengths(arrival_rate, service)
    square = at.x**2 * at.weight
    cut_load = at.shorter + arrival_rate * at.x * at.longer
    cut_square = np.cumsum(square) - square / 2 + at.x**2 * at.longer
    response = arrival_rate * cut_square / (2 * (1 - cut_load) ** 2) + at.x / (1 - cut_load)
    return at.mean(response, above, below)
