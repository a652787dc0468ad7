"""The expected cost of work on spot nodes: special cases, and its least value at the interval it names."""

from __future__ import annotations

import math

import pytest

from gputwin.autoscaling.spot.expected import SpotWork
from gputwin.core.errors import UserError


def test_without_saves_the_cost_is_that_of_an_exponential_restart():
    # One hour of work, one loss an hour: M (e − 1) hours on average.
    assert SpotWork(3600, 1.0, 2.0).expected_cost() == pytest.approx(2.0 * (math.e - 1))


def test_rare_losses_cost_what_the_work_takes():
    assert SpotWork(3600, 1e-9, 2.0).expected_cost() == pytest.approx(2.0)


def test_the_interval_makes_the_cost_least():
    work = SpotWork(100 * 3600.0, 0.5, 1.0, save_seconds=60.0, restart_seconds=300.0)
    best = work.expected_cost()
    assert all(work.expected_cost(work.interval_seconds * f) > best * 0.9999 for f in (0.5, 0.8, 1.25, 2.0))


def test_a_job_on_more_nodes_is_hit_more_often():
    one, four = SpotWork(3600, 0.5, 1.0), SpotWork(3600, 0.5, 1.0, nodes=4)
    assert four.expected_cost() / 4 > one.expected_cost()
    assert four.costs.mtbf_seconds == one.costs.mtbf_seconds / 4


def test_the_price_at_which_spot_stops_paying():
    work = SpotWork(3600, 1.0, 2.0)
    assert work.breaks_even_at(5.0) == pytest.approx(5.0 / (math.e - 1))


def test_a_hazard_of_nothing_is_refused():
    with pytest.raises(UserError, match="give more than 0"):
        SpotWork(3600, 0.0, 1.0)
