"""`auto` is nowhere clearly worse than the last value, and takes a gain where there is one."""

from __future__ import annotations

import numpy as np
import pytest

from gputwin.forecasting.backtest import backtest, schedule
from gputwin.forecasting.combine import combine
from gputwin.forecasting.demand import demand
from gputwin.forecasting.evidence import CREDIT, FEWEST, LAST_VALUE, Guard, proven, quiet_loss, walk
from gputwin.forecasting.series import Target
from gputwin.traces.locate import open_trace
from tests.forecasting.made import daily_wave, series_of

CHEAP = ["naive", "mean", "drift", "window-mean", "ses", "seasonal-naive", "lightgbm-change"]
MOST = 1.02


def autoregressive(phi, bins, rng):
    shocks = rng.normal(size=bins)
    values = np.zeros(bins)
    for i in range(1, bins):
        values[i] = phi * values[i - 1] + shocks[i]
    return values


def levels(rng, bins, change):
    """A level that is drawn anew now and then."""
    return np.repeat(rng.uniform(0, 50, size=bins), rng.geometric(change, size=bins))[:bins]


MADE = {
    "random walk": lambda rng, n: 500 + np.cumsum(rng.normal(size=n)),
    "rare steps": lambda rng, n: 500 + np.cumsum(10 * rng.normal(size=n) * (rng.random(n) < 0.05)),
    "walk with heavy tails": lambda rng, n: 1000 + np.cumsum(rng.standard_t(2, size=n)),
    "slow return": lambda rng, n: 40 + autoregressive(0.97, n, rng),
    "quick return": lambda rng, n: 20 + autoregressive(0.7, n, rng),
    "regimes": lambda rng, n: 10 + levels(rng, n, 0.01) + 0.5 * rng.normal(size=n),
    "held levels": lambda rng, n: levels(rng, n, 0.07),
    "bursts": lambda rng, n: rng.poisson(2, n) + np.where(rng.random(n) < 0.01, rng.exponential(50, n), 0),
    "intermittent": lambda rng, n: np.where(rng.random(n) < 0.15, rng.gamma(2, 5, n), 0),
    "level shifts": lambda rng, n: 50 + np.repeat(np.cumsum(10 * rng.normal(size=n)), 100)[:n] + 2 * rng.normal(size=n),
    "noise, then a walk": lambda rng, n: (
        np.where(np.arange(n) < 0.5 * n, 0, np.cumsum(rng.normal(size=n))) + rng.normal(size=n)
    ),
}


def ratios(series, leads, names, share=0.2):
    plan = schedule(len(series), share)
    tested, choices = combine(backtest(series, leads, names, plan=plan, skip=True))
    found = {}
    for i, lead in enumerate(leads):
        rows = tested.rows(lead, test=True)
        auto, naive = (
            np.sqrt(np.mean((tested.actuals[rows, i] - tested.forecasts[m][rows, i]) ** 2, axis=0))
            for m in ("auto", "naive")
        )
        assert len(rows) >= 100 - lead
        for j, name in enumerate(series.names):
            found[name, lead] = float(auto[j] / naive[j])
    return found, choices


@pytest.mark.parametrize("kind", MADE)
def test_auto_is_never_clearly_worse_than_the_last_value(kind):
    values = [MADE[kind](np.random.default_rng(seed), 520) for seed in range(3)]
    found, _ = ratios(series_of(*values, bin_seconds=3600.0, target=Target.METRIC), (1, 6), CHEAP)
    assert max(found.values()) <= MOST, found


def test_bursts_of_unbounded_size():
    def pareto(seed):
        rng = np.random.default_rng(seed)
        return rng.poisson(2, 520) + np.where(rng.random(520) < 0.01, 50 * rng.pareto(1.5, 520), 0)

    found, _ = ratios(series_of(*map(pareto, range(4)), bin_seconds=3600.0, target=Target.METRIC), (1, 6), CHEAP)
    assert max(found.values()) <= MOST, found


def test_the_guard_counts_in_the_last_values_quiet_times():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=600)
    burst = np.where(np.arange(600) == 300, 1e4, 0.0)
    assert quiet_loss(noise + burst) == pytest.approx(1.0, rel=0.3)
    assert quiet_loss(noise[:50]) == pytest.approx(np.mean(noise[:50] ** 2))


def test_a_step_is_not_much_longer_than_any_that_was_tried():
    rng = np.random.default_rng(0)
    last = rng.normal(size=400)
    actual = 0.1 * rng.normal(size=400)
    last[300] = 100.0
    made = walk(np.zeros((400, 1)), actual, last, 1)
    assert (made.share[100:] > 0.9).all()
    longest = np.abs(last[:300]).max()
    assert longest < last[300] - made.forecast[300] <= 2 * longest


