"""Measures of fairness over time, by hand."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from gputwin.simulation.fairness.measures import jain, jain_over_time, max_min, share_error, tenant_series

JOBS = pl.DataFrame(
    {
        "tenant": ["a", "a", "b"],
        "gpu_milli": [2000, 2000, 4000],
        "submit_time": [0.0, 0.0, 0.0],
        "end_time": [10.0, 10.0, 20.0],
        "outcome": ["finished"] * 3,
    }
)
SEGMENTS = pl.DataFrame({"job": [0, 1, 2], "start_time": [0.0, 0.0, 10.0], "end_time": [10.0, 10.0, 20.0]})


def test_what_tenants_hold_and_want() -> None:
    series = tenant_series(JOBS, SEGMENTS, np.array([0.0, 9.0, 10.0, 20.0]))
    assert series.tenants == ("a", "b")
    assert series.held.tolist() == [[4, 0], [4, 0], [0, 4], [0, 0]]
    assert series.wanted.tolist() == [[4, 4], [4, 4], [0, 4], [0, 0]]
    assert series.frame().filter(pl.col("time") == 9.0)["gpus_held"].to_list() == [4.0, 0.0]


def test_half_of_what_is_held_is_in_the_wrong_hands_while_one_of_two_has_all() -> None:
    series = tenant_series(JOBS, SEGMENTS, np.array([5.0, 15.0, 25.0]))
    assert share_error(series).tolist() == [0.5, 0.0, 0.0]
    assert jain_over_time(series).tolist() == [0.5, 1.0, 1.0]
    # With three times the weight, a is due three of four GPUs.
    assert share_error(series, {"a": 3.0}).tolist() == [0.25, 0.0, 0.0]


def test_max_min_gives_what_small_demands_leave_to_the_others() -> None:
    ones = np.ones(3)
    assert max_min(9.0, np.array([1.0, 10.0, 10.0]), ones).tolist() == [1.0, 4.0, 4.0]
    assert max_min(9.0, np.array([10.0, 10.0, 10.0]), np.array([1.0, 2.0, 6.0])).tolist() == [1.0, 2.0, 6.0]
    assert max_min(4.0, np.array([0.0, 1.0, 1.0]), ones).tolist() == [0.0, 1.0, 1.0]


def test_jain_is_one_over_n_if_one_has_all() -> None:
    assert jain(np.array([3.0, 0.0, 0.0])) == pytest.approx(1 / 3)
    assert jain(np.array([2.0, 2.0])) == 1.0
