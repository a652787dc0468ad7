"""First come, first served in the chosen order: nobody overtakes the first job that does not fit."""

from __future__ import annotations

from typing import Any

from gputwin.simulation.engine.attribution.causes import blame_head
from gputwin.simulation.engine.attribution.reasons import reason
from gputwin.simulation.engine.lifecycle import start_waiting
from gputwin.simulation.engine.placing.place import fits, place
from gputwin.simulation.engine.queue.jobs import first
from gputwin.simulation.engine.state.records import wide
from gputwin.simulation.engine.world import World


def strict_pass(
    world: World, now: float, order: Any, promotion: Any, claim: Any, score: Any, devices: Any, turn: Any, gate: Any
) -> None:
    """Start jobs in order until one does not fit; nobody overtakes it."""
    while True:
        j = first(world.queue, 0)
        if j < 0:
            return
        if not (fits(world, world.queue.jobs[j].shape) and place(world, j, score, devices)):
            if world.settings[0].attributes != 0:
                blame_head(world.causes, j, reason(world, wide(world.queue.jobs[j].shape)), now)
            return
        start_waiting(world, j, now)