@pytest.mark.parametrize(
    ("file", "metric", "width"),
    [
        ("helios_earth/vc8Sj_sequence.csv.gz", "running_gpus", 600),
        ("servegen/language_m-large_client_rates.csv.gz", "request_rate_per_s", 600),
    ],
)
def test_auto_is_never_clearly_worse_on_real_series(real_data, file, metric, width):
    series = demand(open_trace(str(real_data / file)), "metric", metric=metric, bin_seconds=width)
    found, _ = ratios(series, (1, 6), CHEAP)
    assert max(found.values()) <= MOST, found


def test_auto_takes_a_clear_gain():
    season, _ = ratios(series_of(daily_wave(days=40), bin_seconds=3600.0), (1, 6), CHEAP)
    assert season["s0", 6] < 0.3
    returning = 20 + autoregressive(0.5, 2000, np.random.default_rng(1))
    gained, choices = ratios(series_of(returning, bin_seconds=3600.0, target=Target.METRIC), (1, 6), CHEAP)
    # The best possible are √(1 − φ²) / √(2 (1 − φ)) = 0.87 and about 0.71.
    assert gained["s0", 1] < 0.93
    assert gained["s0", 6] < 0.78
    assert all(c.left > 0.8 for c in choices)


def test_few_forecasts_prove_nothing():
    rng = np.random.default_rng(0)
    errors = rng.normal(size=FEWEST * 6 - 1)
    assert proven(errors[:, None], errors, 6) == LAST_VALUE
    assert proven(errors[:, None], errors, 1).share == 1.0


def test_a_share_is_proven_about_as_often_as_it_should_be():
    rng = np.random.default_rng(0)
    found = [proven(rng.normal(size=(300, 1)), rng.normal(size=300), 1).share > 0 for _ in range(400)]
    assert 0.005 < np.mean(found) < 0.05


def test_the_share_that_is_used_is_near_the_best_one():
    rng = np.random.default_rng(0)
    step = rng.normal(size=4000)
    errors = 0.4 * step + rng.normal(size=4000)
    standing = proven(np.stack([rng.normal(size=4000), step], axis=1), errors, 1)
    assert standing.column == 1
    assert 0.3 < standing.share < 0.45


def test_a_row_uses_nothing_that_was_not_known_at_its_origin():
    rng = np.random.default_rng(0)
    last = np.cumsum(rng.normal(size=600))
    actual = np.append(last[3:], [0.0, 0.0, 0.0]) * 0.9
    table = np.stack([0.9 * last, rng.normal(size=600)], axis=1)
    other = actual.copy()
    other[400:] = 1e3
    one, two = walk(table, actual, last, 3), walk(table, other, last, 3)
    # At origin 402 the target of row 399 is the last that is known.
    assert np.array_equal(one.forecast[:403], two.forecast[:403])
    assert (one.forecast[:403] != last[:403]).any()


def test_the_guard_goes_back_to_the_last_value_soon_after_a_break():
    rng = np.random.default_rng(0)
    last = np.zeros(600)
    table = np.full((600, 1), 3.0)
    actual = np.where(np.arange(600) < 400, 3.0, 0.0) + 0.1 * rng.normal(size=600)
    made = walk(table, actual, last, 1)
    assert (made.share[100:400] > 0.9).all()
    lost = made.share[400:] > 0
    assert 1 <= lost.sum() <= 2 * CREDIT
    assert made.now == LAST_VALUE


def test_a_season_that_stops_is_left_within_a_few_bins():
    def bins_lost(seed):
        rng = np.random.default_rng(seed)
        season = 20 + 6 * np.sin(2 * np.pi * np.arange(1501) / 24)
        noise = 0.5 * rng.normal(size=1501)
        values = season + noise
        values[1200:] = values[1200] + np.cumsum(noise[1200:])
        made = walk(season[1:, None], values[1:], values[:-1], 1)
        assert (made.share[300:1200] > 0.9).all()
        return (made.share[1200:] > 0).sum()

    assert 1 <= np.median([bins_lost(seed) for seed in range(4)]) <= 8


def test_evidence_that_two_bursts_carry_is_that_of_two():
    rng = np.random.default_rng(0)
    step = 0.1 * rng.normal(size=600)
    step[[200, 400]] = 40.0
    errors = 0.5 * step + rng.normal(size=600)
    assert proven(step[:, None], errors, 1).share < 0.45
    even = 3 * rng.normal(size=600)
    assert proven(even[:, None], 0.5 * even + rng.normal(size=600), 1).share > 0.45


def test_trust_is_earned_and_one_burst_does_not_end_it():
    guard = Guard()
    guard.base = 1.0
    guard.see(1.0, 0.0)
    assert not guard.trusts
    for _ in range(10):
        guard.see(1.0, 0.0)
    assert guard.trusts
    guard.see(0.0, 1e9)
    assert guard.trusts
    guard.see(float("nan"), 1.0)
    for _ in range(5):
        guard.see(0.0, 1.0)
    assert not guard.trusts
