"""GPU packing."""

from __future__ import annotations

from gputwin.simulation.engine.fit.room import device_fits
from gputwin.simulation.engine.state.records import WHOLE, Knobs, Machines, Records
from gputwin.simulation.policy import placement


@placement(
    "gpu-packing",
    "GPUs in use first, then free GPUs of nodes in use, then idle nodes",
    source="Weng et al., MLaaS in the Wild, NSDI'22, section 6; as in Weng et al., ATC'23, section 6.1",
)
def score(machines: Machines, requests: Records, r: int, n: int, knobs: Knobs) -> float:
    """Return 50 to 100 when GPUs in use suffice, 33 to 50 when the node is in use, less when it is idle."""
    asked = requests[r].gpu_count
    if asked == 0:
        return 0.0
    count = machines.nodes[n].gpu_count
    if machines.nodes[n].gpus_whole == count:
        return float(max(33 - count, count))
    # As many of the devices it needs as possible are ones in use, the fullest first.
    in_use, left, last = 0, 0, -1
    for _ in range(asked):
        best = -1
        for d in range(count):
            free = machines.gpus[n, d].free
            if free == WHOLE or not device_fits(machines, requests, r, n, d):
                continue
            later = last < 0 or free > machines.gpus[n, last].free or (free == machines.gpus[n, last].free and d > last)
            if later and (best < 0 or free < machines.gpus[n, best].free):
                best = d
        if best < 0:
            break
        last = best
        in_use += 1
        left += machines.gpus[n, best].free * 100 // WHOLE
    if in_use < asked:
        return float(max(50 - (asked - in_use), 33))
    return float(max(100 - left // 10, 50))
