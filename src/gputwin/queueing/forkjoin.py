"""Jobs that split into parts on servers of their own and are done when the last part is."""

from __future__ import annotations

from typing import NamedTuple

from gputwin.core.errors import UserError
from gputwin.queueing.steady import check_positive, check_stable


class ForkJoin(NamedTuple):
    """Mean response of a fork-join job, s: bounds, and an estimate between them."""

    lower: float
    estimate: float
    upper: float


def fork_join(parts: int, arrival_rate: float, service_rate: float) -> ForkJoin:
    """Return the mean response of jobs that send one part to each of `parts` M/M/1 servers at once.

    Nelson and Tantawi, "Approximate Analysis of Fork/Join Synchronization in Parallel Queues", 1988: exact for one and
    two parts, within 5 % of simulation up to 32. Parts wait in positively associated queues, so independent ones bound
    from above; parts that never queue for one another bound from below.
    """
    check_positive(parts=parts, arrival_rate=arrival_rate, service_rate=service_rate)
    load = arrival_rate / service_rate
    check_stable(load, 1)
    harmonic = sum(1 / k for k in range(1, parts + 1))
    one = 1 / (service_rate - arrival_rate)
    upper = harmonic * one
    # A job's parts see queues no shorter than one of them, and its own slowest part.
    lower = max(one, one + (harmonic - 1) / service_rate)
    two = (12 - load) / 8 * one
    if parts == 1:
        return ForkJoin(one, one, one)
    if parts == 2:
        return ForkJoin(lower, two, upper)
    return ForkJoin(lower, (harmonic / 1.5 + 4 / 11 * (1 - harmonic / 1.5) * load) * two, upper)


def slowest_of(parts: int, mean: float) -> float:
    """Return the mean of the longest of so many independent exponential times, s: mean × (1 + 1/2 + … + 1/parts)."""
    if parts < 1:
        raise UserError(f"a job has at least one part, not {parts}")
    return mean * sum(1 / k for k in range(1, parts + 1))
