"""Queues served in order of arrival: exact for memoryless ones and one server, approximate for several."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from gputwin.queueing.distributions import Constant, Distribution, Floats, Hyperexponential, exponential, lognormal
from gputwin.queueing.fit.moments import from_two_moments
from gputwin.queueing.general import allen_cunneen, hayward, mg1, mg1_wait_exceeds, whitt
from gputwin.queueing.markov import gm1, mmc
from gputwin.queueing.steady import Waiting
from gputwin.studies.validation.queue_workload import Jobs, ServedJobs, poisson, serve, servers
from gputwin.studies.validation.replicate import WARM_UP, Case, Sample

JOBS = 60_000
BURSTY = Hyperexponential((0.8, 0.2), (0.5 / 0.8, 0.5 / 0.2))
"""Mean 1 s; four jobs in five are short and bring half of the work."""
Draw = Callable[[np.random.Generator, int], Floats]


def arrival_order_cases() -> list[Case]:
    """Return the cases."""
    return [*_memoryless(), *_one_server(), *_several_servers(), _batches()]


def settled(jobs: Jobs, done: ServedJobs, load: float) -> tuple[slice, float]:
    """Return the jobs after the warm-up, and by how many erlangs they brought more than was meant."""
    part = slice(int(jobs.submit.size * WARM_UP), None)
    work = (jobs.service * np.broadcast_to(jobs.size, jobs.submit.size))[part].sum()
    return part, float(work / (jobs.submit[-1] - jobs.submit[part][0]) - load)


def waits(
    load: float, count: int, arrivals: Draw, service: Distribution, long: float, jobs: int
) -> Callable[..., Sample]:
    """Return a simulation of `count` servers that measures waits; `long` s is the wait whose share is taken."""

    def simulate(rng: np.random.Generator) -> Sample:
        drawn = Jobs(arrivals(rng, jobs), service.draw(rng, jobs))
        done = serve(drawn, servers(count))
        part, excess = settled(drawn, done, load)
        wait = done.wait[part]
        # Time-averages by their integrals over the settled part: Σ of each job's time in it.
        first, last = float(drawn.submit[part][0]), float(drawn.submit[-1])
        busy = np.clip(done.end, first, last) - np.clip(done.start, first, last)
        queued = np.clip(done.start, first, last) - np.clip(done.submit, first, last)
        return Sample(
            {
                "mean wait": float(wait.mean()),
                "share that waits": float((wait > 0).mean()),
                "share that waits long": float((wait > long).mean()),
                "utilisation": float(busy.sum() / (last - first) / count),
                "queue length": float(queued.sum() / (last - first)),
            },
            excess,
        )

    return simulate


def renewal(between: Distribution) -> Draw:
    """Return arrivals with independent times between them."""
    return lambda rng, count: np.cumsum(between.draw(rng, count))


def _figures(found: Waiting, long: float, *names: str) -> dict[str, float]:
    figures = {
        "mean wait": found.mean,
        "share that waits": found.probability,
        "share that waits long": found.exceeds(long),
        "utilisation": found.utilisation,
        "queue length": found.queue_length,
    }
    return {name: figures[name] for name in names or figures}


def _memoryless() -> list[Case]:
    cases = []
    for count, load, jobs in ((1, 0.7, JOBS), (8, 0.8, 2 * JOBS), (40, 0.9, 3 * JOBS)):
        found = mmc(count, count * load, 1.0)
        long = found.mean_of_waiting
        draw = renewal(exponential(1 / (count * load)))
        cases.append(
            Case(
                f"M/M/{count}" if count > 1 else "M/M/1",
                f"load {load:g}",
                _figures(found, long),
                waits(count * load, count, draw, exponential(1.0), long, jobs),
            )
        )
    return cases


def _one_server() -> list[Case]:
    cases, rate, long = [], 0.6, 3.0
    services: dict[str, Distribution] = {
        "constant": Constant(1.0),
        "lognormal, cs² 4": lognormal(1.0, 4.0),
        "hyperexponential": BURSTY,
    }
    for name, service in services.items():
        figures = _figures(mg1(rate, service), long, "mean wait", "queue length")
        figures["share that waits long"] = float(mg1_wait_exceeds(rate, service, np.array([long]))[0])
        simulate = waits(rate, 1, renewal(exponential(1 / rate)), service, long, 2 * JOBS)
        cases.append(Case("M/G/1 (Pollaczek–Khinchine)", f"{name}, load 0.6", figures, simulate))
    gaps: dict[str, Distribution] = {"even": Constant(1 / 0.75), "ca² 4": from_two_moments(1 / 0.75, 4.0)}
    for name, between in gaps.items():
        found = gm1(partial(_transform, between), 0.75, 1.0)
        simulate = waits(0.75, 1, renewal(between), exponential(1.0), 4.0, 2 * JOBS)
        theory = _figures(found, 4.0, "mean wait", "share that waits", "share that waits long")
        cases.append(Case("GI/M/1", f"arrivals {name}, load 0.75", theory, simulate))
    return cases


def _transform(of: Distribution, s: float) -> float:
    return float(of.transform(np.array([complex(s)]))[0].real)


def _several_servers() -> list[Case]:
    count, load = 8, 0.8
    rate = count * load
    settings: list[tuple[str, Distribution, Distribution, float, float]] = [
        ("M/D/8", exponential(1 / rate), Constant(1.0), 0.15, 0.1),
        ("M/lognormal/8, cs² 4", exponential(1 / rate), lognormal(1.0, 4.0), 0.35, 0.25),
        ("E2/M/8", from_two_moments(1 / rate, 0.5), exponential(1.0), 0.25, 0.13),
        ("H2/M/8, ca² 4", from_two_moments(1 / rate, 4.0), exponential(1.0), 0.35, 0.25),
    ]
    cases = []
    for name, between, service, plain_error, refined_error in settings:
        ca2 = between.second_moment / between.mean**2 - 1
        simulate = waits(rate, count, renewal(between), service, 1.0, 2 * JOBS)
        plain = {"mean wait": allen_cunneen(count, rate, service, ca2).mean}
        refined = _figures(whitt(count, rate, service, ca2), 1.0, "mean wait", "share that waits")
        setting = f"{name}, load {load:g}"
        cases.append(Case("Allen–Cunneen", setting, plain, simulate, tolerance=plain_error))
        cases.append(Case("Whitt 1993", setting, refined, simulate, tolerance=refined_error))
    return cases


def _batches() -> Case:
    """Poisson batches of 1 to 7 jobs: the variance of servers busy is (1 + E[X²]/E[X])/2 of the mean."""
    count, load = 60, 0.8
    sizes = np.arange(1, 8)
    mean, square = sizes.mean(), (sizes**2).mean()
    peakedness = (1 + square / mean) / 2

    def arrivals(rng: np.random.Generator, jobs: int) -> Floats:
        numbers = rng.integers(1, 8, jobs)
        return np.repeat(poisson(rng, count * load / mean, jobs), numbers)[:jobs]

    found = hayward(count, count * load, 1.0, peakedness)
    theory = {"mean wait": found.mean}
    simulate = waits(count * load, count, arrivals, exponential(1.0), 1.0, 2 * JOBS)
    setting = f"batches of 1 to 7, z = {peakedness:g}, 60 servers, load {load:g}"
    return Case("Hayward (peaked traffic)", setting, theory, simulate, tolerance=0.25)
