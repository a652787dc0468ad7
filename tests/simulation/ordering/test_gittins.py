"""The Gittins index: by hand, against the best of all schedules, and against least attained service."""

from __future__ import annotations

import itertools
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from gputwin.simulation.gittins_index import gittins_index, limits_of, service_levels
from gputwin.simulation.interruptions import Checkpoints
from gputwin.simulation.ordering.las import QUEUE
from gputwin.simulation.rules import Changes
from tests.oracles.cases import Case
from tests.oracles.reference import Node
from tests.simulation.by_hand import gpus, job
from tests.simulation.test_change_by_hand import lived, play

ONE = gpus(1)
NOTHING_LOST = Changes(checkpoints=Checkpoints(interval_seconds=0.0))


def test_the_index_by_hand() -> None:
    """Six services take 1, two 2 and two 4: at first 6 of 10 end for 1 each; then 2 of 4 for 1, or 4 of 4 for 8 in all."""
    services = np.array([1.0] * 6 + [2.0] * 2 + [4.0] * 2)
    assert gittins_index(services, 0.0) == pytest.approx(6 / 10)
    assert gittins_index(services, 1.0) == pytest.approx(2 / 4)
    assert gittins_index(services, 2.0) == pytest.approx(1 / 2)
    assert gittins_index(services, 3.0) == pytest.approx(1.0)
    assert gittins_index(services, 4.0) == 0.0
    # Who can be stopped at 2 only, or not at all: 8 of 10 end for 6 + 4 × 2, or all for 18.
    assert gittins_index(services, 0.0, np.array([2.0])) == pytest.approx(8 / 14)
    assert service_levels(services, 3).tolist() == [1.0, 2.0, 0.0, 1.0, 1.0]


def test_limits_go_in_equal_ratios_from_the_smallest_service_or_the_least() -> None:
    services = np.array([1.0, 2.0, 16.0])
    assert limits_of(services, 5) == pytest.approx((1.0, 2.0))
    assert limits_of(services, 3, least=4.0) == pytest.approx((4.0, 2.0))
    # A limit beyond all services is reached by nobody: all are in the first step.
    assert limits_of(services, 3, least=100.0) == pytest.approx((16.0, 1.0))


def test_where_all_take_as_long_nobody_is_stopped() -> None:
    """The less is left, the higher the index: first come first served, where least attained service would alternate."""
    case = Case((Node(1),), (job(0, 8, ONE), job(1, 8, ONE), job(2, 8, ONE)))
    assert lived(play(case, "gittins", NOTHING_LOST)) == [(j, 8 * j, 8 * j + 8, "finished") for j in range(3)]


def test_who_has_had_the_likely_service_yields_to_who_has_not() -> None:
    """Services 1, 1, 1 and 4: who has run for 1 s has 3 s left, which is less likely to end soon than a new job."""
    case = Case((Node(1),), (job(0, 4, ONE), job(0.5, 1, ONE), job(0.5, 1, ONE), job(3, 1, ONE)))
    assert lived(play(case, "gittins", NOTHING_LOST, steps=2)) == [
        (0, 0, 1, "preempted"),
        (1, 1, 2, "finished"),
        (2, 2, 3, "finished"),
        (3, 3, 4, "finished"),
        (0, 4, 7, "finished"),
    ]


def test_service_is_gpu_time() -> None:
    """On two GPUs the job of 2 s reaches 1 GPU-second at 0.5; from there on a new one goes first."""
    two = gpus(2)
    case = Case((Node(2),), (job(0, 2, two), job(0.2, 0.5, two), job(0.2, 0.5, two), job(0.2, 0.5, two)))
    assert lived(play(case, "gittins", NOTHING_LOST, steps=2))[0] == (0, 0, 0.5, "preempted")


SUPPORT = (1, 2, 4)


