"""Jobs start when a plan says so, and only then: the pass of a run with a planner (`planning/drive.py`)."""

from __future__ import annotations

from typing import Any

from gputwin.simulation.engine.lifecycle import start_waiting
from gputwin.simulation.engine.placing.place import place
from gputwin.simulation.engine.state.records import wide
from gputwin.simulation.engine.world import WAITS, World


def planned_pass(
    world: World, now: float, order: Any, promotion: Any, claim: Any, score: Any, devices: Any, turn: Any, gate: Any
) -> None:
    """Start the jobs of the present round, in the plan's order; who finds no place waits for the next round."""
    for k in range(1, world.planned[0] + 1):
        j = wide(world.planned[k])
        if world.queue.jobs[j].outcome == WAITS and place(world, j, score, devices):
            start_waiting(world, j, now)
    world.planned[0] = 0
