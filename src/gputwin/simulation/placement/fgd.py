"""Fragmentation gradient descent."""

from __future__ import annotations

import math

from gputwin.simulation.engine.compiled import compiled
from gputwin.simulation.engine.fit.devices import fullest
from gputwin.simulation.engine.fit.room import device_fits
from gputwin.simulation.engine.state.records import WHOLE, Knobs, Machines, Records, wide
from gputwin.simulation.engine.state.series import fragmentation
from gputwin.simulation.policy import placement

_fullest = compiled(fullest)


@compiled
def _points_with(
    machines: Machines, requests: Records, r: int, n: int, devices: int, before: float, knobs: Knobs
) -> int:
    """Return 0 to 100 whole points for how much fragmentation falls when the instance takes `devices`."""
    after = fragmentation(machines, knobs, n, devices, requests[r].gpu_milli, requests[r].cpu)
    return int(1.0 / (1.0 + math.exp(-(before - after) / 1000.0)) * 100.0)


@compiled
def _best(machines: Machines, requests: Records, r: int, n: int, knobs: Knobs) -> tuple[int, int]:
    """Return the most points the node can get and the devices that get them, the lowest index among equals."""
    before = fragmentation(machines, knobs, n, wide(0), wide(0), wide(0))
    if requests[r].gpu_count != 1 or requests[r].gpu_milli == WHOLE:
        devices = _fullest(machines, requests, r, n, knobs) if requests[r].gpu_count > 0 else 0
        return _points_with(machines, requests, r, n, devices, before, knobs), devices
    top, chosen = -1, 0
    for d in range(machines.nodes[n].gpu_count):
        if not device_fits(machines, requests, r, n, d):
            continue
        same = False
        for earlier in range(d):
            alike = machines.gpus[n, earlier].free == machines.gpus[n, d].free
            same = same or (alike and device_fits(machines, requests, r, n, earlier))
        if same:
            # A device with as much free was tried already and wins ties.
            continue
        points = _points_with(machines, requests, r, n, 1 << d, before, knobs)
        if points > top:
            top, chosen = points, 1 << d
    return top, chosen


def devices(machines: Machines, requests: Records, r: int, n: int, knobs: Knobs) -> int:
    """Return the device whose share, once taken, lowers fragmentation most; whole GPUs: the first free ones."""
    return _best(machines, requests, r, n, knobs)[1]


@placement(
    "fgd",
    "the node and GPU where the expected fragmentation grows least",
    source="Weng et al., Beware of Fragmentation, ATC'23, section 4",
    devices=devices,
    typical=True,
)
def score(machines: Machines, requests: Records, r: int, n: int, knobs: Knobs) -> float:
    """Return 100 × sigmoid of the fall of the node's expected fragmentation in GPUs, as whole points."""
    return float(_best(machines, requests, r, n, knobs)[0])