@pytest.mark.parametrize("chances", [(6, 2, 2), (1, 1, 1), (1, 1, 4), (3, 1, 2), (2, 2, 1)])
def test_no_schedule_that_does_not_know_the_services_is_better(chances: tuple[int, ...]) -> None:
    """Two jobs at once on one GPU, in all combinations as often as they are likely: the mean is the best there is.

    The best comes from trying each choice in each state a second at a time (dynamic programming).
    """
    services = [s for s, often in zip(SUPPORT, chances, strict=True) for _ in range(often)]
    pairs = list(itertools.product(services, repeat=2))
    jobs = [job(100.0 * k, s, ONE) for k, pair in enumerate(pairs) for s in pair]
    case = Case((Node(1),), tuple(jobs))
    found = {order: play(case, order, NOTHING_LOST, **settings) for order, settings in ORDERS.items()}
    total = {
        order: float((run.world.queue.jobs["end"] - run.world.queue.jobs["submit"]).sum())
        for order, run in found.items()
    }
    assert total["gittins"] == pytest.approx(float(_best(tuple(services)) * len(pairs)))
    assert total["gittins"] <= total["las"] + 1e-9


ORDERS = {"gittins": {"steps": 3}, "las": {"first": 1, "factor": 2, "queues": 3}}


def _best(services: tuple[int, ...]) -> Fraction:
    """Return the least expected sum of the completion times of two jobs."""
    ends = sorted(set(services))

    def chance(had: int) -> Fraction:
        """Return how likely it is to end with the next second of service."""
        return Fraction(services.count(had + 1), sum(s > had for s in services))

    @cache
    def alone(had: int) -> Fraction:
        return Fraction(0) if had >= ends[-1] else 1 + (1 - chance(had)) * alone(had + 1)

    @cache
    def both(a: int, b: int) -> Fraction:
        if ends[-1] in (a, b):
            return Fraction(10**6)
        return min(
            2 + chance(x) * alone(y) + (1 - chance(x)) * both(*sorted((x + 1, y)))
            for x, y in ((a, b), (b, a))
            if x < ends[-1]
        )

    return both(0, 0)


def _queue(services: np.ndarray, order: str, **settings: float) -> np.ndarray:
    """Return the mean completion times of batches of jobs that come at random on one GPU, 80 % busy, s."""
    submits = np.cumsum(np.random.default_rng(5).exponential(services.mean() / 0.8, services.size))
    jobs = tuple(job(float(t), float(s), ONE) for t, s in zip(submits, services, strict=True))
    done = play(Case((Node(1),), jobs), order, NOTHING_LOST, **settings).world.queue.jobs
    return (done["end"] - done["submit"]).reshape(20, -1).mean(axis=1)


JOBS = 2000
SERVICES = {
    "nearly equal": lambda rng: rng.uniform(8.0, 12.0, JOBS),
    "exponential": lambda rng: rng.exponential(10.0, JOBS),
    "two kinds": lambda rng: rng.choice([2.0, 50.0], JOBS, p=[0.9, 0.1]),
    "lognormal": lambda rng: rng.lognormal(1.0, 1.5, JOBS),
}


@pytest.mark.parametrize("name", SERVICES)
def test_it_is_no_worse_than_least_attained_service_in_a_queue_with_arrivals(name: str) -> None:
    """M/G/1, with the same limits of service for both; batch means, two standard errors where they are close."""
    services = SERVICES[name](np.random.default_rng(3))
    first, factor = limits_of(np.sort(services), 64)
    theirs = _queue(services, "las", first=first, factor=factor, queues=64)
    gap = _queue(services, "gittins", steps=64) - theirs
    if name == "lognormal":
        # The chance to end falls with service but for the shortest: both do nearly the same, and chance decides.
        assert gap.mean() <= 2.0 * gap.std(ddof=1) / np.sqrt(gap.size)
    else:
        assert gap.mean() < 0.0


def test_the_keys_of_many_levels_tell_submissions_apart() -> None:
    assert 64 * QUEUE + 0.01 > 64 * QUEUE
