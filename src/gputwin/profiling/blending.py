"""Distributions updated by the outcomes of jobs alike: a Dirichlet process around what was expected of them.

Ferguson, Annals of Statistics 1973: with n outcomes seen, the expected distribution is the prior's, worth `strength`
outcomes, mixed with theirs.
"""

from __future__ import annotations

import numba

from gputwin.profiling.distribution import Mass
from gputwin.profiling.jobs import Floats, Ints
from gputwin.profiling.memory import OutcomesByKey, known_until

MOST = 64
"""Outcomes looked at, the latest ones."""


def blend(
    mass: Mass,
    outcomes: OutcomesByKey,
    bins: Ints,
    codes: Ints,
    arrival: Floats,
    *,
    strength: float,
    most: int = MOST,
    fading: float = 1.0,
) -> None:
    """Mix into each row of `mass`, in place, the outcomes of its key known at arrival; older ones fade.

    `bins` are the outcomes' values on the grid.
    """
    _blend(mass, outcomes.first, outcomes.known_from, bins, codes, arrival, strength, most, fading)


@numba.njit(cache=True)
def _blend(
    mass: Mass,
    first: Ints,
    known_from: Floats,
    bins: Ints,
    codes: Ints,
    arrival: Floats,
    strength: float,
    most: int,
    fading: float,
) -> None:  # pragma: no cover - compiled
    for i in range(codes.size):
        if codes[i] < 0:
            continue
        begin = first[codes[i]]
        end = known_until(first, known_from, codes[i], arrival[i])
        begin = max(begin, end - most)
        if begin == end:
            continue
        total, weight = strength, 1.0
        for _ in range(begin, end):
            total += weight
            weight *= fading
        for b in range(mass.shape[1]):
            mass[i, b] *= strength / total
        weight = 1.0
        for k in range(end - 1, begin - 1, -1):
            mass[i, bins[k]] += weight / total
            weight *= fading
