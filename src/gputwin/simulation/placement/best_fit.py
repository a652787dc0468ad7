"""Best fit."""

from __future__ import annotations

from gputwin.simulation.engine.state import Knobs, Nodes, Requests
from gputwin.simulation.policy import placement


@placement(
    "best-fit",
    "the node left with least free CPU and GPU",
    source="Weng et al., ATC'23, section 6.1 (BestFit); whole points, as published",
)
def score(nodes: Nodes, requests: Requests, r: int, n: int, knobs: Knobs) -> float:
    """Return 100 minus half the CPU and half the GPU left, in % of the largest node's."""
    cpu = (nodes.cpu_free[n] - requests.cpu[r]) / knobs.largest[0]
    gpu = (nodes.gpu_total_free[n] - requests.gpu_count[r] * requests.gpu_milli[r]) / knobs.largest[1]
    return float(int(100.0 * (1.0 - 0.5 * cpu - 0.5 * gpu)))
