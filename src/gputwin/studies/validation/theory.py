"""What each model says of a trace on a cluster, with the assumptions it makes; words instead of figures without one."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from gputwin.core.units import HOUR, WEEK, percent
from gputwin.queueing.distributions import Distribution, exponential
from gputwin.queueing.fit.arrivals import rate_curve
from gputwin.queueing.fit.moments import from_two_moments
from gputwin.queueing.fit.offered import Offered
from gputwin.queueing.general import allen_cunneen, hayward, whitt
from gputwin.queueing.markov import mmc
from gputwin.queueing.steady import UnstableError, Waiting
from gputwin.queueing.time_varying import modified_offered_load

_SEVERAL = 0.95


class Figures(NamedTuple):
    """Waits and use of a cluster, from a model, a simulation or a trace; None where it is unknown."""

    mean_wait: float | None
    """s."""
    p95_wait: float | None
    """s."""
    utilisation: float | None
    """Share of GPUs in use."""
    queue_length: float | None
    """Mean jobs waiting."""


class Prediction(NamedTuple):
    """What one model says, and what it takes for granted."""

    model: str
    assumes: str
    figures: Figures
    share_waiting: float | None
    why_not: str
    """In words, where there is no steady state."""


def predictions(jobs: Offered, gpus: float) -> list[Prediction]:
    """Return what the models say of these jobs on so many GPUs, simplest first.

    All but the last two speak of job slots: GPUs over the mean GPUs of a running job.
    """
    slots, rate, mean = gpus / jobs.gpus_per_job, jobs.arrivals.rate, jobs.mean_run
    service = from_two_moments(mean, jobs.run_scv)
    bursts = max(jobs.arrivals.dispersion_at(mean), 0.0)
    models: list[tuple[str, str, Callable[[], Waiting]]] = [
        (
            "M/M/c",
            "Poisson arrivals, exponential run times, jobs of one size, one pool of GPUs",
            lambda: mmc(slots, rate, 1 / mean),
        ),
        (
            "M/G/c",
            f"as M/M/c, with the run times' squared variation {jobs.run_scv:.3g} (Whitt)",
            lambda: whitt(slots, rate, service),
        ),
        (
            "G/G/c",
            f"as M/G/c, with arrivals' dispersion {bursts:.3g} at the mean run time (Allen–Cunneen)",
            lambda: allen_cunneen(slots, rate, service, bursts),
        ),
        (
            "peaked",
            f"one pool of GPUs, load whose variance is {jobs.peakedness:.3g} times its mean (Hayward)",
            lambda: _per_job(hayward(gpus, jobs.load, mean, jobs.peakedness), rate),
        ),
    ]
    found = [_predict(model, assumes, ask, jobs, gpus) for model, assumes, ask in models]
    return [*found, _changing(jobs, gpus, slots, exponential(mean))]


def _per_job(found: Waiting, rate: float) -> Waiting:
    """Return the same waits counted by the jobs that arrive."""
    return found if rate <= 0 else Waiting(found.servers, rate, found.utilisation, found.probability, found.mean)


def _predict(model: str, assumes: str, ask: Callable[[], Waiting], jobs: Offered, gpus: float) -> Prediction:
    try:
        found = ask()
    except UnstableError:
        return Prediction(model, assumes, Figures(None, None, None, None), None, _overload(jobs, gpus))
    figures = Figures(found.mean, found.quantile(_SEVERAL), jobs.load / gpus, found.queue_length)
    return Prediction(model, assumes, figures, found.probability, "")


def _changing(jobs: Offered, gpus: float, slots: float, service: Distribution) -> Prediction:
    """Return the modified offered load of the weekly rate curve; its mean exists only where no hour is overloaded."""
    model, assumes = "MOL", "as M/M/c, with the rate of each hour of the week (modified offered load)"
    if jobs.until - jobs.begin < WEEK:
        none = Figures(None, None, None, None)
        return Prediction(model, assumes, none, None, "less than a week of arrivals has no weekly curve")
    rates = rate_curve(jobs.submit - jobs.begin, WEEK, HOUR)
    found = modified_offered_load(rates, HOUR, service, max(int(slots), 1))
    if found.mean_wait is None:
        why = f"{percent(found.overloaded, 1)} of jobs arrive in hours whose load exceeds the cluster"
        return Prediction(model, assumes, Figures(None, None, None, None), found.share_waiting, why)
    queue = found.mean_wait * jobs.arrivals.rate
    return Prediction(model, assumes, Figures(found.mean_wait, None, jobs.load / gpus, queue), found.share_waiting, "")


def _overload(jobs: Offered, gpus: float) -> str:
    return f"no steady state: {jobs.load:,.0f} GPUs are asked for on average and there are {gpus:,.0f}"
