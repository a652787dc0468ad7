"""Packings rounded from the linear program: columns are fixed step by step, and the rest solved again."""

from __future__ import annotations

from collections.abc import Sequence
from time import process_time

import numpy as np

from gputwin.optimization.placement.columns import Generated, generate, residual
from gputwin.optimization.placement.heuristics import decreasing, weights_of
from gputwin.optimization.placement.master import Column
from gputwin.optimization.placement.pricing import Knapsack
from gputwin.optimization.placement.problem import Packing, Problem, packing_of


def dive(
    problem: Problem, start: Generated, *, deadline: float, thorough: bool = False, seed: int = 0
) -> tuple[Packing | None, tuple[Column, ...]]:
    """Return the best packing found by fixing columns of the linear program step by step, and all columns met.

    `thorough` prices by exact tables where the problem has them, however dear they are.
    Each time the rest is solved again, and also packed in one pass; no packing where no step led to a complete one.
    """
    if problem.rack_limits:
        return None, start.columns
    chosen: list[Column] = []
    met = dict.fromkeys(start.columns)
    best: Packing | None = None
    generated, left = start, problem
    while left.counts.sum() and process_time() < deadline:
        fixed = _fix(left, generated)
        if not fixed:
            break
        chosen += fixed
        left = residual(problem, chosen)
        if left.counts.sum() < 400:
            best = _better(problem, best, _completed(problem, chosen, left, deadline))
        if not left.counts.sum():
            break
        known = {c for c in (_trim(left, column) for column in generated.columns) if c[1]}
        knapsacks = [Knapsack(left, t) for t in range(len(left.types))]
        exact = all(k.by_table and (thorough or not k.is_wide) for k in knapsacks)
        generated = generate(left, sorted(known), deadline=deadline, exact=exact, seed=seed)
        met |= dict.fromkeys(generated.columns)
    return _better(problem, best, _completed(problem, chosen, left, deadline)), tuple(met)


def _fix(problem: Problem, generated: Generated) -> list[Column]:
    """Return the columns to fix: the whole parts, or the one nearest to one more node where there are none."""
    whole = np.floor(generated.nodes + 1e-6).astype(int)
    if whole.any():
        return [c for c, n in zip(generated.columns, whole.tolist(), strict=True) for _ in range(n)]
    if not generated.nodes.size or generated.nodes.max() < 1e-6:
        return []
    weights = weights_of(problem)
    fill = [
        float(sum((problem.sizes[c] * n) @ weights for c, n in pattern)) / max(problem.types[t].cost, 1)
        for t, pattern in generated.columns
    ]
    score = generated.nodes + 1e-3 * np.array(fill) / max(max(fill), 1e-9)
    return [generated.columns[int(np.argmax(score))]]


def _trim(problem: Problem, column: Column) -> Column:
    t, pattern = column
    left = problem.counts.copy()
    kept = []
    for c, n in pattern:
        g = problem.group_of[c]
        n = min(n, int(left[g]))
        if n:
            left[g] -= n
            kept.append((c, n))
    return t, tuple(kept)


def _completed(problem: Problem, chosen: Sequence[Column], left: Problem, deadline: float) -> Packing:
    """Return the packing of the chosen nodes and, in one pass, of what is left."""
    packed = (decreasing(left, rule, deadline=deadline) for rule in ("best-fit", "dot-product"))
    rest = min(packed, key=lambda p: _rank(left, p))
    nodes = [(u.node_type, u.pattern) for u in rest.uses for _ in range(u.nodes)]
    return packing_of(problem, [*chosen, *nodes])


def _rank(problem: Problem, packing: Packing) -> tuple[bool, int]:
    return not packing.is_complete(problem), packing.objective(problem)


def _better(problem: Problem, one: Packing | None, other: Packing | None) -> Packing | None:
    found = [p for p in (one, other) if p is not None and p.is_complete(problem)]
    return min(found, key=lambda p: p.objective(problem), default=None)
