"""Local search to finish a packing: empty nodes into the room of others, place what is missing, rebuild a few nodes."""

from __future__ import annotations

from time import process_time

import numpy as np

from gputwin.optimization.placement.heuristics import Nodes, fill
from gputwin.optimization.placement.problem import Packing, Problem

_ROUNDS = 60
_REBUILT = 6
"""Nodes that are emptied and filled again in one round."""


def improve(problem: Problem, packing: Packing, *, deadline: float, seed: int = 0, rounds: int = _ROUNDS) -> Packing:
    """Return a packing that is no worse, after some rounds of taking a few nodes apart."""
    rng = np.random.default_rng(seed)
    best = packing
    for _ in range(rounds):
        if process_time() > deadline:
            break
        fresh = _rebuilt(problem, best, rng, deadline)
        if _rank(problem, fresh) <= _rank(problem, best):
            best = fresh
    return best


def _rebuilt(problem: Problem, packing: Packing, rng: np.random.Generator, deadline: float) -> Packing:
    """Return the packing after its emptiest nodes and some others were emptied and their instances placed again."""
    rows = [(u.node_type, u.pattern) for u in packing.uses for _ in range(u.nodes)]
    if not rows:
        return packing
    filled = np.array([_filled(problem, t, pattern) for t, pattern in rows])
    order = np.argsort(filled + rng.random(len(rows)) * 0.1, kind="stable")
    taken = set(order[: rng.integers(1, _REBUILT + 1)].tolist())
    taken |= set(rng.integers(0, len(rows), rng.integers(0, _REBUILT)).tolist())
    nodes = Nodes(problem)
    for i, (t, pattern) in enumerate(rows):
        if i not in taken:
            row = nodes.open(t)
            assert row is not None
            for choice, n in pattern:
                for _ in range(n):
                    nodes.put(row, choice)
    left = np.array(nodes.packing().missing, np.int64)
    return fill(problem, nodes, left, "best-fit", deadline=deadline).packing()


def _filled(problem: Problem, node_type: int, pattern: tuple[tuple[int, int], ...]) -> float:
    """Return the largest share of a resource that the pattern takes."""
    capacity = np.maximum(problem.capacities[node_type], 1)
    return float((sum(problem.sizes[c] * n for c, n in pattern) / capacity).max())


def _rank(problem: Problem, packing: Packing) -> tuple[bool, int, float]:
    """Return what to make small: missing, cost, and then an even fill (a few nearly empty nodes are easier to empty)."""
    fills = sum(u.nodes * _filled(problem, u.node_type, u.pattern) ** 2 for u in packing.uses)
    return not packing.is_complete(problem), packing.objective(problem), -fills
