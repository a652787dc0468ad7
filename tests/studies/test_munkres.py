"""Matching by Munkres' steps: the least cost, and which matching where several have it."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from gputwin.studies.reproduce.munkres import match_by_munkres


@given(st.data())
def test_a_matching_has_the_least_cost(data):
    rows = data.draw(st.integers(1, 6))
    columns = data.draw(st.integers(rows, 9))
    values = st.integers(0, 5) if data.draw(st.booleans()) else st.floats(0, 1e6)
    cost = np.array(data.draw(st.lists(values, min_size=rows * columns, max_size=rows * columns)), float)
    cost = cost.reshape(rows, columns)
    row, column = match_by_munkres(cost)
    assert row.tolist() == list(range(rows))
    assert len(set(column.tolist())) == rows
    np.testing.assert_allclose(cost[row, column].sum(), cost[linear_sum_assignment(cost)].sum(), rtol=1e-9, atol=1e-6)


def test_of_equal_matchings_earlier_rows_get_earlier_columns():
    assert match_by_munkres(np.ones((3, 5)))[1].tolist() == [0, 1, 2]


def test_a_row_gives_way_where_that_is_cheaper():
    """By hand: row 0 takes column 0 at first; row 1 can only have it for 4 less, so row 0 moves for 1."""
    assert match_by_munkres(np.array([[0.0, 1.0], [0.0, 4.0]]))[1].tolist() == [1, 0]


def test_jobs_on_equal_gpus_are_matched_in_the_published_order():
    """Two equal GPUs, places from the end of their queues, jobs of 1, 2 and 3 s: the longest is last, and of the others,
    which may as well be swapped between the GPUs, the first waits on the first GPU."""
    seconds = np.array([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])
    cost = np.concatenate([seconds, 2 * seconds, 3 * seconds], axis=1)
    row, column = match_by_munkres(cost)
    assert cost[row, column].sum() == 7.0
    assert column.tolist() == [2, 1, 0]
