"""Least squares of a few step times, compiled: Levenberg and Marquardt's method within bounds, with exact derivatives.

A simulated job fits its step times again whenever it has seen a new placement or batch, thousands of times in a run.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from numba import njit

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

MOST_OVERLAP = 9.0
_ROUNDS = 200
_LONGEST = 1.0
"""Step of a value's logarithm in one round."""
_ENOUGH = 1e-8
"""Ends where a round lowers the sum of squares by less than this share of it."""


@njit(cache=True)
def _errors(seen: Floats, values: Floats, least: float, pulls: Floats, errors: Floats, slopes: Floats) -> float:
    """Fill in the errors and their derivatives by the logarithm of each value; return half the sum of squares.

    Columns of `seen`: nodes, GPUs, batch, logarithms of compute and of step seconds. Values: compute and compute per
    sample, synchronising across nodes and its growth, within a node and its growth, overlap.
    """
    a, b, overlap = values[0], values[1], values[6]
    gamma = 1.0 + overlap
    rows = seen.shape[0]
    weight = 1.0 / math.sqrt(rows)
    slopes[:] = 0.0
    for i in range(rows):
        nodes, gpus, batch = seen[i, 0], seen[i, 1], seen[i, 2]
        compute = a + b * batch
        more = max(gpus - 2.0, 0.0)
        first = 2 if nodes > 1 else 4 if gpus > 1 else -1
        sync = least
        if first >= 0:
            sync = values[first] + values[first + 1] * more
        log_compute, log_sync = math.log(compute), math.log(sync)
        top = max(log_compute, log_sync)
        powers = math.exp(gamma * (log_compute - top)) + math.exp(gamma * (log_sync - top))
        log_step = top + math.log(powers) / gamma
        share = math.exp(gamma * (log_compute - top)) / powers
        errors[2 * i] = weight * (log_compute - seen[i, 3])
        errors[2 * i + 1] = weight * (log_step - seen[i, 4])
        slopes[2 * i, 0] = weight * a / compute
        slopes[2 * i, 1] = weight * b * batch / compute
        slopes[2 * i + 1, 0] = weight * share * a / compute
        slopes[2 * i + 1, 1] = weight * share * b * batch / compute
        if first >= 0:
            slopes[2 * i + 1, first] = weight * (1.0 - share) * values[first] / sync
            slopes[2 * i + 1, first + 1] = weight * (1.0 - share) * values[first + 1] * more / sync
        mean = share * log_compute + (1.0 - share) * log_sync
        slopes[2 * i + 1, 6] = weight * overlap * (mean - log_step) / gamma
    n = 2 * rows
    errors[n] = pulls[0] * (gamma - 1.0)
    slopes[n, 6] = pulls[0] * overlap
    for k in range(2):
        first = 2 + 2 * k
        growth = pulls[1 + k] * values[first + 1] / values[first]
        errors[n + 1 + k] = growth
        slopes[n + 1 + k, first] = -growth
        slopes[n + 1 + k, first + 1] = growth
    return 0.5 * float((errors * errors).sum())


@njit(cache=True)
def fitted(seen: Floats, start: Floats, free: Bools, least: float, most: float, pulls: Floats) -> Floats:
    """Return the values, of which the free ones were moved from `start` so that the sum of squares is least."""
    rows = 2 * seen.shape[0] + 3
    errors, slopes = np.zeros(rows), np.zeros((rows, 7))
    tried_errors, tried_slopes = np.zeros(rows), np.zeros((rows, 7))
    logs = np.log(start)
    low, high = np.full(7, math.log(least)), np.full(7, math.log(most))
    high[6] = math.log(MOST_OVERLAP)
    cost = _errors(seen, start, least, pulls, errors, slopes)
    damping = 1e-3
    for _ in range(_ROUNDS):
        down = slopes.T @ errors
        moves = free.copy()
        for k in range(7):
            # What a bound holds back takes no part in this round.
            if (logs[k] <= low[k] and down[k] > 0.0) or (logs[k] >= high[k] and down[k] < 0.0):
                moves[k] = False
        which = np.flatnonzero(moves)
        if which.size == 0:
            break
        some = np.ascontiguousarray(slopes[:, which])
        curves = some.T @ some
        before = cost
        while damping < 1e12:
            matrix = curves.copy()
            for j in range(which.size):
                matrix[j, j] += damping * max(curves[j, j], 1e-9)
            step = np.linalg.solve(matrix, -down[which])
            tried = logs.copy()
            for j in range(which.size):
                k = which[j]
                # A long step lands where nothing depends on this value any more.
                moved = logs[k] + min(max(step[j], -_LONGEST), _LONGEST)
                tried[k] = min(max(moved, low[k]), high[k])
            found = _errors(seen, np.exp(tried), least, pulls, tried_errors, tried_slopes)
            if found < cost:
                logs, cost = tried, found
                errors[:], slopes[:] = tried_errors, tried_slopes
                damping = max(damping / 10.0, 1e-9)
                break
            damping *= 10.0
        if before - cost <= _ENOUGH * before:
            break
    values = start.copy()
    for k in range(7):
        if free[k]:
            values[k] = math.exp(logs[k])
    return values
