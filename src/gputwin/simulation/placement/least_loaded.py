"""Least-loaded GPUs."""

from __future__ import annotations

from gputwin.simulation.engine.fit.devices import emptiest
from gputwin.simulation.engine.fit.room import device_fits
from gputwin.simulation.engine.state.records import Knobs, Machines, Records
from gputwin.simulation.policy import placement


@placement(
    "least-loaded",
    "the node whose GPUs for the instance have most free share, by the fullest of them; idle GPUs go first, wherever they "
    "are; the first of equal nodes",
    source="Xiao et al., Gandiva, OSDI'18, section 3.2 (jobs are spread before they share)",
    devices=emptiest,
)
def score(machines: Machines, requests: Records, r: int, n: int, knobs: Knobs) -> float:
    """Return the free share, milli, of the fullest GPU that the instance would take; 0 where it takes none."""
    chosen, least = 0, 0.0
    for _ in range(requests[r].gpu_count):
        best, most = -1, -1.0
        for d in range(machines.nodes[n].gpu_count):
            if not chosen >> d & 1 and machines.gpus[n, d].free > most and device_fits(machines, requests, r, n, d):
                best, most = d, float(machines.gpus[n, d].free)
        if best < 0:
            return 0.0
        chosen |= 1 << best
        least = most
    return least
