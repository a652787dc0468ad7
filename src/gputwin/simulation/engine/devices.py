"""Which GPUs of a node an instance takes, for policies that do not choose themselves."""

from __future__ import annotations

from gputwin.simulation.engine.fit import device_fits
from gputwin.simulation.engine.state import Knobs, Machines, Records


def fullest(machines: Machines, requests: Records, r: int, n: int, knobs: Knobs) -> int:
    """Return the bit set of the devices with least free share that fit, the lowest index among equals."""
    chosen = 0
    for _ in range(requests[r].gpu_count):
        best = -1
        for d in range(machines.nodes[n].gpu_count):
            if not chosen >> d & 1 and device_fits(machines, requests, r, n, d):
                if best < 0 or machines.gpus[n, d].free < machines.gpus[n, best].free:
                    best = d
        chosen |= 1 << best
    return chosen


def emptiest(machines: Machines, requests: Records, r: int, n: int, knobs: Knobs) -> int:
    """Return the bit set of the devices with most free share, the lowest index among equals."""
    chosen = 0
    for _ in range(requests[r].gpu_count):
        best = -1
        for d in range(machines.nodes[n].gpu_count):
            if not chosen >> d & 1 and device_fits(machines, requests, r, n, d):
                if best < 0 or machines.gpus[n, d].free > machines.gpus[n, best].free:
                    best = d
        chosen |= 1 << best
    return chosen
