"""The interior methods beside HiGHS and ECOS, and plans worked by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gputwin.simulation.planning.elimination import SharingProgram
from gputwin.simulation.planning.embedding import solve_embedded
from gputwin.simulation.planning.interior import solve
from gputwin.simulation.planning.max_min import max_min, worth_of
from gputwin.simulation.planning.one_model import FifoInPlace, fifo, shortest_first
from gputwin.simulation.planning.programs import vertex
from gputwin.simulation.planning.snapshot import PLANNERS, Pairs, snapshot_of
from gputwin.simulation.planning.space_sharing import max_min_sharing


def drawn(seed, jobs, kind):
    rng = np.random.default_rng(seed)
    rate = rng.lognormal(0, 1.5, (jobs, 3)) * (rng.random((jobs, 3)) < 0.9)
    rate[:, 2] += 0.01
    gpus = rng.choice([1.0, 2.0, 4.0], jobs)
    capacity = rng.integers(4, 40, 3).astype(float)
    if kind == "level":
        return SharingProgram(rate, rate.mean(axis=1) / gpus, np.zeros(jobs), gpus, capacity, np.zeros_like(rate), 1.0)
    _, level = vertex(SharingProgram(rate, rate.max(axis=1), np.zeros(jobs), gpus, capacity, 0 * rate, 1.0))
    least = rate.max(axis=1) * level * rng.random(jobs) * 0.9
    return SharingProgram(rate, np.zeros(jobs), least, gpus, capacity, rate, 0.0)


@settings(max_examples=60, deadline=None)
@example(441, 1, "gain")  # one job fills a model just as it fills its time: near the optimum the equations are singular
@given(st.integers(0, 10**6), st.integers(1, 60), st.sampled_from(["level", "gain"]))
@pytest.mark.parametrize("method", [solve, solve_embedded])
def test_both_methods_reach_the_optimum_of_highs(method, seed, jobs, kind):
    program = drawn(seed, jobs, kind)
    found = method(program)
    shares, level = vertex(program)
    worth = program.level_gain * level + (program.gain * shares).sum()
    assert found.converged
    assert program.level_gain * found.level + (program.gain * found.shares).sum() == pytest.approx(worth, rel=1e-6)
    assert (program.rate * found.shares).sum(axis=1) == pytest.approx(
        np.maximum((program.rate * found.shares).sum(axis=1), program.level * found.level + program.least), rel=1e-5
    )


def test_of_many_optima_the_embedded_method_returns_that_of_ecos():
    """Five jobs on three models with GPUs to spare; the shares are those that ECOS 2.0.14 prints for this program."""
    rate = np.array([[1, 2, 4], [2, 3, 10], [1, 1, 2], [0.5, 3, 3], [4, 5, 6.0]])
    level, gpus, capacity = np.array([2, 5, 1, 2, 5.0]), np.array([1, 2, 1, 4, 1.0]), np.array([3, 6, 4.0])
    found = solve_embedded(SharingProgram(rate, level, np.zeros(5), gpus, capacity, np.zeros((5, 3)), 1.0))
    ecos = [
        [0.153912, 0.225368, 0.514517],
        [0.143210, 0.192840, 0.572132],
        [0.207421, 0.229260, 0.453672],
        [0.086241, 0.757813, 0.097380],
        [0.0, 0.0, 1.0],
    ]
    assert found.level == pytest.approx(1.2)
    assert found.shares == pytest.approx(np.array(ecos), abs=2e-5)


def test_a_job_without_competitors_is_spread_over_all_it_can_use():
    """A vertex would give one of the two equal models and leave the other idle."""
    plan = max_min(snapshot_of(("a", "b"), np.array([2.0, 2.0]), np.ones((1, 2))))
    assert plan.alone[0] == pytest.approx([0.5, 0.5], abs=1e-3)


def test_water_filling_raises_those_who_can_still_be_raised():
    """Job 0 runs on model b only, which job 1 may use too: after b is full, job 1 is raised on its own model."""
    snapshot = snapshot_of(
        ("a", "b"), np.array([1.0, 1.0]), np.array([[0.0, 1.0], [1.0, 1.0], [0.0, 1.0]]), gpus=np.ones(3)
    )
    plan = PLANNERS.get("water-filling").make()(snapshot)
    assert plan.throughputs(snapshot) == pytest.approx([0.5, 1.0, 0.5], abs=1e-4)


def test_an_entity_shares_its_weight_among_its_jobs():
    """Two entities of equal weight, one with three jobs: on 2 GPUs the lone job gets 1, the three share the other."""
    snapshot = snapshot_of(
        ("a",),
        np.array([2.0]),
        np.ones((4, 1)),
        entity=np.array([0, 1, 1, 1]),
        entity_weights=np.ones(2),
    )
    fair = PLANNERS.get("hierarchical-fair").make()(snapshot)
    assert fair.alone[:, 0] == pytest.approx([1, 1 / 3, 1 / 3, 1 / 3], abs=1e-3)
    in_order = PLANNERS.get("hierarchical-fifo").make()(snapshot)
    assert in_order.alone[:, 0] == pytest.approx([1, 1, 0, 0], abs=1e-3)


def test_weights_double_a_share():
    snapshot = snapshot_of(("a",), np.array([1.0]), np.ones((2, 1)), weights=np.array([1.0, 2.0]))
    assert max_min(snapshot).alone[:, 0] == pytest.approx([1 / 3, 2 / 3], abs=1e-5)


def test_first_come_and_shortest_first_take_the_fastest_free_model():
    snapshot = snapshot_of(
        ("slow", "fast"),
        np.array([1.0, 1.0]),
        np.array([[1.0, 4.0], [1.0, 2.0], [1.0, 8.0]]),
        steps_left=np.array([40.0, 2.0, 40.0]),
    )
    assert fifo(snapshot).alone.tolist() == [[0, 1], [1, 0], [0, 0]]
    # Seconds on the fastest model: 10, 1, 5.
    assert shortest_first(snapshot).alone.tolist() == [[0, 0], [0, 1], [1, 0]]


def test_a_job_in_place_stays_where_it_is():
    planner = FifoInPlace()
    first = snapshot_of(("slow", "fast"), np.array([1.0, 1.0]), np.ones((2, 2)), ids=np.array([0, 1]))
    assert planner(first).alone.tolist() == [[1, 0], [0, 1]]
    later = snapshot_of(("slow", "fast"), np.array([1.0, 1.0]), np.ones((2, 2)), ids=np.array([1, 2]))
    assert planner(later).alone.tolist() == [[0, 1], [1, 0]]


def test_pairs_are_used_where_they_help_and_not_where_they_hurt():
    throughputs = np.ones((2, 1))
    for together, best in ((0.9, 0.9), (0.4, 0.5)):
        pairs = Pairs(np.array([[0, 1]]), np.full((1, 1, 2), together))
        snapshot = snapshot_of(("a",), np.array([1.0]), throughputs, pairs=pairs)
        plan = max_min_sharing(snapshot)
        assert (plan.throughputs(snapshot) / worth_of(snapshot)).min() == pytest.approx(best, abs=1e-6)


def test_jobs_of_different_sizes_are_not_paired():
    pairs = Pairs(np.array([[0, 1]]), np.full((1, 1, 2), 1.0))
    snapshot = snapshot_of(("a",), np.array([2.0]), np.ones((2, 1)), gpus=np.array([1.0, 2.0]), pairs=pairs)
    assert max_min_sharing(snapshot).paired.max() == 0


def test_deadlines_come_first_where_they_can_be_met():
    """Both jobs want the fast model; the deadline of the one that gains less makes it run there all the same."""
    throughputs = np.array([[1.0, 4.0], [1.0, 3.0]])
    free = snapshot_of(("slow", "fast"), np.array([1.0, 1.0]), throughputs, steps_left=np.array([30.0, 30.0]))
    assert PLANNERS.get("cost").make()(free).throughputs(free) == pytest.approx([4, 1], abs=1e-4)
    bound = snapshot_of(
        ("slow", "fast"),
        np.array([1.0, 1.0]),
        throughputs,
        steps_left=np.array([30.0, 30.0]),
        deadline_seconds=np.array([np.inf, 10.0]),
    )
    assert PLANNERS.get("cost").make()(bound).throughputs(bound) == pytest.approx([1, 3], abs=1e-4)
