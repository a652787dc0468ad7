"""Which GPUs of a node an instance takes, for policies that do not choose themselves."""

from __future__ import annotations

from gputwin.simulation.engine.fit.room import device_fits
from gputwin.simulation.engine.state.records import WHOLE, Knobs, Machines, Records


def fullest(machines: Machines, requests: Records, r: int, n: int, knobs: Knobs) -> int:
    """Return the bit set of the devices with least free share that fit, the lowest index among equals.

    Instances that share several devices take the emptiest: only so do as many fit as there is room for.
    """
    emptiest_first = requests[r].gpu_count > 1 and requests[r].gpu_milli < WHOLE
    chosen = 0
    for _ in range(requests[r].gpu_count):
        best = -1
        for d in range(machines.nodes[n].gpu_count):
            if chosen >> d & 1 or not device_fits(machines, requests, r, n, d):
                continue
            free = machines.gpus[n, d].free
            if best < 0 or (
                free > machines.gpus[n, best].free if emptiest_first else free < machines.gpus[n, best].free
            ):
                best = d
        if best < 0:
            return 0
        chosen |= 1 << best
    return chosen


def emptiest(machines: Machines, requests: Records, r: int, n: int, knobs: Knobs) -> int:
    """Return the bit set of the devices with most free share, the lowest index among equals."""
    chosen = 0
    for _ in range(requests[r].gpu_count):
        best = -1
        for d in range(machines.nodes[n].gpu_count):
            if chosen >> d & 1 or not device_fits(machines, requests, r, n, d):
                continue
            if best < 0 or machines.gpus[n, d].free > machines.gpus[n, best].free:
                best = d
        if best < 0:
            return 0
        chosen |= 1 << best
    return chosen
