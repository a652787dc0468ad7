"""Laws that hold on every sample path, or for every order, whatever the answer is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gputwin.core.rng import stream
from gputwin.simulation.policy import BACKFILLS
from gputwin.simulation.rules import Scheduler
from tests.oracles.formulas import mg1_wait
from tests.oracles.queueing import Arrivals, Floats, Outcome, replicate, serve, servers

ORDERS = ["fifo", "sjf", "priority", "gpu-time"]
RULES = BACKFILLS.names()
WAITING_RULES = [rule for rule in RULES if rule != "loss"]


def mixed_jobs(count: int) -> Arrivals:
    """Gangs and single jobs that take shares of a GPU, one, or several; about 13 GPUs' worth at a time."""
    rng = stream(0, "mixed jobs")
    gpus = rng.choice([1, 2, 4], count, p=[0.7, 0.2, 0.1])
    return Arrivals(
        submit=np.cumsum(rng.exponential(1 / 4.0, count)),
        service=rng.lognormal(0.0, 1.0, count),
        gpus=gpus,
        milli=np.where((gpus == 1) & (rng.random(count) < 0.4), 250, 1000),
        instances=rng.choice([1, 2, 3], count, p=[0.8, 0.1, 0.1]),
        priority=rng.integers(0, 3, count),
    )


def level(edges: Floats, begin: Floats, end: Floats, height: Any = 1.0) -> Floats:
    """Return the integral per bin of the sum of steps that are `height` high between begin and end."""
    height = np.broadcast_to(height, begin.size)

    def ramps(since: Floats) -> Floats:
        """Return for each edge the sum of height × time passed since each of the instants."""
        order = np.argsort(since)
        total = np.concatenate([[0.0], np.cumsum(height[order])])
        moment = np.concatenate([[0.0], np.cumsum(height[order] * since[order])])
        past = np.searchsorted(since[order], edges)
        return total[past] * edges - moment[past]

    return np.diff(ramps(begin) - ramps(end))


@pytest.mark.parametrize("backfill", RULES)
@pytest.mark.parametrize("order", ["fifo", "sjf"])
def test_levels_over_time_are_those_of_the_jobs(order: str, backfill: str) -> None:
    """Little's law on the path: job-seconds counted over time are the jobs' own; so is work, in GPU-seconds."""
    jobs = mixed_jobs(5_000)
    done = serve(jobs, servers(5, 4), Scheduler(order, backfill), bin_seconds=3.7)
    ran, size = ~done.lost, np.broadcast_to(jobs.size, done.lost.size)
    began, ended = done.start[ran], done.end[ran]
    np.testing.assert_allclose(done.busy, level(done.edges, began, ended, size[ran]), atol=1e-6)
    np.testing.assert_allclose(done.running, level(done.edges, began, ended), atol=1e-6)
    np.testing.assert_allclose(done.waiting, level(done.edges, done.submit[ran], began), atol=1e-6)
    assert done.lost.any() if backfill == "loss" else done.wait.mean() > 0.1


@pytest.mark.parametrize("backfill", RULES)
def test_work_done_is_work_brought(backfill: str) -> None:
    jobs = mixed_jobs(5_000)
    done = serve(jobs, servers(5, 4), Scheduler("fifo", backfill), bin_seconds=10 * jobs.submit[-1])
    work = jobs.service * jobs.size
    assert done.busy.sum() == pytest.approx(work[~done.lost].sum(), rel=1e-12)
    assert done.waiting.sum() == pytest.approx(np.nansum(done.wait), rel=1e-9, abs=1e-6)
    np.testing.assert_allclose(done.end - done.start, np.where(done.lost, np.nan, jobs.service), rtol=1e-9)


@pytest.mark.parametrize("backfill", WAITING_RULES)
@pytest.mark.parametrize("order", ORDERS)
def test_the_causes_of_a_wait_sum_to_it(order: str, backfill: str) -> None:
    done = serve(mixed_jobs(5_000), servers(5, 4), Scheduler(order, backfill))
    assert done.causes.min() >= 0
    np.testing.assert_array_equal(np.cumsum(done.causes, axis=1)[:, -1], done.wait)


def single_jobs(count: int, rate: float) -> Arrivals:
    rng = stream(0, "single jobs")
    return Arrivals(
        np.cumsum(rng.exponential(1 / rate, count)), rng.exponential(1.0, count), priority=rng.integers(0, 3, count)
    )


