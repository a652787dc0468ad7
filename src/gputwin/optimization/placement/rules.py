"""Whether one node of a type may hold a pattern: capacity, per-node limits, anti-affinity, shares of single GPUs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from gputwin.core.units import WHOLE_GPU_MILLI
from gputwin.optimization.placement.problem import Pattern, Problem

_MOST_STEPS = 20_000


def fits(problem: Problem, node_type: int, pattern: Pattern) -> bool:
    """Return whether a node of the type may hold the pattern."""
    kind = problem.types[node_type]
    taken = [0] * len(problem.resources)
    held: Counter[str] = Counter()
    for choice, n in pattern:
        group = problem.groups[problem.group_of[choice]]
        if group.node_types is not None and kind.name not in group.node_types:
            return False
        held[group.owner] += n
        for r, amount in enumerate(problem.sizes[choice].tolist()):
            taken[r] += amount * n
    if any(t > c for t, c in zip(taken, kind.capacity, strict=True)):
        return False
    for choice, n in pattern:
        group = problem.groups[problem.group_of[choice]]
        if n and group.max_per_node is not None and held[group.owner] > group.max_per_node:
            return False
    if any(all(held[a] for a in pair) for pair in problem.conflicts):
        return False
    return not problem.has_shares or devices_of(problem, node_type, pattern) is not None


def devices_of(problem: Problem, node_type: int, pattern: Pattern) -> list[tuple[int, tuple[int, ...]]] | None:
    """Return (choice, its devices) of each instance of the pattern; None where shares do not fit on single devices."""
    wanted = []
    for choice, n in pattern:
        group = problem.groups[problem.group_of[choice]]
        if group.gpus:
            wanted += [(choice, group.gpus, group.gpu_milli)] * n
    wanted.sort(key=lambda w: (-w[2], -w[1], w[0]))
    free = [WHOLE_GPU_MILLI] * problem.types[node_type].gpus
    found = _assign(wanted, free, 0, [], [_MOST_STEPS])
    return found


def _assign(
    wanted: Sequence[tuple[int, int, int]],
    free: list[int],
    at: int,
    done: list[tuple[int, tuple[int, ...]]],
    steps: list[int],
) -> list[tuple[int, tuple[int, ...]]] | None:
    """Return a full assignment by depth-first search, the fullest devices that fit first."""
    if at == len(wanted):
        return list(done)
    steps[0] -= 1
    if steps[0] < 0:
        return None
    choice, count, milli = wanted[at]
    order = sorted((d for d in range(len(free)) if free[d] >= milli), key=lambda d: (free[d], d))
    if len(order) < count:
        return None
    # Several devices: the fullest that fit, as one option; one device: each different level of use is an option.
    options = [tuple(order[:count])] if count > 1 else [(d,) for d in {free[d]: d for d in reversed(order)}.values()]
    options.sort(key=lambda o: free[o[0]])
    for option in options:
        for d in option:
            free[d] -= milli
        done.append((choice, option))
        found = _assign(wanted, free, at + 1, done, steps)
        if found is not None:
            return found
        done.pop()
        for d in option:
            free[d] += milli
    return None
