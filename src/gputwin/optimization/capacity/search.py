"""The size from which on a target is met: bracketing and bisection on the largest size that misses it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gputwin.optimization.capacity.evaluate import Evaluator, Point
from gputwin.optimization.capacity.scale import Counts

_OUT = 1.3
_RESOLUTION = 0.005
"""Sizes closer than this share are not told apart: the sample's luck is many times larger."""
_CHECKS_FOR_JOBS, _FEWEST_CHECKS, _MOST_CHECKS = 200_000, 5, 40
_MOST_POINTS = 80


@dataclass(frozen=True)
class Found:
    """The least size tried that meets the target with every larger size tried, and the largest that misses it."""

    meets: Point | None
    """None where even the largest size misses it."""
    misses: Point | None
    """None where even the smallest size meets it."""


def safe_size(
    evaluate: Evaluator,
    counts_of: Callable[[int], Counts],
    first: Sequence[int],
    smallest: int,
    largest: int,
    *,
    reach: float,
    progress: Callable[[str], None] = lambda step: None,
) -> Found:
    """Return the least size tried between two that meets the target together with every larger size tried.

    Waits need not fall with every node added (Graham's anomalies, 1969), so the search is for the largest size that
    misses the target: bracketed and bisected to half a percent, then looked for among larger sizes, close ones first, up
    to `reach` times the size found. One that misses moves the bracket there.
    """
    target = evaluate.setting.target
    tried: dict[int, Point] = {}

    def look(sizes: Sequence[int]) -> None:
        fresh = sorted({min(max(size, smallest), largest) for size in sizes} - tried.keys())
        progress("simulating " + ", ".join(f"{size:,}" for size in fresh) + " nodes")
        tried.update(zip(fresh, evaluate([counts_of(size) for size in fresh]), strict=True))

    look(first)
    while len(tried) < _MOST_POINTS:
        below, above = _ends({size: target.met(point.value) for size, point in tried.items()})
        if above is None:
            assert below is not None
            if below == largest:
                break
            look([math.ceil(below * _OUT), math.ceil(below * _OUT**2)])
        elif below is None and above > smallest:
            look([math.floor(above / _OUT**0.5), math.floor(above / _OUT)])
        elif below is not None and above - below > max(int(above * _RESOLUTION), 1):
            look(_between((below, tried[below]), (above, tried[above]), target.seconds))
        else:
            larger = larger_sizes(above, min(math.ceil(above * reach), largest), evaluate.setting.workload.size)
            if not set(larger) - tried.keys():
                break
            look(larger)
    below, above = _ends({size: target.met(point.value) for size, point in tried.items()})
    return Found(None if above is None else tried[above], None if below is None else tried[below])


def _ends(met: dict[int, bool]) -> tuple[int | None, int | None]:
    """Return the largest size that misses the target, and the least of those above it."""
    below = max((size for size in met if not met[size]), default=None)
    above = min((size for size in met if below is None or size > below), default=None)
    return below, above


def larger_sizes(size: int, top: int, jobs: int) -> list[int]:
    """Return sizes above this one up to the top, closer together near it; fewer where a simulation takes longer."""
    count = min(max(_CHECKS_FOR_JOBS // max(jobs, 1), _FEWEST_CHECKS), _MOST_CHECKS)
    return sorted({size + math.ceil((top - size) * (k / count) ** 2) for k in range(1, count + 1)} - {size})


def _between(below: tuple[int, Point], above: tuple[int, Point], seconds: float) -> list[int]:
    """Return two sizes strictly between the ends, around where the figure should cross the target."""
    low, high = below[0], above[0]
    width = high - low
    if width <= 3:
        return list(range(low + 1, high))
    worst, best = math.log1p(min(below[1].value, 1e12)), math.log1p(above[1].value)
    part = (worst - math.log1p(seconds)) / (worst - best) if worst > best else 0.5
    crossing = low + min(max(part, 0.1), 0.9) * width
    reach = max(width // 8, 1)
    start = min(max(math.floor(crossing - reach / 2), low + 1), high - 2)
    return [start, min(max(start + reach, start + 1), high - 1)]
