"""Memory bandwidth kept for jobs of high priority: what they keep of their speed, their neighbours lose.

A pair shares the bandwidth of a device. Where a job of high priority would run beside one of low priority at less than a
part g of its speed alone, the other is throttled until it does: what the first gains in speed, the other loses, down to a
twentieth of its speed. Pairs of equal priority stay as measured.
"""

from __future__ import annotations

import numpy as np

from gputwin.simulation.engine.state.records import Floats

LEAST = 0.05
"""Nobody is throttled below this part of its speed alone."""


def with_reservation(excess: Floats, kept: float) -> Floats:
    """Return the table of pairs [model, kind, neighbour] for kinds 2k (low priority) and 2k + 1 (high).

    `excess` is the slowdown by a neighbour, less 1; `kept` the part of its speed that high priority keeps at least.
    """
    speed = 1.0 / (1.0 + excess)
    high = np.maximum(speed, kept)
    gain = np.swapaxes(high - speed, 1, 2)
    low = np.maximum(speed - gain, np.minimum(speed, LEAST))
    doubled = np.repeat(np.repeat(speed, 2, axis=1), 2, axis=2)
    doubled[:, 1::2, 0::2] = high
    doubled[:, 0::2, 1::2] = low
    return np.ascontiguousarray(1.0 / doubled - 1.0)
