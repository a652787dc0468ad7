"""Where theory has an exact answer, the engine gives it: within a 99.9 % confidence interval that is narrow enough to tell.

Each figure is the mean of independent replications (Student's interval; the seeds are fixed, so the outcome is too). Mean
service is 1 s unless said otherwise, and loads are moderate, so that the warm-up left out is many relaxation times long.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from scipy import stats

from gputwin.simulation.simulate import Scheduler
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
from tests.oracles.queueing import Arrivals, Floats, Outcome, assert_agrees, replicate, serve, servers

REPLICATIONS = 20
JOBS = 50_000
BY_PRIORITY = Scheduler(order="priority", order_parameters={"aging": 0.0})
LOSS = Scheduler(backfill="loss")


@dataclass(frozen=True)
class Service:
    """A distribution of service times with mean 1 s."""

    draw: Callable[[np.random.Generator, int], Floats]
    second_moment: float


def lognormal(second_moment: float) -> stats.rv_continuous:
    return stats.lognorm(np.sqrt(np.log(second_moment)), scale=second_moment**-0.5)


def hyperexponential(rng: np.random.Generator, jobs: int) -> Floats:
    """Nine jobs in ten are short: two phases that carry half of the load each."""
    return rng.exponential(np.where(rng.random(jobs) < 0.9, 0.5 / 0.9, 0.5 / 0.1))


SERVICES = {
    "exponential": Service(lambda rng, n: rng.exponential(1.0, n), 2.0),
    "deterministic": Service(lambda rng, n: np.ones(n), 1.0),
    "lognormal": Service(lambda rng, n: lognormal(3.0).rvs(n, random_state=rng), 3.0),
    "hyperexponential": Service(hyperexponential, 2 * (0.9 * (0.5 / 0.9) ** 2 + 0.1 * (0.5 / 0.1) ** 2)),
}


def poisson(rng: np.random.Generator, rate: float, jobs: int = JOBS) -> Floats:
    return np.cumsum(rng.exponential(1 / rate, jobs))


def waits(done: Outcome) -> dict[str, float]:
    return {"mean wait": float(done.wait[done.settled].mean()), "jobs waiting": done.time_average(done.waiting)}


@pytest.mark.parametrize("kind", SERVICES)
def test_single_server_waits_as_pollaczek_and_khinchine_say(kind: str) -> None:
    rate, service = 0.7, SERVICES[kind]

    def once(rng: np.random.Generator) -> dict[str, float]:
        return waits(serve(Arrivals(poisson(rng, rate), service.draw(rng, JOBS)), servers(1)))

    found = replicate(f"M/G/1 {kind}", REPLICATIONS, once)
    exact = mg1_wait(rate, 1.0, service.second_moment)
    assert_agrees(found["mean wait"], exact, 0.06, f"M/G/1 {kind}, mean wait")
    assert_agrees(found["jobs waiting"], rate * exact, 0.06, f"M/G/1 {kind}, jobs waiting (Little)")


@pytest.mark.parametrize(("count", "rate"), [(1, 0.7), (3, 2.3), (10, 8.0)])
def test_several_servers_wait_as_erlang_c_says(count: int, rate: float) -> None:
    def once(rng: np.random.Generator) -> dict[str, float]:
        done = serve(Arrivals(poisson(rng, rate), rng.exponential(1.0, JOBS)), servers(count))
        wait = done.wait[done.settled]
        return waits(done) | {
            "share that waits": float((wait > 0).mean()),
            "share that waits over 1 s": float((wait > 1).mean()),
            "servers busy": done.time_average(done.busy),
        }

    found = replicate(f"M/M/{count}", REPLICATIONS, once)
    exact = mmc_wait(count, rate, 1.0)
    assert_agrees(found["mean wait"], exact, 0.05, f"M/M/{count}, mean wait")
    assert_agrees(found["jobs waiting"], rate * exact, 0.05, f"M/M/{count}, jobs waiting (Little)")
    assert_agrees(found["share that waits"], erlang_c(count, rate), 0.02, f"M/M/{count}, share that waits")
    longer = mmc_wait_exceeds(count, rate, 1.0, 1.0)
    assert_agrees(found["share that waits over 1 s"], longer, 0.04, f"M/M/{count}, share that waits over 1 s")
    assert_agrees(found["servers busy"], rate, 0.01, f"M/M/{count}, servers busy")


def test_even_arrivals_wait_as_the_root_of_gm1_says() -> None:
    rate = 0.8

    def once(rng: np.random.Generator) -> dict[str, float]:
        return waits(serve(Arrivals(np.arange(1, JOBS + 1) / rate, rng.exponential(1.0, JOBS)), servers(1)))

    found = replicate("D/M/1", REPLICATIONS, once)
    assert_agrees(found["mean wait"], dm1_wait(rate, 1.0), 0.04, "D/M/1, mean wait")


@pytest.mark.parametrize("kind", ["exponential", "lognormal"])
def test_shortest_first_waits_as_phipps_says(kind: str) -> None:
    rate, service = 0.8, SERVICES[kind]
    distribution = stats.expon() if kind == "exponential" else lognormal(service.second_moment)
    median, long = distribution.ppf(0.5), distribution.ppf(0.9)

    def once(rng: np.random.Generator) -> dict[str, float]:
        done = serve(Arrivals(poisson(rng, rate), service.draw(rng, JOBS)), servers(1), Scheduler(order="sjf"))
        wait, length = done.wait[done.settled], done.service[done.settled]
        return {
            "all": float(wait.mean()),
            "short half": float(wait[length < median].mean()),
            "longest tenth": float(wait[length > long].mean()),
        }

    found = replicate(f"SJF {kind}", REPLICATIONS, once)
    for which, low, high in (("all", 0, 200), ("short half", 0, median), ("longest tenth", long, 200)):
        exact = sjf_wait(rate, distribution.pdf, service.second_moment, low, high)
        assert_agrees(found[which], exact, 0.08 if which == "longest tenth" else 0.05, f"SJF {kind}, {which}")


def test_urgent_jobs_wait_as_cobham_says_on_one_server() -> None:
    """Urgent jobs take 1 s, others 1.5 s, both exponential."""
    rates, means = np.array([0.25, 0.3]), np.array([1.0, 1.5])

    def once(rng: np.random.Generator) -> dict[str, float]:
        submit = poisson(rng, rates.sum())
        urgent = rng.random(JOBS) < rates[0] / rates.sum()
        service = rng.exponential(np.where(urgent, *means))
        return waits_by_class(serve(Arrivals(submit, service, priority=urgent), servers(1), BY_PRIORITY), urgent)

    found = replicate("priority M/G/1", REPLICATIONS, once)
    exact = priority_waits(float(np.sum(rates * 2 * means**2) / 2), rates * means)
    assert_agrees(found["urgent"], exact[0], 0.03, "M/G/1 with priority, urgent")
    assert_agrees(found["others"], exact[1], 0.05, "M/G/1 with priority, others")


def test_urgent_jobs_wait_as_cobham_says_on_four_servers() -> None:
    count, rates = 4, np.array([1.0, 2.0])

    def once(rng: np.random.Generator) -> dict[str, float]:
        urgent = rng.random(JOBS) < rates[0] / rates.sum()
        jobs = Arrivals(poisson(rng, rates.sum()), rng.exponential(1.0, JOBS), priority=urgent)
        return waits_by_class(serve(jobs, servers(count), BY_PRIORITY), urgent)

    found = replicate("priority M/M/4", REPLICATIONS, once)
    exact = priority_waits(erlang_c(count, rates.sum()) / count, rates / count)
    assert_agrees(found["urgent"], exact[0], 0.03, "M/M/4 with priority, urgent")
    assert_agrees(found["others"], exact[1], 0.05, "M/M/4 with priority, others")


def waits_by_class(done: Outcome, urgent: np.ndarray) -> dict[str, float]:
    wait, urgent = done.wait[done.settled], urgent[done.settled]
    return {"urgent": float(wait[urgent].mean()), "others": float(wait[~urgent].mean())}


@pytest.mark.parametrize("kind", ["exponential", "hyperexponential"])
def test_loss_is_erlang_b_whatever_the_service(kind: str) -> None:
    count, rate = 10, 8.0

    def once(rng: np.random.Generator) -> dict[str, float]:
        done = serve(Arrivals(poisson(rng, rate), SERVICES[kind].draw(rng, JOBS)), servers(count), LOSS)
        return {"lost": float(done.lost[done.settled].mean()), "busy": done.time_average(done.busy)}

    found = replicate(f"M/G/c/c {kind}", REPLICATIONS, once)
    exact = erlang_b(count, rate)
    assert_agrees(found["lost"], exact, 0.02, f"M/G/10/10 {kind}, share lost")
    assert_agrees(found["busy"], rate * (1 - exact), 0.01, f"M/G/10/10 {kind}, servers busy")


UNITS = 16
LOADS = {1: 4.0, 2: 2.0, 4: 1.0}
LAYOUTS = {
    "GPUs of a node": (servers(1, UNITS), lambda size: {"gpus": size}),
    "gangs over nodes": (servers(UNITS, 1), lambda size: {"instances": size}),
    "shares of a GPU": (servers(1, 1), lambda size: {"milli": size * 1000 // UNITS}),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_loss_of_jobs_of_several_sizes_is_kaufman_s_and_roberts_s(layout: str) -> None:
    cluster, ask = LAYOUTS[layout]
    sizes, rate = np.array(list(LOADS)), sum(LOADS.values())

    def once(rng: np.random.Generator) -> dict[str, float]:
        size = rng.choice(sizes, JOBS, p=np.array(list(LOADS.values())) / rate)
        done = serve(Arrivals(poisson(rng, rate), rng.exponential(1.0, JOBS), **ask(size)), cluster, LOSS)
        lost, size = done.lost[done.settled], size[done.settled]
        return {f"size {b}": float(lost[size == b].mean()) for b in LOADS}

    # The same jobs for each layout: sixteen units are sixteen units.
    found = replicate("Kaufman and Roberts", REPLICATIONS, once)
    for b, exact in kaufman_roberts(UNITS, LOADS).items():
        assert_agrees(found[f"size {b}"], exact, 0.04, f"{layout}, share of size {b} lost")


def test_gangs_wait_as_the_markov_chain_says() -> None:
    """Two servers; six jobs in ten take one, the others both: strict order leaves a server idle before a large job."""
    rate, single, rates = 0.7, 0.6, {1: 1.0, 2: 1.25}

    def once(rng: np.random.Generator) -> dict[str, float]:
        size = np.where(rng.random(JOBS) < single, 1, 2)
        service = rng.exponential(np.where(size == 1, 1 / rates[1], 1 / rates[2]))
        return waits(serve(Arrivals(poisson(rng, rate), service, instances=size), servers(2)))

    assert gang_wait(1.4, 1.0, 1.0, 1.0) == pytest.approx(mmc_wait(2, 1.4, 1.0))
    assert gang_wait(0.7, 0.0, 1.0, 1.0) == pytest.approx(mmc_wait(1, 0.7, 1.0))
    found = replicate("gangs", REPLICATIONS, once)
    exact = gang_wait(rate, single, rates[1], rates[2])
    assert_agrees(found["mean wait"], exact, 0.05, "gangs on two servers, mean wait")
    assert_agrees(found["jobs waiting"], rate * exact, 0.05, "gangs on two servers, jobs waiting (Little)")
