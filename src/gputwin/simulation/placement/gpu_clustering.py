"""GPU clustering."""

from __future__ import annotations

from gputwin.simulation.engine.state.records import LARGEST_GPU, Knobs, Machines, Records, gpu_class
from gputwin.simulation.policy import placement


@placement(
    "gpu-clustering",
    "nodes that hold instances asking for as many GPUs, the fuller first",
    source="Xiao et al., Gandiva, OSDI'18; as in Weng et al., ATC'23, section 6.1",
)
def score(machines: Machines, requests: Records, r: int, n: int, knobs: Knobs) -> float:
    """Return up to 75 for company of the same GPU class and up to 25 for how full the node is."""
    if requests[r].gpu_count == 0:
        return 0.0
    largest = int(knobs.numbers[LARGEST_GPU])
    points = 25 * (largest - machines.nodes[n].gpu_free) // largest
    own = gpu_class(requests, r)
    alike, others = machines.residents[n, own] > 0, False
    for k in range(machines.nodes[n].gpu_count + 1):
        if k != own and machines.residents[n, k] > 0:
            others = True
    if alike:
        points += 50 if others else 75
    elif not others:
        points += 25
    return float(points)