@pytest.mark.parametrize("order", ORDERS)
def test_no_server_idles_while_a_job_waits(order: str) -> None:
    count = 4
    done = serve(single_jobs(20_000, 0.9 * count), servers(count), Scheduler(order, "strict"))
    instants = np.unique(np.concatenate([done.submit, done.start, done.end]))
    begun = np.searchsorted(np.sort(done.start), instants, "right")
    waiting = np.searchsorted(done.submit, instants, "right") - begun
    busy = begun - np.searchsorted(np.sort(done.end), instants, "right")
    assert waiting.min() == 0
    assert waiting.max() > 10
    assert busy.max() == count
    assert (busy[waiting > 0] == count).all()


@pytest.mark.parametrize("order", ORDERS)
def test_overtaking_rules_differ_only_where_jobs_differ(order: str) -> None:
    """Where all jobs ask for the same, who does not fit keeps nobody else out."""
    workload = single_jobs(20_000, 3.6).workload()
    strict = serve(workload, servers(4), Scheduler(order, "strict"))
    # Promises kept to whoever came first are the same only where that is the order.
    for rule in WAITING_RULES if order == "fifo" else ("greedy", "easy"):
        np.testing.assert_array_equal(serve(workload, servers(4), Scheduler(order, rule)).start, strict.start)


def test_a_single_server_is_busy_at_the_same_times_in_every_order() -> None:
    """The work left is the same whoever goes first, so Σ service × wait is too, path by path.

    Kleinrock, Queueing Systems II, section 3.4: the area under the work left is Σ (service × wait + service² / 2).
    """
    workload = single_jobs(20_000, 0.9).workload()

    def busy_periods(done: Outcome) -> Floats:
        first = np.sort(done.start)
        last = np.sort(done.end)
        new = np.concatenate([[True], first[1:] > last[:-1] + 1e-6])
        return np.stack([first[new], np.concatenate([last[:-1][new[1:]], last[-1:]])])

    reference = serve(workload, servers(1))
    total_waits = {"fifo": reference.wait.sum()}
    for order in ORDERS[1:]:
        done = serve(workload, servers(1), Scheduler(order, "strict"))
        np.testing.assert_allclose(busy_periods(done), busy_periods(reference), atol=1e-6)
        assert np.dot(done.service, done.wait) == pytest.approx(np.dot(done.service, reference.wait), rel=1e-9)
        total_waits[order] = done.wait.sum()
    assert total_waits["sjf"] == min(total_waits.values())


def test_what_urgent_jobs_gain_the_others_pay() -> None:
    """Kleinrock's conservation law: Σ load × mean wait of classes is the same in every order blind to service times."""
    rates, means = np.array([0.25, 0.3]), np.array([1.0, 1.5])
    loads = rates * means
    strict, aging = (Scheduler(order="priority", order_parameters={"aging": a}) for a in (0.0, 0.2))

    def draw(rng: np.random.Generator) -> Arrivals:
        urgent = rng.random(20_000) < rates[0] / rates.sum()
        submit = np.cumsum(rng.exponential(1 / rates.sum(), urgent.size))
        return Arrivals(submit, rng.exponential(np.where(urgent, *means)), priority=urgent)

    def measure(jobs: Arrivals, fifo: Outcome) -> dict[str, float]:
        workload = jobs.workload()
        outcomes = {"fifo": fifo} | {
            n: serve(workload, servers(1), s) for n, s in (("strict", strict), ("aging", aging))
        }
        urgent = np.asarray(jobs.priority)[fifo.settled]
        waits = {name: done.wait[done.settled] for name, done in outcomes.items()}
        weighted = {name: loads @ [wait[urgent].mean(), wait[~urgent].mean()] for name, wait in waits.items()}
        assert waits["strict"][urgent].mean() < waits["aging"][urgent].mean() < waits["fifo"][urgent].mean()
        return weighted | {f"{name} − fifo": weighted[name] - weighted["fifo"] for name in ("strict", "aging")}

    found = replicate("conservation law", loads.sum(), draw, measure, servers(1))
    exact = loads.sum() * mg1_wait(rates.sum(), loads.sum() / rates.sum(), 2 * float(loads @ means) / rates.sum())
    for name in ("fifo", "strict", "aging"):
        found.assert_agrees(name, exact, 0.05)
    for name in ("strict − fifo", "aging − fifo"):
        mean, half_width = found.interval(name)
        assert abs(mean) <= half_width <= 0.015 * exact
