"""Load balancing."""

from __future__ import annotations

from gputwin.simulation.engine.devices import emptiest
from gputwin.simulation.engine.state import Knobs, Nodes, Requests
from gputwin.simulation.policy import placement


@placement(
    "load-balance",
    "the node with the lowest share allocated, CPU and GPU averaged",
    source="Kubernetes NodeResourcesFit, LeastAllocated",
    devices=emptiest,
)
def score(nodes: Nodes, requests: Requests, r: int, n: int, knobs: Knobs) -> float:
    """Return the mean of the free shares of the node's CPU and GPU after placing the instance, 0 to 1."""
    cpu = (nodes.cpu_free[n] - requests.cpu[r]) / max(nodes.cpu[n], 1)
    if nodes.gpu_count[n] == 0:
        return cpu
    gpu = (nodes.gpu_total_free[n] - requests.gpu_count[r] * requests.gpu_milli[r]) / (1000.0 * nodes.gpu_count[n])
    return 0.5 * cpu + 0.5 * gpu
