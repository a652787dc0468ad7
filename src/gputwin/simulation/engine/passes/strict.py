"""First come, first served in the chosen order: nobody overtakes the first job that does not fit."""

from __future__ import annotations

from typing import Any

from gputwin.simulation.engine.passes.in_order import end_in_order, first_in_line, try_to_start
from gputwin.simulation.engine.world import World


def strict_pass(
    world: World, now: float, order: Any, promotion: Any, claim: Any, score: Any, devices: Any, turn: Any, gate: Any
) -> None:
    """Start jobs in order until one does not fit; nobody overtakes it."""
    j = first_in_line(world)
    while j >= 0 and try_to_start(world, j, now, score, devices):
        j = first_in_line(world)
    end_in_order(world, now)
