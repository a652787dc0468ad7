"""Which GPUs of a node an instance takes, for policies that do not choose themselves."""

from __future__ import annotations

from gputwin.simulation.engine.fit import device_fits
from gputwin.simulation.engine.state import Knobs, Nodes, Requests


def fullest(nodes: Nodes, requests: Requests, r: int, n: int, knobs: Knobs) -> int:
    """Return the bit set of the devices with least free share that fit, the lowest index among equals."""
    chosen = 0
    for _ in range(requests.gpu_count[r]):
        best = -1
        for d in range(nodes.gpu_count[n]):
            if not chosen >> d & 1 and device_fits(nodes, requests, r, n, d):
                if best < 0 or nodes.gpu_free[n, d] < nodes.gpu_free[n, best]:
                    best = d
        chosen |= 1 << best
    return chosen


def emptiest(nodes: Nodes, requests: Requests, r: int, n: int, knobs: Knobs) -> int:
    """Return the bit set of the devices with most free share, the lowest index among equals."""
    chosen = 0
    for _ in range(requests.gpu_count[r]):
        best = -1
        for d in range(nodes.gpu_count[n]):
            if not chosen >> d & 1 and device_fits(nodes, requests, r, n, d):
                if best < 0 or nodes.gpu_free[n, d] > nodes.gpu_free[n, best]:
                    best = d
        chosen |= 1 << best
    return chosen
