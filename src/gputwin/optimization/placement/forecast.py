"""The demand to place for a time ahead: each application's present instances times a quantile of how it has grown before."""

from __future__ import annotations

import math

import numpy as np

from gputwin.core.errors import UserError
from gputwin.core.units import HOUR
from gputwin.optimization.placement.demand import lives
from gputwin.traces.dataset import Trace

_LEAST_HOURS = 24


def growth_quantile(trace: Trace, at: float, ahead: float, quantile: float) -> dict[str, float]:
    """Return the factor per application: the quantile over past hours of instances `ahead` seconds later over those then.

    Only hours whose outcome was known at `at` are used. An application that has shrunk is not placed below its present
    size; one without a history keeps it.
    """
    if not 0 < quantile < 1:
        raise UserError(f"a quantile of {quantile:g} is none; give one between 0 and 1, as in 0.9")
    if not (math.isfinite(ahead) and ahead > 0):
        raise UserError(f"{ahead:g} s ahead is no time ahead; give a positive one")
    known = lives(trace)
    hours = np.arange(0.0, at - ahead + 1.0, HOUR)
    if len(hours) < _LEAST_HOURS:
        raise UserError(
            f"only {len(hours)} hours before {at:g} s have a known outcome; at least {_LEAST_HOURS} are needed"
        )
    factors: dict[str, float] = {}
    for (application,), rows in known.group_by("application", maintain_order=True):
        begin = np.sort(rows["begin"].to_numpy())
        end = np.sort(rows["end"].to_numpy())

        def alive(times: np.ndarray, begin: np.ndarray = begin, end: np.ndarray = end) -> np.ndarray:
            return np.searchsorted(begin, times, side="right") - np.searchsorted(end, times, side="right")

        then, later = alive(hours), alive(hours + ahead)
        there = then > 0
        if application is not None and there.sum() >= _LEAST_HOURS:
            ratio = later[there] / then[there]
            factors[str(application)] = max(float(np.quantile(ratio, quantile, method="higher")), 1.0)
    return factors
