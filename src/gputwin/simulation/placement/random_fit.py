"""Random fit."""

from __future__ import annotations

from gputwin.simulation.engine.fit import device_fits
from gputwin.simulation.engine.state import Knobs, Machines, Records, draw
from gputwin.simulation.policy import placement


def devices(machines: Machines, requests: Records, r: int, n: int, knobs: Knobs) -> int:
    """Return the bit set of devices drawn uniformly from those that fit."""
    chosen = 0
    for _ in range(requests[r].gpu_count):
        best, top = -1, -1.0
        for d in range(machines.nodes[n].gpu_count):
            if not chosen >> d & 1 and device_fits(machines, requests, r, n, d):
                ticket = draw(knobs)
                if ticket > top:
                    best, top = d, ticket
        chosen |= 1 << best
    return chosen


@placement("random", "any node that fits, each as likely", devices=devices, fresh=True)
def score(machines: Machines, requests: Records, r: int, n: int, knobs: Knobs) -> float:
    """Return a fresh ticket of a fair draw."""
    return draw(knobs)
