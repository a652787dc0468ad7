"""Dot product."""

from __future__ import annotations

from gputwin.simulation.engine.state import Knobs, Nodes, Requests
from gputwin.simulation.policy import placement


@placement(
    "dot-product",
    "the node whose free resources and the request have the smallest dot product",
    source="Grandl et al., Tetris, SIGCOMM'14; as in Weng et al., ATC'23, section 6.1; whole points, as published",
)
def score(nodes: Nodes, requests: Requests, r: int, n: int, knobs: Knobs) -> float:
    """Return 100 minus the mean of free × asked over CPU and GPU, in % of the largest node's squared."""
    cpu = nodes.cpu_free[n] / knobs.largest[0] * (requests.cpu[r] / knobs.largest[0])
    asked = requests.gpu_count[r] * requests.gpu_milli[r]
    gpu = nodes.gpu_total_free[n] / knobs.largest[1] * (asked / knobs.largest[1])
    return float(int(100.0 * (1.0 - (cpu + gpu) / 2.0)))
