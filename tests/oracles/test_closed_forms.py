"""Where theory has an exact answer, the engine gives it, within a 99.9 % confidence interval narrow enough to tell.

Each figure is the mean of independent replications; seeds are fixed, so the outcome is too. Loads are moderate, so that
the warm-up left out is many relaxation times long. Mean service is 1 s unless said otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from gputwin.core.rng import stream
from gputwin.simulation.rules import Scheduler
from tests.oracles.formulas import (
    dm1_wait,
    erlang_b,
    erlang_c,
    gang_wait,
    kaufman_roberts,
    mg1_wait,
    mmc_wait,
    mmc_wait_exceeds,
    priority_waits,
    sjf_wait,
)
from tests.oracles.queueing import Arrivals, Floats, Outcome, replicate, serve, servers

JOBS = 50_000
FEWER_JOBS = 30_000
BY_PRIORITY = Scheduler("priority", "strict", order_parameters={"aging": 0.0})
LOSS = Scheduler(backfill="loss")


class Service(NamedTuple):
    """A distribution of service times with mean 1 s."""

    draw: Callable[[np.random.Generator, int], Floats]
    second_moment: float


LOGNORMAL_VARIANCE = np.log(2.0)
LOGNORMAL = stats.lognorm(np.sqrt(LOGNORMAL_VARIANCE), scale=np.exp(-LOGNORMAL_VARIANCE / 2))


def lognormal(rng: np.random.Generator, jobs: int) -> Floats:
    return rng.lognormal(-LOGNORMAL_VARIANCE / 2, np.sqrt(LOGNORMAL_VARIANCE), jobs)


def hyperexponential(rng: np.random.Generator, jobs: int) -> Floats:
    """Four jobs in five are short and bring half of the load."""
    return rng.exponential(np.where(rng.random(jobs) < 0.8, 0.5 / 0.8, 0.5 / 0.2))


SERVICES = {
    "exponential": Service(lambda rng, n: rng.exponential(1.0, n), 2.0),
    "deterministic": Service(lambda rng, n: np.ones(n), 1.0),
    "lognormal": Service(lognormal, 2.0),
    "hyperexponential": Service(hyperexponential, 2 * (0.8 * (0.5 / 0.8) ** 2 + 0.2 * (0.5 / 0.2) ** 2)),
}


def poisson(rng: np.random.Generator, rate: float, jobs: int = JOBS) -> Floats:
    return np.cumsum(rng.exponential(1 / rate, jobs))


def waits(_: Arrivals, done: Outcome) -> dict[str, float]:
    return {"mean wait": float(done.wait[done.settled].mean()), "jobs waiting": done.time_average(done.waiting)}


def waits_by_class(jobs: Arrivals, done: Outcome) -> dict[str, float]:
    wait, urgent = done.wait[done.settled], np.asarray(jobs.priority)[done.settled] > 0
    return {"urgent": float(wait[urgent].mean()), "others": float(wait[~urgent].mean())}


@pytest.mark.parametrize("kind", ["deterministic", "lognormal", "hyperexponential"])
def test_a_single_server_waits_as_pollaczek_and_khinchine_say(kind: str) -> None:
    rate, service = 0.6, SERVICES[kind]

    def draw(rng: np.random.Generator) -> Arrivals:
        return Arrivals(poisson(rng, rate), service.draw(rng, JOBS))

    found = replicate(f"M/G/1 {kind}", rate, draw, waits, servers(1))
    exact = mg1_wait(rate, 1.0, service.second_moment)
    found.assert_agrees("mean wait", exact, 0.03)
    found.assert_agrees("jobs waiting", rate * exact, 0.03)


@pytest.mark.parametrize(("count", "rate", "jobs"), [(1, 0.7, JOBS), (3, 2.1, 60_000), (8, 5.6, 2 * JOBS)])
def test_servers_wait_as_erlang_c_says(count: int, rate: float, jobs: int) -> None:
    long = 1 / (count - rate)

    def draw(rng: np.random.Generator) -> Arrivals:
        return Arrivals(poisson(rng, rate, jobs), rng.exponential(1.0, jobs))

    def measure(jobs: Arrivals, done: Outcome) -> dict[str, float]:
        wait = done.wait[done.settled]
        return waits(jobs, done) | {
            "share that waits": float((wait > 0).mean()),
            "share that waits long": float((wait > long).mean()),
            "servers busy": done.time_average(done.busy),
        }

    found = replicate(f"M/M/{count}", rate, draw, measure, servers(count))
    exact = mmc_wait(count, rate, 1.0)
    found.assert_agrees("mean wait", exact, 0.035)
    found.assert_agrees("jobs waiting", rate * exact, 0.035)
    found.assert_agrees("share that waits", erlang_c(count, rate), 0.02)
    found.assert_agrees("share that waits long", mmc_wait_exceeds(count, rate, 1.0, long), 0.04)
    found.assert_agrees("servers busy", rate, 0.005)


def test_even_arrivals_wait_as_the_root_of_gm1_says() -> None:
    rate = 0.75

    def draw(rng: np.random.Generator) -> Arrivals:
        return Arrivals(np.arange(1, JOBS + 1) / rate, rng.exponential(1.0, JOBS))

    found = replicate("D/M/1", rate, draw, waits, servers(1))
    found.assert_agrees("mean wait", dm1_wait(rate, 1.0), 0.03)


@pytest.mark.parametrize(("kind", "quantile"), [("exponential", stats.expon.ppf), ("lognormal", LOGNORMAL.ppf)])
def test_shortest_first_waits_as_phipps_says(kind: str, quantile: Callable[[Any], Any]) -> None:
    rate, service = 0.7, SERVICES[kind]
    groups = {"all": (0.0, 1.0), "shorter half": (0.0, 0.5), "longest fifth": (0.8, 1.0)}

    def draw(rng: np.random.Generator) -> Arrivals:
        return Arrivals(poisson(rng, rate), service.draw(rng, JOBS))

    def measure(jobs: Arrivals, done: Outcome) -> dict[str, float]:
        wait, length = done.wait[done.settled], jobs.service[done.settled]
        inside = {name: (quantile(a) < length) & (length < quantile(b)) for name, (a, b) in groups.items()}
        return {name: float(wait[chosen].mean()) for name, chosen in inside.items()}

    found = replicate(f"M/G/1 {kind} SJF", rate, draw, measure, servers(1), Scheduler("sjf", "strict"))
    for name, (low, high) in groups.items():
        found.assert_agrees(name, sjf_wait(rate, quantile, service.second_moment, low, high), 0.04)


def test_urgent_jobs_wait_as_cobham_says_on_one_server() -> None:
    """Urgent jobs take 1 s, others 1.5 s on average."""
    rates, means = np.array([0.25, 0.3]), np.array([1.0, 1.5])
    loads = rates * means

    def draw(rng: np.random.Generator) -> Arrivals:
        urgent = rng.random(JOBS) < rates[0] / rates.sum()
        return Arrivals(poisson(rng, rates.sum()), rng.exponential(np.where(urgent, *means)), priority=urgent)

    found = replicate("M/G/1 with priority", loads.sum(), draw, waits_by_class, servers(1), BY_PRIORITY)
    urgent, others = priority_waits(float(loads @ means), loads)
    found.assert_agrees("urgent", urgent, 0.03)
    found.assert_agrees("others", others, 0.04)


def test_urgent_jobs_wait_as_cobham_says_on_four_servers() -> None:
    count, rates = 4, np.array([1.0, 1.8])

    def draw(rng: np.random.Generator) -> Arrivals:
        urgent = rng.random(JOBS) < rates[0] / rates.sum()
        return Arrivals(poisson(rng, rates.sum()), rng.exponential(1.0, JOBS), priority=urgent)

    found = replicate("M/M/4 with priority", rates.sum(), draw, waits_by_class, servers(count), BY_PRIORITY)
    urgent, others = priority_waits(erlang_c(count, rates.sum()) / count, rates / count)
    found.assert_agrees("urgent", urgent, 0.03)
    found.assert_agrees("others", others, 0.04)


@pytest.mark.parametrize("kind", ["exponential", "hyperexponential"])
def test_loss_is_erlang_b_whatever_the_service(kind: str) -> None:
    count, rate = 10, 8.0

    def draw(rng: np.random.Generator) -> Arrivals:
        return Arrivals(poisson(rng, rate, FEWER_JOBS), SERVICES[kind].draw(rng, FEWER_JOBS))

    def measure(_: Arrivals, done: Outcome) -> dict[str, float]:
        return {"lost": float(done.lost[done.settled].mean()), "servers busy": done.time_average(done.busy)}

    found = replicate(f"M/G/10/10 {kind}", rate, draw, measure, servers(count), LOSS)
    exact = erlang_b(count, rate)
    found.assert_agrees("lost", exact, 0.02)
    found.assert_agrees("servers busy", rate * (1 - exact), 0.005)


UNITS = 10
LOADS = {1: 3.0, 2: 1.5, 5: 0.6}


def several_sizes(rng: np.random.Generator) -> tuple[Arrivals, NDArray[np.int64]]:
    """Return jobs that bring these loads, each on one server, and how many of the units each shall take."""
    loads = np.array(list(LOADS.values()))
    size = rng.choice(list(LOADS), FEWER_JOBS, p=loads / loads.sum())
    return Arrivals(poisson(rng, loads.sum(), FEWER_JOBS), rng.exponential(1.0, FEWER_JOBS)), size


def test_loss_of_jobs_of_several_sizes_is_what_kaufman_and_roberts_say() -> None:
    """Jobs take 1, 2 or 5 tenths of a GPU."""

    def draw(rng: np.random.Generator) -> Arrivals:
        jobs, size = several_sizes(rng)
        return replace(jobs, milli=1000 * size // UNITS)

    def measure(jobs: Arrivals, done: Outcome) -> dict[str, float]:
        lost, milli = done.lost[done.settled], np.asarray(jobs.milli)[done.settled]
        return {f"size {b}": float(lost[milli == 1000 * b // UNITS].mean()) for b in LOADS}

    load = sum(b * load for b, load in LOADS.items()) / UNITS
    found = replicate("shares of a GPU, lost", load, draw, measure, servers(1), LOSS)
    for b, exact in kaufman_roberts(UNITS, LOADS).items():
        found.assert_agrees(f"size {b}", exact, 0.03)


def test_ten_units_are_ten_units() -> None:
    """Tenths of a GPU, GPUs of a node and gangs over nodes of one GPU lose the same jobs."""
    jobs, size = several_sizes(stream(0, "units"))
    shares = serve(replace(jobs, milli=1000 * size // UNITS), servers(1), LOSS)
    gpus = serve(replace(jobs, gpus=size), servers(1, UNITS), LOSS)
    gangs = serve(replace(jobs, instances=size), servers(UNITS), LOSS)
    np.testing.assert_array_equal(gpus.lost, shares.lost)
    np.testing.assert_array_equal(gangs.lost, shares.lost)


def test_the_markov_chain_of_gangs_has_the_plain_queues_as_its_ends() -> None:
    assert gang_wait(1.4, 1.0, 1.0, 1.0) == pytest.approx(mmc_wait(2, 1.4, 1.0))
    assert gang_wait(0.7, 0.0, 1.0, 1.0) == pytest.approx(mmc_wait(1, 0.7, 1.0))


def test_gangs_wait_as_their_markov_chain_says() -> None:
    """Two servers; six jobs in ten take one, the others both: strict order leaves a server idle before a large job."""
    rate, single, rates = 0.8, 0.6, (1.0, 1.25)

    def draw(rng: np.random.Generator) -> Arrivals:
        size = np.where(rng.random(JOBS) < single, 1, 2)
        return Arrivals(poisson(rng, rate), rng.exponential(1 / np.where(size == 1, *rates)), instances=size)

    load = rate * (single / rates[0] + 2 * (1 - single) / rates[1])
    found = replicate("gangs on two servers", load, draw, waits, servers(2))
    exact = gang_wait(rate, single, *rates)
    found.assert_agrees("mean wait", exact, 0.03)
    found.assert_agrees("jobs waiting", rate * exact, 0.03)
