"""The Gittins index of a job by its service so far, where the distribution of services is known.

G(a) = max over d of P(S - a <= d | S > a) / E[min(S - a, d) | S > a] (Gittins 1979). Serving the highest index first gives
the lowest mean completion time of all rules that do not know the services themselves (M/G/1).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
_SAMPLE = 20_000
"""Services that stand for the distribution; of more, so many evenly spaced ones in order of size."""


def gittins_index(services: Floats, attained: float, ends: Floats | None = None) -> float:
    """Return the index at this service so far, per unit of service; 0 where nobody has a longer one.

    `services` are in order of size, all equally likely. Who goes on may be stopped when its service reaches one of
    `ends`, and at any service where none are given: the best is where somebody ends.
    """
    left = services[np.searchsorted(services, attained, "right") :] - attained
    if left.size == 0:
        return 0.0
    more = left if ends is None else np.append(ends[ends > attained] - attained, left[-1])
    ended = np.searchsorted(left, more, "right")
    served = np.append(0.0, np.cumsum(left))[ended] + more * (left.size - ended)
    return float((ended / served).max())


def limits_of(services: Floats, steps: int, least: float = 0.0) -> tuple[float, float]:
    """Return the first of `steps` - 1 limits of service, and the ratio of one to that before.

    They go from the smallest service, or `least` if that is more, to the largest: nobody reaches the last.
    """
    largest = float(services[-1])
    smallest = min(max(float(services[0]), least), largest)
    return smallest, (largest / smallest) ** (1.0 / max(steps - 1, 1))


def service_levels(services: Floats, steps: int, least: float = 0.0) -> Floats:
    """Return the first limit, the ratio of limits, and the level of each step of service: 0 has the highest index.

    Step 0 is below the first limit. Steps of the same index have the same level. Whoever runs is stopped at limits only, so
    that the index of a step is the best over those to come.
    """
    known = np.sort(services[np.isfinite(services) & (services > 0)])
    if known.size == 0:
        return np.array([1.0, 1.0, 0.0])
    if known.size > _SAMPLE:
        known = known[np.linspace(0, known.size - 1, _SAMPLE).round().astype(np.int64)]
    first, factor = limits_of(known, steps, least)
    # A limit that is a service is reached by who has it, whatever rounding says.
    limits = np.array([first * factor**k * (1.0 + 1e-12) for k in range(steps - 1)], np.float64)
    index = np.array([gittins_index(known, a, limits) for a in (0.0, *limits)])
    levels = np.searchsorted(_distinct(-index), -index * (1.0 - 1e-9), "right") - 1.0
    return np.array([first, factor, *levels])


def _distinct(values: Floats) -> Floats:
    """Return the values in order of size, of those within rounding only the first."""
    ordered = np.sort(values)
    apart = np.append(True, np.diff(ordered) > 1e-9 * np.abs(ordered[1:]))
    return np.asarray(ordered[apart], np.float64)
