"""Intervals hold what they promise: the block bootstrap where values depend on their neighbours, the rule's effect."""

from __future__ import annotations

import narwhals as nw
import numpy as np
import polars as pl
import pytest

from gputwin.analysis.bootstrap import block_weights, mean_intervals
from gputwin.analysis.effects import rule_effects
from gputwin.analysis.tasks import BINS


def dependent(seed: int, mean: float = 10.0) -> pl.DataFrame:
    """Return values whose level wanders from bin to bin with a memory of about five bins."""
    rng = np.random.default_rng(seed)
    level = np.zeros(BINS)
    for i in range(1, BINS):
        level[i] = 0.6 * level[i - 1] + rng.normal()
    bins = np.repeat(np.arange(BINS), 20)
    return pl.DataFrame({"bin": bins, "value": mean + level[bins] + rng.normal(size=bins.size)})


def test_the_interval_covers_the_mean_where_neighbours_are_alike() -> None:
    covered, widths, naive = 0, [], []
    for seed in range(60):
        frame = dependent(seed)
        (row,) = mean_intervals(nw.from_native(frame.lazy()), "value", seed=seed).to_dicts()
        covered += row["low"] <= 10.0 <= row["high"]
        widths.append(row["high"] - row["low"])
        naive.append(2 * 1.96 * frame["value"].std() / frame.height**0.5)  # type: ignore[operator]
    # Nominal 95 %; blocks of finite length fall a little short. Resampling single values would cover half.
    assert covered >= 49
    assert np.mean(widths) > 3 * np.mean(naive)


def test_every_replicate_draws_as_many_bins_as_there_are() -> None:
    weights = block_weights(BINS, 50, seed=3)
    assert (weights.sum(axis=1) == BINS).all()
    assert weights.mean() == pytest.approx(1.0)
    assert (block_weights(BINS, 50, seed=3) == weights).all()


def test_too_few_bins_give_no_interval() -> None:
    frame = pl.DataFrame({"bin": [0, 1, 2], "value": [1.0, 2.0, 3.0]})
    assert mean_intervals(nw.from_native(frame.lazy()), "value").row(0) == (None, None)


def rules(seed: int, effect: float, tasks: int = 6000) -> pl.DataFrame:
    """Return tasks of applications of two roles; one role waits longer and uses the rule more often."""
    rng = np.random.default_rng(seed)
    application = rng.integers(0, 40, tasks)
    role = (application % 2 == 0).astype(int)
    rule = (rng.random(tasks) < np.where(role == 1, 0.8, 0.2)).astype(int)
    own = rng.normal(0, 5, 40)[application]
    wait = 50 + 100 * role + own + effect * rule + rng.exponential(20, tasks)
    columns = {
        "application": [f"a{a}" for a in application],
        "role": [f"r{r}" for r in role],
        "rule": rule,
        "wait": wait,
    }
    return pl.DataFrame(columns)


@pytest.mark.parametrize("effect", [0.0, 15.0])
def test_a_rule_is_told_apart_from_those_who_use_it(effect: float) -> None:
    frame = rules(4, effect)
    controls = [[], ["role"], ["role", "application"]]
    found = rule_effects(nw.from_native(frame.lazy()), "rule", 0, controls, "application")
    raw, role, application = [e for e in found if e.outcome == "wait"]
    assert raw.estimate is not None
    assert raw.estimate > effect + 40
    for e in (role, application):
        assert e.estimate is not None
        assert e.low is not None
        assert e.high is not None
        assert e.low < effect < e.high
    assert (application.estimate > 5) == (effect > 0)


def test_the_effect_within_strata_is_the_least_squares_coefficient() -> None:
    frame = rules(9, 7.0, 800)
    found = rule_effects(nw.from_native(frame.lazy()), "rule", 0, [["role", "application"]], "application")
    strata = frame["application"].to_dummies().to_numpy().astype(float)
    design = np.column_stack([frame["rule"].to_numpy(), strata])
    coefficient = np.linalg.lstsq(design, frame["wait"].to_numpy(), rcond=None)[0][0]
    assert found[0].estimate == pytest.approx(coefficient)


def test_a_rule_nobody_changes_has_no_effect_to_see() -> None:
    frame = pl.DataFrame({"application": ["a", "a", "b", "b"], "rule": [1, 1, 0, 0], "wait": [9.0, 8.0, 1.0, 0.0]})
    raw, _, within, _ = rule_effects(nw.from_native(frame.lazy()), "rule", 0, [[], ["application"]], "application")
    assert raw.estimate == pytest.approx(8.0)
    assert within.estimate is None
    assert within.tasks_compared == 0
