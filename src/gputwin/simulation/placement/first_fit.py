"""First fit."""

from __future__ import annotations

from gputwin.simulation.engine.state import Knobs, Nodes, Requests
from gputwin.simulation.policy import placement


@placement("first-fit", "the first node that fits", source="Johnson, 1973")
def score(nodes: Nodes, requests: Requests, r: int, n: int, knobs: Knobs) -> float:
    """Return the same for every node: ties go to the first."""
    return 0.0
