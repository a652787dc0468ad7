"""Random fit."""

from __future__ import annotations

from gputwin.simulation.engine.fit.room import device_fits
from gputwin.simulation.engine.state.records import WHOLE, Knobs, Machines, Records, draw
from gputwin.simulation.policy import placement


def devices(machines: Machines, requests: Records, r: int, n: int, knobs: Knobs) -> int:
    """Return the bit set of devices drawn uniformly from those that fit."""
    several = requests[r].gpu_count > 1 and requests[r].gpu_milli < WHOLE
    chosen = 0
    for _ in range(requests[r].gpu_count):
        best, top = -1, -1.0
        for d in range(machines.nodes[n].gpu_count):
            if not chosen >> d & 1 and device_fits(machines, requests, r, n, d):
                # Instances that share several devices take the emptiest: only so do all fit that there is room for.
                ticket = draw(knobs) + (float(machines.gpus[n, d].free) if several else 0.0)
                if ticket > top:
                    best, top = d, ticket
        if best < 0:
            return 0
        chosen |= 1 << best
    return chosen


@placement("random", "any node that fits, each as likely", devices=devices, fresh=True)
def score(machines: Machines, requests: Records, r: int, n: int, knobs: Knobs) -> float:
    """Return a fresh ticket of a fair draw."""
    return draw(knobs)
