"""Classes of different urgency: who waits how long, with and without interrupting others."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

from gputwin.queueing.distributions import Distribution
from gputwin.queueing.erlang import erlang_c
from gputwin.queueing.markov import mmc
from gputwin.queueing.steady import check_stable


class ClassOfJobs(NamedTuple):
    """Jobs of one urgency: how many come per second and how long they run."""

    arrival_rate: float
    service: Distribution


class ClassWait(NamedTuple):
    """What one class sees, s: until it first runs, and until it is done."""

    wait: float
    response: float


def mg1_priority(classes: Sequence[ClassOfJobs]) -> list[ClassWait]:
    """Return the mean waits of each class, most urgent first, on one server that nobody is interrupted on.

    Cobham, "Priority Assignment in Waiting Line Problems", 1954: R / ((1 − σ(k−1))(1 − σ(k))), where σ(k) is the load
    of class k and those before it and R the work left on the server that an arrival finds.
    """
    residual = sum(c.arrival_rate * c.service.second_moment for c in classes) / 2
    upto = _loads(classes)
    check_stable(upto[-1], 1)
    waits = [residual / ((1 - a) * (1 - b)) for a, b in pairwise(upto)]
    return [ClassWait(w, w + c.service.mean) for w, c in zip(waits, classes, strict=True)]


def mg1_preemptive(classes: Sequence[ClassOfJobs]) -> list[ClassWait]:
    """Return the same where the more urgent interrupt and work is resumed later; the wait is all time not running.

    Preemptive resume (White and Christie, 1958; Conway, Maxwell and Miller, Theory of Scheduling, 1967, section 8-7):
    T(k) = E[S(k)]/(1 − σ(k−1)) + R(k)/((1 − σ(k−1))(1 − σ(k))), where R(k) counts classes up to k alone.
    """
    upto = _loads(classes)
    check_stable(upto[-1], 1)
    residuals = accumulate(c.arrival_rate * c.service.second_moment / 2 for c in classes)
    result = []
    for c, (a, b), residual in zip(classes, pairwise(upto), residuals, strict=True):
        response = c.service.mean / (1 - a) + residual / ((1 - a) * (1 - b))
        result.append(ClassWait(response - c.service.mean, response))
    return result


def mmc_priority(servers: int, arrival_rates: Sequence[float], service_rate: float) -> list[ClassWait]:
    """Return the mean waits of each class, most urgent first, on c servers nobody is interrupted on (Cobham, 1954).

    All classes have the same exponential service.
    """
    load = sum(arrival_rates) / service_rate
    residual = erlang_c(servers, load) / (servers * service_rate)
    upto = [0.0, *accumulate(rate / (servers * service_rate) for rate in arrival_rates)]
    waits = [residual / ((1 - a) * (1 - b)) for a, b in pairwise(upto)]
    return [ClassWait(w, w + 1 / service_rate) for w in waits]


def mmc_preemptive(servers: int, arrival_rates: Sequence[float], service_rate: float) -> list[ClassWait]:
    """Return the same where the more urgent interrupt: classes up to k are an M/M/c of their own.

    All classes have the same exponential service, so the k most urgent together see M/M/c at their joint rate (Buzen
    and Bondi, "The Response Times of Priority Classes under Preemptive Resume in M/M/m Queues", 1983), and differences
    of Little's law give each.
    """
    check_stable(sum(arrival_rates) / service_rate, servers)
    result, queued = [], 0.0
    for rate, total in zip(arrival_rates, accumulate(arrival_rates), strict=True):
        waiting = mmc(servers, total, service_rate).queue_length
        wait = (waiting - queued) / rate
        queued = waiting
        result.append(ClassWait(wait, wait + 1 / service_rate))
    return result


def _loads(classes: Sequence[ClassOfJobs]) -> list[float]:
    return [0.0, *accumulate(c.arrival_rate * c.service.mean for c in classes)]
