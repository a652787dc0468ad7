"""Priorities, size-based orders and time sharing: conservation laws, known special cases, integrals in high precision."""

from __future__ import annotations

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gputwin.core.errors import UserError
from gputwin.queueing.distributions import BoundedPareto, Constant, exponential, lognormal
from gputwin.queueing.general import mg1
from gputwin.queueing.markov import mm1, mmc
from gputwin.queueing.priority import ClassOfJobs, mg1_preemptive, mg1_priority, mmc_preemptive, mmc_priority
from gputwin.queueing.sharing import slice_time, time_shared
from gputwin.queueing.size_based import least_attained_service, processor_sharing, sjf, srpt
from gputwin.queueing.steady import UnstableError


def test_cobhams_two_classes_by_hand() -> None:
    """Loads 0.3 and 0.4, exponential of 1 s: R = 0.7, waits 0.7/0.7 and 0.7/(0.7·0.3)."""
    urgent, others = mg1_priority([ClassOfJobs(0.3, exponential(1.0)), ClassOfJobs(0.4, exponential(1.0))])
    assert urgent.wait == pytest.approx(1.0)
    assert others.wait == pytest.approx(1 / 0.3)


@given(st.floats(0.05, 0.4), st.floats(0.05, 0.5), st.floats(0, 8))
def test_priority_moves_waiting_but_does_not_change_the_sum(first: float, second: float, variation: float) -> None:
    """Kleinrock's conservation law: Σ ρ(k)·W(k) is what it is in order of arrival."""
    classes = [ClassOfJobs(first, lognormal(1.0, variation + 0.01)), ClassOfJobs(second / 2, exponential(2.0))]
    loads = [c.arrival_rate * c.service.mean for c in classes]
    residual = sum(c.arrival_rate * c.service.second_moment for c in classes) / 2
    waits = mg1_priority(classes)
    assert sum(p * w.wait for p, w in zip(loads, waits, strict=True)) == pytest.approx(
        sum(loads) * residual / (1 - sum(loads))
    )
    assert waits[0].wait < waits[1].wait


def test_who_interrupts_sees_nobody_below() -> None:
    classes = [ClassOfJobs(0.4, lognormal(1.0, 3.0)), ClassOfJobs(0.2, exponential(2.0))]
    first, second = mg1_preemptive(classes)
    assert first.wait == pytest.approx(mg1(0.4, lognormal(1.0, 3.0)).mean)
    assert second.wait > mg1_priority(classes)[1].wait


def test_one_exponential_server_is_the_same_by_both_ways() -> None:
    rates = [0.2, 0.3, 0.25]
    classes = [ClassOfJobs(r, exponential(1.0)) for r in rates]
    for by_classes, by_servers in (
        (mg1_priority(classes), mmc_priority(1, rates, 1.0)),
        (mg1_preemptive(classes), mmc_preemptive(1, rates, 1.0)),
    ):
        for a, b in zip(by_classes, by_servers, strict=True):
            assert a.response == pytest.approx(b.response)


@given(st.integers(1, 30), st.lists(st.floats(0.05, 0.3), min_size=1, max_size=3))
def test_classes_of_one_kind_wait_together_as_without_classes(servers: int, shares: list[float]) -> None:
    rates = [s * servers for s in shares]
    together = mmc(servers, sum(rates), 1.0).mean
    for waits in (mmc_priority(servers, rates, 1.0), mmc_preemptive(servers, rates, 1.0)):
        mean = sum(r * w.wait for r, w in zip(rates, waits, strict=True)) / sum(rates)
        assert mean == pytest.approx(together)


def srpt_exponential(rate: float) -> float:
    """Return SRPT's mean response for exponential service of 1 s, by quadrature in 30 digits."""
    with mpmath.workdps(30):
        lam = mpmath.mpf(rate)

        def load(x: mpmath.mpf) -> mpmath.mpf:
            return lam * (1 - mpmath.exp(-x) * (1 + x))

        def square(x: mpmath.mpf) -> mpmath.mpf:
            return 2 - mpmath.exp(-x) * (x * x + 2 * x + 2)

        ends = [0, 0.5, 2, 6, 15, 40]
        wait = mpmath.quad(
            lambda x: mpmath.exp(-x) * lam * (square(x) + x**2 * mpmath.exp(-x)) / (2 * (1 - load(x)) ** 2), ends
        )
        # E ∫0^X dt/(1 − ρ(t)) = ∫ P(X > t)/(1 − ρ(t)) dt.
        run = mpmath.quad(lambda t: mpmath.exp(-t) / (1 - load(t)), ends)
        return float(wait + run)


