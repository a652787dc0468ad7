"""Worst fit."""

from __future__ import annotations

from gputwin.simulation.engine.devices import emptiest
from gputwin.simulation.engine.state import Knobs, Nodes, Requests
from gputwin.simulation.policy import placement


@placement("worst-fit", "the node left with most free GPU, then CPU", source="Johnson, 1973", devices=emptiest)
def score(nodes: Nodes, requests: Requests, r: int, n: int, knobs: Knobs) -> float:
    """Return the free GPU share of the node in % of the largest node's, CPU deciding between equals."""
    return nodes.gpu_total_free[n] / knobs.largest[1] + 1e-6 * nodes.cpu_free[n] / knobs.largest[0]
