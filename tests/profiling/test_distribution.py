"""Grid, decision and trees against exhaustive search and LightGBM itself."""

from __future__ import annotations

import lightgbm
import numpy as np
import pytest

from gputwin.profiling.distribution import BINS, MASS, Grid
from gputwin.profiling.jobs import Submitted
from gputwin.profiling.model import fit
from gputwin.profiling.models.forest import Forest, Grove, grow
from gputwin.profiling.trees import Trees
from tests.profiling.workloads import history, lasting


@pytest.fixture(scope="module")
def grid() -> Grid:
    duration = np.exp(np.random.default_rng(0).normal(6, 1.5, 5000))
    return Grid.of(duration, np.ones(5000))


def test_the_cheapest_duration_is_what_exhaustive_search_finds(grid: Grid) -> None:
    mass = np.random.default_rng(1).dirichlet(np.full(BINS, 0.05), 200).astype(MASS)
    found = grid.cheapest(mass)
    error = np.abs(grid.values[:, None] - grid.values[None])
    ratio = np.maximum(grid.values[:, None] / grid.values[None], grid.values[None] / grid.values[:, None])
    cost = mass @ (error + grid.price * (ratio > 2.0))
    assert found == pytest.approx(grid.values[cost.argmin(axis=1)])


def test_quantiles_are_where_the_mass_is_reached_and_intervals_hold_their_bins(grid: Grid) -> None:
    mass = np.zeros((1, BINS), MASS)
    mass[0, [10, 20, 30]] = 0.2, 0.5, 0.3
    low, middle, high = grid.quantiles(mass, np.array([0.1, 0.5, 0.9]))[0]
    assert (low, middle, high) == (grid.least[10], grid.values[20], grid.most[30])


def test_intervals_hold_what_they_promise_of_a_few_outcomes(grid: Grid) -> None:
    """A dozen outcomes of unequal weight, as after a few repetitions; the truth is drawn from the distribution itself."""
    rng = np.random.default_rng(1)
    mass = np.zeros((3000, BINS), np.float32)
    for row in mass:
        np.add.at(row, rng.integers(0, BINS, 12), rng.uniform(0.2, 1.0, 12))
    mass /= mass.sum(axis=1, keepdims=True)
    low, high = grid.quantiles(mass, np.array([0.1, 0.9])).T
    inside = (grid.values >= low[:, None] * (1 - 1e-9)) & (grid.values <= high[:, None] * (1 + 1e-9))
    assert (mass * inside).sum(axis=1).mean() == pytest.approx(0.8, abs=0.02)


def test_cautious_quantiles_are_where_the_level_is_reached(grid: Grid) -> None:
    rng = np.random.default_rng(2)
    mass = rng.dirichlet(np.full(BINS, 0.05), 500).astype(np.float32)
    low, high = grid.quantiles(mass, np.array([0.1, 0.9]), cautious=True).T
    reached = np.cumsum(mass, axis=1, dtype=np.float64) / mass.sum(axis=1, dtype=np.float64)[:, None]
    assert np.array_equal(low, grid.least[(reached >= 0.1).argmax(axis=1)])
    assert np.array_equal(high, grid.most[(reached >= 0.9).argmax(axis=1)])


def test_the_grid_keeps_point_masses() -> None:
    duration = np.array([13.0] * 50 + [5000.0] * 50)
    grid = Grid.of(duration, np.ones(100))
    mass = grid.histogram(np.log(np.full(4, 13.0)), np.ones(4))
    assert grid.cheapest(mass)[0] == pytest.approx(13.0)
    assert grid.quantiles(mass, np.array([0.1, 0.9]))[0] == pytest.approx([13.0, 13.0])


def test_a_job_that_ran_on_has_outlived_the_short_ones() -> None:
    """Half took 10 s, half 1,000 s: after 500 s it is one of the latter; after 3,000 s it takes at least that."""
    duration = np.array([10.0] * 50 + [1000.0] * 50)
    model = fit("median", lasting(duration))
    jobs = Submitted(history(4).jobs.frame)
    before, after = model.forecast(jobs), model.forecast(jobs, ran=np.array([0.0, 500.0, 999.0, 3000.0]))
    assert before.mean == pytest.approx(np.full(4, 505.0), rel=1e-3)
    assert after.mean == pytest.approx([505.0, 1000.0, 1000.0, 3000.0], rel=1e-3)
    assert after.quantiles[0] == pytest.approx([10.0, 10.0, 1000.0])
    assert after.quantiles[1:, 1] == pytest.approx([1000.0, 1000.0, 3000.0])


def test_exponential_durations_have_no_memory() -> None:
    duration = np.random.default_rng(5).exponential(1000.0, 50_000) + 1.0
    model = fit("median", lasting(duration))
    jobs = Submitted(history(3).jobs.frame)
    ran = np.array([0.0, 700.0, 2000.0])
    assert model.forecast(jobs, ran=ran).mean - ran == pytest.approx(np.full(3, 1000.0), rel=0.05)


def test_our_walk_down_the_trees_is_lightgbms() -> None:
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(500, 6))
    values = rows[:, 0] * 2 + np.sin(rows[:, 1])
    texts = [grow(grove, rows, values, np.ones(500), 0) for grove in (Grove(3, 0.4, 20), Grove(8, 0.6, 5))]
    trees = Trees.of(texts)
    boosters = [lightgbm.Booster(model_str=text) for text in texts]
    leaf_of = np.concatenate([np.asarray(b.predict(rows, pred_leaf=True)) for b in boosters], axis=1).astype(np.int64)
    sizes = np.bincount(np.repeat(0, leaf_of.shape[1]), leaf_of.max(axis=0) + 1)
    assert trees.roots.size == leaf_of.shape[1]
    bins = rng.integers(0, BINS, 500)
    leaves = trees.distributions(rows, bins, np.ones(500))
    assert sizes[0] <= trees.leaves
    # By LightGBM's own leaves: rows that share a leaf in a tree weigh into each other's distribution.
    expected = np.zeros((500, BINS))
    for tree in range(leaf_of.shape[1]):
        same = leaf_of[:, tree][:, None] == leaf_of[:, tree][None]
        expected += (same / same.sum(axis=1, keepdims=True)) @ np.eye(BINS)[bins]
    assert trees.mixture(rows, leaves) == pytest.approx(expected / leaf_of.shape[1], abs=1e-5)


def test_a_prediction_is_the_same_alone_and_in_a_crowd() -> None:
    past = history(300)
    model = fit("forest", past)
    assert isinstance(model, Forest)
    crowd = model.forecast(past.jobs)
    for row in (0, 7, 299):
        alone = model.forecast(Submitted(past.jobs.frame[row]))
        assert alone.seconds[0] == crowd.seconds[row]
        assert np.array_equal(alone.quantiles[0], crowd.quantiles[row])
