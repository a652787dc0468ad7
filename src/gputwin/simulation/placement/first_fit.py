"""First fit."""

from __future__ import annotations

from gputwin.simulation.engine.state.records import Knobs, Machines, Records
from gputwin.simulation.policy import placement


@placement("first-fit", "the first node that fits", source="Johnson, 1973", first=True)
def score(machines: Machines, requests: Records, r: int, n: int, knobs: Knobs) -> float:
    """Return the same for every node: ties go to the first."""
    return 0.0
