"""Products of vectors and small matrices that are the same to the last bit on every processor.

Libraries of linear algebra choose the order of their sums by processor and by number of threads, and which of many optimal
plans a method arrives at depends on the last bits. These use additions and multiplications in an order of their own.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def dot(a: Floats, b: Floats) -> float:
    """Return the scalar product."""
    return float((a * b).sum())


def weighted_rows(rows: Floats, weights: Floats) -> Floats:
    """Return the sum of the rows, each times its weight."""
    summed: Floats = (rows * weights[:, None]).sum(axis=0)
    return summed


def crossed(a: Floats, b: Floats) -> Floats:
    """Return the product of the transposed `a` with `b`, both of many rows and few columns."""
    return np.stack([weighted_rows(b, column) for column in a.T])


def solve_small(matrix: Floats, right: Floats) -> Floats:
    """Return the solution of a few equations by Gaussian elimination with row pivoting; not a number where singular."""
    rows = np.concatenate([matrix, right[:, None]], axis=1)
    size = len(right)
    for k in range(size):
        pivot = k + int(np.abs(rows[k:, k]).argmax())
        rows[[k, pivot]] = rows[[pivot, k]]
        rows[k] = rows[k] / rows[k, k]
        below = rows[k + 1 :, k : k + 1] * rows[k]
        rows[k + 1 :] -= below
    solution = rows[:, size].copy()
    for k in range(size - 2, -1, -1):
        solution[k] -= dot(rows[k, k + 1 : size], solution[k + 1 :])
    return solution
