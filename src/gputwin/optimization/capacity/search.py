"""The least capacity that meets a target, by bracketing and bisection on simulated values."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from gputwin.optimization.capacity.evaluate import Evaluator, Point
from gputwin.optimization.capacity.scale import Counts

_STEPS_OUT = 9
_OUT = 1.3


@dataclass(frozen=True)
class Found:
    """The least size that meets the target, the one below it that misses it, and how the search ended."""

    meets: Point | None
    misses: Point | None
    """None where even the smallest size meets the target."""


def least(
    evaluate: Evaluator,
    counts_of: Callable[[int], Counts],
    guess: int,
    smallest: int,
    largest: int,
    *,
    also: int | None = None,
    progress: Callable[[str], None] = lambda step: None,
) -> Found:
    """Return the least size between two whose point meets the target while the size below misses it.

    Two sizes are simulated at a time. Once one that meets and one that misses are known, the next two lie around where
    their values, drawn as a line over the logarithm, cross the target; when the ends are neighbours, that is the answer.
    Waits need not fall with every node added (Graham's anomalies, 1969): the answer is a size that meets the target with
    a neighbour that does not, the one the bracket led to.
    """
    target = evaluate.setting.target

    def points(sizes: list[int]) -> list[tuple[int, Point]]:
        sizes = sorted({min(max(size, smallest), largest) for size in sizes})
        progress("simulating " + " and ".join(f"{size:,}" for size in sizes) + " nodes")
        return list(zip(sizes, evaluate([counts_of(size) for size in sizes]), strict=True))

    below: tuple[int, Point] | None = None
    above: tuple[int, Point] | None = None

    def note(found: list[tuple[int, Point]]) -> None:
        nonlocal below, above
        for size, point in found:
            if target.met(point.value):
                above = (size, point) if above is None or size < above[0] else above
        for size, point in found:
            if not target.met(point.value) and (above is None or size < above[0]):
                below = (size, point) if below is None or size > below[0] else below

    note(points([guess, guess if also is None else also]))
    for _ in range(_STEPS_OUT):
        if above is None and below is not None and below[0] < largest:
            note(points([math.ceil(below[0] * _OUT), math.ceil(below[0] * _OUT**2)]))
        elif below is None and above is not None and above[0] > smallest:
            note(points([math.floor(above[0] / _OUT**0.5), math.floor(above[0] / _OUT)]))
        else:
            break
    if above is None or below is None:
        return Found(None if above is None else above[1], None if below is None else below[1])
    while above[0] - below[0] > 1:
        note(points(_between(below, above, target.seconds)))
    return Found(above[1], below[1])


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
    first = min(max(math.floor(crossing - reach / 2), low + 1), high - 2)
    return [first, min(max(first + reach, first + 1), high - 1)]
