"""Fragmentation gradient descent."""

from __future__ import annotations

import math

from gputwin.simulation.engine.compiled import compiled

from gputwin.simulation.engine.devices import fullest
from gputwin.simulation.engine.fit import device_fits
from gputwin.simulation.engine.series import fragmentation
from gputwin.simulation.engine.state import WHOLE, Knobs, Nodes, Requests
from gputwin.simulation.policy import placement

_fullest = compiled(fullest)


@compiled
def _points_with(nodes: Nodes, requests: Requests, r: int, n: int, devices: int, before: float, knobs: Knobs) -> int:
    """Return 0 to 100 whole points for how much fragmentation falls when the instance takes `devices`."""
    milli = requests.gpu_milli[r]
    taken = milli * requests.gpu_count[r]
    nodes.cpu_free[n] -= requests.cpu[r]
    nodes.gpu_total_free[n] -= taken
    for d in range(nodes.gpu_count[n]):
        if devices >> d & 1:
            nodes.gpu_free[n, d] -= milli
    after = fragmentation(nodes, knobs, n)
    nodes.cpu_free[n] += requests.cpu[r]
    nodes.gpu_total_free[n] += taken
    for d in range(nodes.gpu_count[n]):
        if devices >> d & 1:
            nodes.gpu_free[n, d] += milli
    return int(100.0 / (1.0 + math.exp(-(before - after) / 1000.0)))


@compiled
def _best(nodes: Nodes, requests: Requests, r: int, n: int, knobs: Knobs) -> tuple[int, int]:
    """Return the most points the node can get and the devices that get them, the lowest index among equals."""
    before = fragmentation(nodes, knobs, n)
    if requests.gpu_count[r] != 1 or requests.gpu_milli[r] == WHOLE:
        devices = _fullest(nodes, requests, r, n, knobs) if requests.gpu_count[r] > 0 else 0
        return _points_with(nodes, requests, r, n, devices, before, knobs), devices
    top, chosen = -1, 0
    for d in range(nodes.gpu_count[n]):
        if not device_fits(nodes, requests, r, n, d):
            continue
        same = False
        for earlier in range(d):
            same = same or nodes.gpu_free[n, earlier] == nodes.gpu_free[n, d]
        if same:
            # A device with as much free was tried already and wins ties.
            continue
        points = _points_with(nodes, requests, r, n, 1 << d, before, knobs)
        if points > top:
            top, chosen = points, 1 << d
    return top, chosen


def devices(nodes: Nodes, requests: Requests, r: int, n: int, knobs: Knobs) -> int:
    """Return the device whose share, once taken, lowers fragmentation most; whole GPUs: the first free ones."""
    return _best(nodes, requests, r, n, knobs)[1]


@placement(
    "fgd",
    "the node and GPU where the expected fragmentation grows least",
    source="Weng et al., Beware of Fragmentation, ATC'23, section 4",
    devices=devices,
    typical=True,
)
def score(nodes: Nodes, requests: Requests, r: int, n: int, knobs: Knobs) -> float:
    """Return 100 × sigmoid of the fall of the node's expected fragmentation in GPUs, as whole points."""
    return float(_best(nodes, requests, r, n, knobs)[0])
