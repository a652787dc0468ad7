"""The cheapest course is the best of all courses on small cases, and worked by hand on known ones."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gputwin.autoscaling.foresight import cheapest_course

HOUR = 3600.0


def test_a_short_gap_is_bridged_and_a_long_one_is_not() -> None:
    """Stopping saves the gap's hours and costs a boot: kept over one bin, stopped over three, with a boot of two."""
    work = np.array([2, 1, 2, 1, 1, 1, 2], dtype=float) * HOUR
    course = cheapest_course(work, HOUR, boot_seconds=2 * HOUR, price_per_hour=1.0, first=2)
    assert course.replicas.tolist() == [2, 2, 2, 1, 1, 1, 2]
    assert course.compute == pytest.approx(11 + 2)
    assert course.penalty == 0


def test_work_that_may_wait_is_served_later() -> None:
    work = np.array([2, 0, 2, 0], dtype=float) * HOUR
    course = cheapest_course(
        work, HOUR, boot_seconds=HOUR, price_per_hour=1.0, penalty_per_second=1.0, allowed_seconds=HOUR, first=1
    )
    # One replica, never a start; half the work waits for an hour, and not longer.
    assert course.replicas.tolist() == [1, 1, 1, 1]
    assert course.total == 4.0


def cost_of(course: tuple[int, ...], units: list[int], boot: float, first: int, minimum: int) -> float:
    """Return the cost of a course where nothing may wait."""
    if any(n < max(u, minimum) for n, u in zip(course, units, strict=True)):
        return np.inf
    starts = sum(max(b - a, 0) for a, b in itertools.pairwise((first, *course)))
    return sum(course) + starts * boot


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=5),
    st.sampled_from([0.0, 0.5, 2.0, 5.0]),
    st.integers(0, 3),
    st.integers(0, 1),
)
def test_no_course_is_cheaper(units: list[int], boot: float, first: int, minimum: int) -> None:
    found = cheapest_course(
        np.array(units) * HOUR, HOUR, boot_seconds=boot * HOUR, price_per_hour=1.0, first=first, minimum=minimum
    )
    best = min(cost_of(c, units, boot, first, minimum) for c in itertools.product(range(4), repeat=len(units)))
    assert found.total == pytest.approx(best)
    assert cost_of(tuple(found.replicas), units, boot, first, minimum) == pytest.approx(best)


def waiting_cost(course: tuple[int, ...], units: list[int], allowed: int, late: float, boot: float) -> float:
    """Return the cost of a course where work older than `allowed` bins costs `late` per unit and bin."""
    left, cost, before = 0, 0.0, 0
    for t, (n, u) in enumerate(zip(course, units, strict=True)):
        left = max(left + u - n, 0)
        young = sum(units[max(t + 1 - allowed, 0) : t + 1])
        cost += n + max(n - before, 0) * boot + max(left - young, 0) * late
        before = n
    return cost


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=5),
    st.sampled_from([0.0, 1.5]),
    st.sampled_from([1, 2]),
    st.sampled_from([0.2, 3.0]),
)
def test_no_course_is_cheaper_where_work_may_wait(units: list[int], boot: float, allowed: int, late: float) -> None:
    found = cheapest_course(
        np.array(units) * HOUR,
        HOUR,
        boot_seconds=boot * HOUR,
        price_per_hour=1.0,
        penalty_per_second=late / HOUR,
        work_per_request=HOUR,
        allowed_seconds=allowed * HOUR,
    )
    best = min(waiting_cost(c, units, allowed, late, boot) for c in itertools.product(range(4), repeat=len(units)))
    # Waiting work has a greatest level, beyond which the course may only be too cheap.
    assert found.total <= best + 1e-9
    if sum(units) <= 1.5 * max(sum(units[max(t + 1 - allowed, 0) : t + 1]) for t in range(len(units))):
        assert found.total == pytest.approx(best)
