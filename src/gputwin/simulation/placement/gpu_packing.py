"""GPU packing."""

from __future__ import annotations

from gputwin.simulation.engine.fit import device_fits
from gputwin.simulation.engine.state import WHOLE, Knobs, Nodes, Requests
from gputwin.simulation.policy import placement


@placement(
    "gpu-packing",
    "GPUs in use first, then free GPUs of nodes in use, then idle nodes",
    source="Weng et al., MLaaS in the Wild, NSDI'22, section 6; as in Weng et al., ATC'23, section 6.1",
)
def score(nodes: Nodes, requests: Requests, r: int, n: int, knobs: Knobs) -> float:
    """Return 50 to 100 when GPUs in use suffice, 33 to 50 when the node is in use, less when it is idle."""
    asked = requests.gpu_count[r]
    if asked == 0:
        return 0.0
    count = nodes.gpu_count[n]
    if nodes.gpus_whole[n] == count:
        return float(max(33 - count, count))
    # As many of the devices it needs as possible are ones in use, the fullest first.
    in_use, left, last = 0, 0, -1
    for _ in range(asked):
        best = -1
        for d in range(count):
            free = nodes.gpu_free[n, d]
            if free == WHOLE or not device_fits(nodes, requests, r, n, d):
                continue
            later = last < 0 or free > nodes.gpu_free[n, last] or (free == nodes.gpu_free[n, last] and d > last)
            if later and (best < 0 or free < nodes.gpu_free[n, best]):
                best = d
        if best < 0:
            break
        last = best
        in_use += 1
        left += nodes.gpu_free[n, best] * 100 // WHOLE
    if in_use < asked:
        return float(max(50 - (asked - in_use), 33))
    return float(max(100 - left // 10, 50))
