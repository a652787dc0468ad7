"""A lower bound at no cost: each resource alone, and each application's per-node limit alone."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from gputwin.optimization.placement.columns import round_up
from gputwin.optimization.placement.problem import Problem


def simple_bound(problem: Problem) -> int:
    """Return a cost that no packing of what must be placed can be below."""
    must = np.array([g.missing_cost is None for g in problem.groups]) & (problem.counts > 0)
    if not must.any() or not problem.types:
        return 0
    best = Fraction(0)
    for r in range(len(problem.resources)):
        least = [min(request[r] for request in g.requests) for g in problem.groups]
        needed = sum(int(n) * a for n, a, m in zip(problem.counts, least, must, strict=True) if m)
        if needed and all(t.capacity[r] for t in problem.types):
            best = max(best, needed * min(Fraction(t.cost, t.capacity[r]) for t in problem.types))
    cheapest = min(t.cost for t in problem.types)
    for g in np.flatnonzero(must).tolist():
        most = int(problem.most[:, problem.group_of == g].max())
        if most:
            best = max(best, Fraction(math.ceil(problem.counts[g] / most) * cheapest))
    return round_up(problem, best)
