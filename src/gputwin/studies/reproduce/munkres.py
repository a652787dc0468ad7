"""Least-cost matching by Munkres' steps, which decide between matchings of equal cost.

Munkres, Algorithms for the Assignment and Transportation Problems, J. SIAM 5(1), 1957. In AlloX's matrix all GPUs of a model
have the same costs, so many matchings are optimal, and which one a method returns decides which jobs start. Gavel's figures
were printed with these steps (SciPy's method before its version 1.4, of December 2019); later SciPy returns other optima.
"""

from __future__ import annotations

import numpy as np

from gputwin.simulation.planning.snapshot import Floats, Ints


def match_by_munkres(cost: Floats) -> tuple[Ints, Ints]:
    """Return rows and their columns of a matching with the least sum of cost; at least as many columns as rows."""
    steps = _Steps(cost)
    while (steps.column_of < 0).any():
        steps.match_one_more()
    return np.arange(len(cost)), steps.column_of


class _Steps:
    """Costs less what rows and columns must pay; matched pairs cost nothing. Zeros are looked for row by row."""

    def __init__(self, cost: Floats) -> None:
        self.rest = cost - cost.min(axis=1)[:, None]
        rows, columns = cost.shape
        self.column_of: Ints = np.full(rows, -1)
        self.row_of: Ints = np.full(columns, -1)
        for row, column in np.argwhere(self.rest == 0.0):
            if self.column_of[row] < 0 and self.row_of[column] < 0:
                self.column_of[row], self.row_of[column] = column, row

    def match_one_more(self) -> None:
        """Match one row more, re-matching others where that is cheaper."""
        open_rows = np.ones(len(self.column_of), bool)
        open_columns = self.row_of < 0
        candidate: Ints = np.full(len(self.column_of), -1)
        while True:
            free = (self.rest == 0.0) & open_rows[:, None] & open_columns
            row, column = divmod(int(free.argmax()), len(open_columns))
            if not free[row, column]:
                self._pay(open_rows, open_columns)
                continue
            candidate[row] = column
            if self.column_of[row] < 0:
                self._swap(row, candidate)
                return
            open_rows[row] = False
            open_columns[self.column_of[row]] = True

    def _pay(self, open_rows: np.ndarray, open_columns: np.ndarray) -> None:
        """Make the cheapest open place free: open columns cost less by as much, closed rows more."""
        least = self.rest[open_rows][:, open_columns].min()
        self.rest[~open_rows] += least
        self.rest[:, open_columns] -= least

    def _swap(self, row: int, candidate: Ints) -> None:
        """Give the row its candidate column, whoever had that its own candidate, and so on."""
        while row >= 0:
            column = int(candidate[row])
            before = int(self.row_of[column])
            self.column_of[row], self.row_of[column] = column, row
            row = before
