"""The hazard of spot nodes over time: by hand, by price, by a record, and what it makes work cost."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gputwin.autoscaling.nodes.supply import SpotSupply, read_record
from gputwin.autoscaling.spot.expected import SpotWork
from gputwin.autoscaling.spot.hazard import Hazard, Series, by_price, by_record, constant, read_prices
from gputwin.core.errors import InputError, UserError

HOUR = 3600.0
CALM_THEN_DEAR = Series(np.array([0.0, 6 * HOUR]), np.array([1.0, 3.0]), 12 * HOUR)


def test_a_node_is_lost_when_the_summed_hazard_reaches_the_draw() -> None:
    # One loss an hour for an hour, then none for an hour.
    hazard = Hazard(Series(np.array([0.0, HOUR]), np.array([1.0, 0.0]), 2 * HOUR))
    assert hazard.lost_at(0.0, 0.5) == pytest.approx(0.5 * HOUR)
    assert hazard.lost_at(0.0, 1.5) == pytest.approx(2.5 * HOUR)
    assert hazard.lost_at(1.5 * HOUR, 0.25) == pytest.approx(2.25 * HOUR)
    assert hazard.lost_at(0.5 * HOUR, 2.0) == pytest.approx(4.5 * HOUR)
    assert constant(0.5).lost_at(100.0, 1.0) == pytest.approx(100.0 + 2 * HOUR)
    assert constant(0.0).lost_at(0.0, 1.0) == math.inf


def test_the_hazard_follows_the_price_and_keeps_its_mean() -> None:
    linear, squared, flat = (by_price(0.4, CALM_THEN_DEAR, power).per_hour for power in (1.0, 2.0, 0.0))
    assert linear.values.tolist() == pytest.approx([0.2, 0.6])
    assert squared.values.tolist() == pytest.approx([0.08, 0.72])
    assert flat.values.tolist() == pytest.approx([0.4, 0.4])
    assert all(series.mean == pytest.approx(0.4) for series in (linear, squared, flat))


def test_the_hazard_of_a_record_is_losses_by_node_hours() -> None:
    # Two nodes for an hour, of which one is lost; the other for three hours more.
    two = Series(np.array([0.0, HOUR]), np.array([2.0, 1.0]), 4 * HOUR)
    assert by_record([two], bin_seconds=2 * HOUR).per_hour.values.tolist() == pytest.approx([1 / 3, 0.0])
    assert by_record([two], bin_seconds=4 * HOUR).per_hour.values.tolist() == pytest.approx([1 / 5])


def test_the_published_preemptions_have_a_hazard(reference) -> None:
    hazard = read_record(reference / "oracles/spot/skypilot_spot_traces.csv.gz", ["aws-04-22-2023"]).per_hour
    assert 0.05 < hazard.mean < 2.0
    assert hazard.values.max() > 2 * hazard.mean


def test_without_change_the_cost_is_that_of_a_constant_hazard() -> None:
    work = SpotWork(2 * HOUR, 0.5, 2.0, save_seconds=60.0, restart_seconds=120.0)
    found = work.expected_cost_over_time(constant(0.5), 1800.0, cells=120)
    assert found == pytest.approx(work.expected_cost(1800.0), rel=2e-4)


def test_the_cost_over_time_is_what_random_losses_cost() -> None:
    hazard = by_price(0.4, CALM_THEN_DEAR, 2.0)
    work = SpotWork(2 * HOUR, 0.4, 1.0, save_seconds=60.0, restart_seconds=120.0)
    prices = CALM_THEN_DEAR.relative()
    start = 5 * HOUR
    expected = work.expected_cost_over_time(hazard, 1800.0, start, prices)
    draws = np.random.default_rng(7)
    costs = [_random_cost(hazard, prices, start, draws) for _ in range(4000)]
    assert abs(np.mean(costs) - expected) < 3 * np.std(costs) / math.sqrt(len(costs))
    # The mean hazard at the mean price would be off by more than the error of the simulated mean.
    assert expected - work.expected_cost(1800.0) > 5 * np.std(costs) / math.sqrt(len(costs))


def _random_cost(hazard: Hazard, prices: Series, start: float, draws: np.random.Generator) -> float:
    """Return the cost of two hours of work in four parts with saves, lived through loss by loss."""
    now, restart = start, 0.0
    for needed in (1860.0, 1860.0, 1860.0, 1800.0):
        while (lost := hazard.lost_at(now, draws.exponential())) < now + restart + needed:
            now, restart = lost, 120.0
        now, restart = now + restart + needed, 0.0
    return float(prices.integral(now) - prices.integral(start)) / HOUR


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("time_seconds,cost\n0,1\n", "column missing"),
        ("time_seconds,price_per_hour\n0,1\n", "fewer than two"),
        ("time_seconds,price_per_hour\n0,1\n60,-2\n", "0 or more"),
        ("time_seconds,price_per_hour\n0,1\n0,2\n", "rise from 0"),
    ],
)
def test_prices_that_are_none_are_one_line(tmp_path, text: str, message: str) -> None:
    path = tmp_path / "prices.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_prices(path)


def test_prices_are_read_in_their_order(tmp_path) -> None:
    path = tmp_path / "prices.csv"
    path.write_text("time_seconds,price_per_hour\n160,0.6\n100,0.3\n")
    series = read_prices(path)
    assert (series.times.tolist(), series.values.tolist(), series.span_seconds) == ([0, 60], [0.3, 0.6], 120)


def test_a_power_below_nothing_is_refused() -> None:
    with pytest.raises(UserError, match="power of the price"):
        SpotSupply(price_power=-1.0)
