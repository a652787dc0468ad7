"""The optimum of tiny placement problems by trying everything, with rules checked by the validator alone."""

from __future__ import annotations

from functools import cache
from itertools import product

from gputwin.optimization.placement.problem import Packing, Problem, Use
from tests.optimization.placement.validator import violations


def optimum(problem: Problem) -> int | None:
    """Return the least objective of any packing; None where there is none. Racks are not covered."""
    patterns = [(t, held) for t in range(len(problem.types)) for held in _patterns(problem, t)]
    supply = tuple(10**6 if t.supply is None else t.supply for t in problem.types)

    @cache
    def least(left: tuple[int, ...], nodes: tuple[int, ...]) -> float:
        """Return the least cost of what is left; each step fills one node or gives the rest up."""
        best = 0.0
        for group, n in zip(problem.groups, left, strict=True):
            if n:
                best += float("inf") if group.missing_cost is None else group.missing_cost * n
        first = next((g for g, n in enumerate(left) if n), None)
        if first is None:
            return 0.0
        for t, held in patterns:
            if nodes[t] and any(h and n for h, n in zip(held, left, strict=True)):
                rest = tuple(n - h for n, h in zip(left, held, strict=True))
                if min(rest) >= 0:
                    fewer = tuple(n - (i == t) for i, n in enumerate(nodes))
                    best = min(best, problem.types[t].cost + least(rest, fewer))
        return best

    result = least(tuple(g.count for g in problem.groups), supply)
    return None if result == float("inf") else int(result)


def _patterns(problem: Problem, node_type: int) -> set[tuple[int, ...]]:
    """Return all that one node may hold, as instances per group."""
    found = set()
    ranges = [range(problem.groups[g].count + 1) for g, _ in problem.choices]
    for counts in product(*ranges):
        held = [0] * len(problem.groups)
        for (g, _), n in zip(problem.choices, counts, strict=True):
            held[g] += n
        if not any(held) or any(h > group.count for h, group in zip(held, problem.groups, strict=True)):
            continue
        pattern = tuple((c, n) for c, n in enumerate(counts) if n)
        missing = tuple(group.count - h for group, h in zip(problem.groups, held, strict=True))
        broken = violations(problem, Packing((Use(node_type, pattern, 1),), missing))
        if all("must be placed" in b or "nodes of" in b for b in broken):
            found.add(tuple(held))
    return found