@pytest.mark.parametrize("rate", [0.2, 0.5, 0.8, 0.9, 0.95])
def test_srpt_against_quadrature(rate: float) -> None:
    assert srpt(rate, exponential(1.0)) == pytest.approx(srpt_exponential(rate), rel=1e-4)


@pytest.mark.parametrize("rate", [0.3, 0.7, 0.9])
def test_blind_disciplines_agree_for_exponential_service(rate: float) -> None:
    """Who does not know lengths cannot do better or worse on memoryless ones."""
    exact = mm1(rate, 1.0).mean + 1
    assert processor_sharing(rate, exponential(1.0)) == pytest.approx(exact, rel=1e-4)
    assert least_attained_service(rate, exponential(1.0)) == pytest.approx(exact, rel=1e-3)


def test_equal_jobs_gain_nothing_from_being_ordered_by_length() -> None:
    fifo = mg1(0.6, Constant(1.0)).mean
    assert sjf(0.6, Constant(1.0)) == pytest.approx(fifo, rel=1e-3)


@settings(max_examples=8, deadline=None)
@given(st.floats(0.1, 0.9), st.floats(1.5, 20))
def test_the_order_of_the_orders(rate: float, variation: float) -> None:
    """SRPT is optimal (Schrage, 1968); with decreasing hazard LAS beats PS, and SJF waits less than order of arrival."""
    service = lognormal(1.0, variation)
    best, shared = srpt(rate, service), processor_sharing(rate, service)
    assert best <= shared * (1 + 1e-6)
    assert best <= least_attained_service(rate, service) * (1 + 1e-6)
    assert best - 1 <= sjf(rate, service) * (1 + 1e-6)
    assert sjf(rate, service) <= mg1(rate, service).mean * (1 + 1e-6)


def test_las_favours_jobs_under_a_falling_hazard() -> None:
    service = BoundedPareto(1.2, 1.0, 10_000.0)
    rate = 0.7 / service.mean
    assert least_attained_service(rate, service) < processor_sharing(rate, service)
    assert srpt(rate, service, below=0.5) < processor_sharing(rate, service, below=0.5)


def test_switching_costs_what_it_says() -> None:
    assert slice_time(10.0, 0.05, 40) == pytest.approx(12.0)
    free = time_shared(0.6, 1.0, 0.01, 0.0)
    assert free.response == pytest.approx(2.5)
    assert free.switching == 0.0
    costly = time_shared(0.6, 1.0, 0.01, 0.0025)
    assert costly.efficiency == pytest.approx(0.8)
    assert costly.response > free.response


def test_time_sharing_balances() -> None:
    """Work done equals work brought: alone at full speed, together at the efficiency."""
    rate, mean = 0.5, 1.3
    found = time_shared(rate, mean, 1.0, 0.25)
    ratio = rate * mean / found.efficiency
    empty = 1 - found.busy
    alone = empty * rate * mean
    together = found.busy - alone
    assert alone + found.efficiency * together == pytest.approx(rate * mean)
    assert found.mean_jobs == pytest.approx(empty * sum(n * rate * mean * ratio ** (n - 1) for n in range(1, 4000)))
    plenty = time_shared(rate, mean, 1.0, 0.25, most_jobs=2000)
    assert plenty.response == pytest.approx(found.response)
    assert plenty.switching == pytest.approx(found.switching)


def test_one_job_at_a_time_is_erlangs_loss() -> None:
    found = time_shared(2.0, 1.0, 0.1, 0.05, most_jobs=1)
    assert found.response == pytest.approx(1.0)
    assert found.busy == pytest.approx(2 / 3)


def test_switching_can_overload_a_device_that_has_room() -> None:
    with pytest.raises(UnstableError, match="longer slices"):
        time_shared(0.85, 1.0, 0.01, 0.0025)
    with pytest.raises(UnstableError, match="grows without end"):
        srpt(1.2, exponential(1.0))
    with pytest.raises(UserError):
        time_shared(0.5, 1.0, 0.01, -1.0)
