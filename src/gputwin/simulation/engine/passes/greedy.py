"""Greedy skip: every job that fits starts, in order; where a longest wait is set, who reached it has a reservation."""

from __future__ import annotations

from typing import Any

from gputwin.simulation.engine.attribution.waiting import count_changes, end_pass
from gputwin.simulation.engine.compiled import compiled
from gputwin.simulation.engine.fit.questions import blocked_by
from gputwin.simulation.engine.fit.totals import NOBODY
from gputwin.simulation.engine.lifecycle import start_waiting
from gputwin.simulation.engine.passes.easy import easy_pass
from gputwin.simulation.engine.placing.place import place
from gputwin.simulation.engine.queue.jobs import first_of_all
from gputwin.simulation.engine.queue.startable import wait_for
from gputwin.simulation.engine.queue.with_room import gather_with_room, next_with_room
from gputwin.simulation.engine.state.records import wide
from gputwin.simulation.engine.world import World


def greedy_pass(
    world: World, now: float, order: Any, promotion: Any, claim: Any, score: Any, devices: Any, turn: Any, gate: Any
) -> None:
    """Start every job that fits, in order; others are passed over. All jobs of a shape fit or fail alike: it is tried."""
    if world.counters[0].look_only != 0:
        end_pass(world, NOBODY, now)
        return
    shapes, jobs = world.queue.shapes, world.queue.jobs
    gather_with_room(world)
    while True:
        j = next_with_room(world)
        if j < 0:
            break
        placed = place(world, j, score, devices)
        if placed:
            start_waiting(world, j, now)
        count_changes(world)
        if not placed:
            s = wide(jobs[j].shape)
            shapes[s].tried = world.counters[0].passes
            wait_for(world, s, blocked_by(world, s))
    end_pass(world, NOBODY, now)


_greedy_pass, _easy_pass = compiled(greedy_pass), compiled(easy_pass)


def greedy_pass_with_limit(
    world: World, now: float, order: Any, promotion: Any, claim: Any, score: Any, devices: Any, turn: Any, gate: Any
) -> None:
    """Start every job that fits, in order, unless one has reached the longest wait: that one has a reservation."""
    while world.counters[0].starving > 0:
        head = first_of_all(world.queue)
        if not place(world, head, score, devices):
            _easy_pass(world, now, order, promotion, claim, score, devices, turn, gate)
            return
        start_waiting(world, head, now)
        world.counters[0].reserved_job = -1
    _greedy_pass(world, now, order, promotion, claim, score, devices, turn, gate)
