"""Jobs start and change their size when a plan says so, and only then: the pass of a run with a planner."""

from __future__ import annotations

from typing import Any

from gputwin.simulation.engine.changes.sizes import change_size
from gputwin.simulation.engine.lifecycle import start_waiting
from gputwin.simulation.engine.placing.place import place
from gputwin.simulation.engine.state.records import wide
from gputwin.simulation.engine.world import RUNS, WAITS, World


def planned_pass(
    world: World, now: float, order: Any, promotion: Any, claim: Any, score: Any, devices: Any, turn: Any, gate: Any
) -> None:
    """Start and resize the jobs of the present round, in the plan's order; who finds no place waits for the next round."""
    for k in range(world.planned[0]):
        j, target = wide(world.planned[1 + 2 * k]), wide(world.planned[2 + 2 * k])
        job = world.queue.jobs[j]
        if job.outcome == WAITS:
            job.shape = target
            if place(world, j, score, devices):
                start_waiting(world, j, now)
        elif job.outcome == RUNS and job.shape != target:
            change_size(world, j, target, now, score, devices)
    world.planned[0] = 0
