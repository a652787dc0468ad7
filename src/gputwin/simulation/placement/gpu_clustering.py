"""GPU clustering."""

from __future__ import annotations

from gputwin.simulation.engine.state import Knobs, Nodes, Requests, gpu_class
from gputwin.simulation.policy import placement


@placement(
    "gpu-clustering",
    "nodes that hold instances asking for as many GPUs, the fuller first",
    source="Xiao et al., Gandiva, OSDI'18; as in Weng et al., ATC'23, section 6.1",
)
def score(nodes: Nodes, requests: Requests, r: int, n: int, knobs: Knobs) -> float:
    """Return up to 75 for company of the same GPU class and up to 25 for how full the node is."""
    if requests.gpu_count[r] == 0:
        return 0.0
    largest = int(knobs.largest[1])
    points = 25 * (largest - nodes.gpu_total_free[n]) // largest
    own = gpu_class(requests, r)
    alike, others = nodes.class_count[n, own] > 0, False
    for k in range(nodes.class_count.shape[1]):
        if k != own and nodes.class_count[n, k] > 0:
            others = True
    if alike:
        points += 50 if others else 75
    elif not others:
        points += 25
    return float(points)
