"""Which GPUs of a node an instance takes, for policies that do not choose themselves."""

from __future__ import annotations

from gputwin.simulation.engine.compiled import inlined
from gputwin.simulation.engine.fit.room import device_fits
from gputwin.simulation.engine.state.records import START, WHOLE, Knobs, Machines, Records


def fullest(machines: Machines, requests: Records, r: int, n: int, knobs: Knobs) -> int:
    """Return the bit set of the devices with least free share that fit, the lowest index among equals.

    Instances that share several devices take the emptiest: only so do as many fit as there is room for.
    """
    return _fullest(machines, requests, r, n)


@inlined
def _fullest(machines: Machines, requests: Records, r: int, n: int) -> int:
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


def mig_slices(machines: Machines, requests: Records, r: int, n: int, knobs: Knobs) -> int:
    """Return the devices, and the memory slice at which the MIG instance begins: the fullest device, its last free place.

    So the beginning of a device, where the largest instances may be, stays free as long as possible. Whoever asks for
    several devices has whole ones.
    """
    request, chosen = requests[r], _fullest(machines, requests, r, n)
    if chosen == 0 or request.gpu_milli == WHOLE:
        return chosen
    d = 0
    while not chosen >> d & 1:
        d += 1
    start = 7
    while not (
        request.starts >> start & 1
        and machines.gpus[n, d].memory_free & (request.gpu_memory << start) == request.gpu_memory << start
    ):
        start -= 1
    return chosen | start << START
