"""Whether one node of a type may hold a pattern: capacity, per-node limits, anti-affinity, shares of single GPUs."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from itertools import combinations

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
    by_shape: dict[tuple[int, int], list[int]] = {}
    for choice, n in pattern:
        group = problem.groups[problem.group_of[choice]]
        if group.gpus:
            by_shape.setdefault((group.gpu_milli, group.gpus), []).extend([choice] * n)
    wanted = tuple((milli, gpus, len(by_shape[milli, gpus])) for milli, gpus in sorted(by_shape, reverse=True))
    found = assign_devices(problem.types[node_type].gpus, wanted)
    if found is None:
        return None
    choices = [choice for milli, gpus, _ in wanted for choice in by_shape[milli, gpus]]
    return list(zip(choices, found, strict=True))


@lru_cache(maxsize=100_000)
def assign_devices(devices: int, wanted: tuple[tuple[int, int, int], ...]) -> tuple[tuple[int, ...], ...] | None:
    """Return the devices of each instance of `wanted`, (share, GPUs, instances) by falling share; None: they do not fit."""
    single = [(milli, gpus) for milli, gpus, n in wanted for _ in range(n)]
    after = [0] * (len(single) + 1)
    for i in range(len(single) - 1, -1, -1):
        after[i] = after[i + 1] + single[i][0] * single[i][1]
    search = _Assignment(single, after, [WHOLE_GPU_MILLI] * devices)
    return tuple(search.done) if search.goes_on(0) else None


class _Assignment:
    """Depth first over instances, the fullest devices that fit first; what was found not to fit is not tried again."""

    def __init__(self, wanted: list[tuple[int, int]], after: list[int], free: list[int]) -> None:
        self.wanted, self.after, self.free = wanted, after, free
        self.done: list[tuple[int, ...]] = []
        self.failed: set[tuple[int, tuple[int, ...]]] = set()
        self.smallest = wanted[-1][0] if wanted else 0
        self.steps = _MOST_STEPS

    def goes_on(self, at: int) -> bool:
        """Return whether the instances from here on fit, `done` completed."""
        if at == len(self.wanted):
            return True
        # Devices are alike, so only how full they are matters; no instance fits into less than the smallest share.
        usable = tuple(sorted(f for f in self.free if f >= self.smallest))
        if sum(usable) < self.after[at] or (at, usable) in self.failed or self.steps <= 0:
            return False
        self.steps -= 1
        milli, count = self.wanted[at]
        able = sorted((d for d, f in enumerate(self.free) if f >= milli), key=lambda d: (self.free[d], d))
        tried = set()
        for option in combinations(able, count):
            levels = tuple(self.free[d] for d in option)
            if levels in tried:
                continue
            tried.add(levels)
            for d in option:
                self.free[d] -= milli
            self.done.append(option)
            if self.goes_on(at + 1):
                return True
            self.done.pop()
            for d in option:
                self.free[d] += milli
        self.failed.add((at, usable))
        return False
