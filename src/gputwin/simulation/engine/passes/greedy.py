"""Greedy skip: every job that fits starts, in order; where a longest wait is set, who reached it has a reservation."""

from __future__ import annotations

from typing import Any

from gputwin.simulation.engine.attribution.waiting import end_pass
from gputwin.simulation.engine.compiled import compiled
from gputwin.simulation.engine.fit.totals import NEW_SHAPES, NOBODY
from gputwin.simulation.engine.lifecycle import start_waiting
from gputwin.simulation.engine.passes.easy import easy_pass
from gputwin.simulation.engine.placing.place import place
from gputwin.simulation.engine.queue.jobs import before, first, first_of_all
from gputwin.simulation.engine.queue.startable import (
    gather,
    has_all_room,
    lacking,
    list_touched,
    next_with_room,
    start_gathering,
    wait_for,
)
from gputwin.simulation.engine.state.records import wide
from gputwin.simulation.engine.world import World


def greedy_pass(
    world: World, now: float, order: Any, promotion: Any, claim: Any, score: Any, devices: Any, turn: Any, gate: Any
) -> None:
    """Start every job that fits, in order; others are passed over. All jobs of a shape fit or fail alike: it is tried."""
    if world.counters[0].look_only != 0:
        end_pass(world, NOBODY, now)
        return
    queue = world.queue
    nodes = list_touched(world, world.counters[0].held_back != 0)
    world.counters[0].held_back = 0
    fresh = _new_shapes(world)
    start_gathering(world)
    gather(world, nodes, 0.0, False, wide(NOBODY))
    while True:
        j = next_with_room(world)
        for k in range(fresh):
            other = first(queue, wide(queue.candidates[k]))
            if j < 0 or before(queue.jobs, other, j):
                j = other
        if j < 0:
            break
        s = wide(queue.jobs[j].shape)
        if place(world, j, score, devices):
            start_waiting(world, j, now)
        else:
            queue.shapes[s].tried = world.counters[0].passes
            wait_for(world, s, lacking(world, s))
        fresh = _still_fresh(world, fresh)
    end_pass(world, NOBODY, now)


@compiled
def _new_shapes(world: World) -> int:
    """Collect the shapes of which nothing is known yet and that have room; return their number."""
    totals, count = world.totals, 0
    for k in range(totals.state[NEW_SHAPES]):
        s = wide(totals.lists[NEW_SHAPES, k])
        if world.queue.shapes[s].waiting > 0 and has_all_room(world, s):
            world.queue.candidates[count] = s
            count += 1
    return count


@compiled
def _still_fresh(world: World, count: int) -> int:
    """Drop collected shapes that have been tried in vain or wait no more; return how many are left."""
    shapes, candidates, kept = world.queue.shapes, world.queue.candidates, 0
    for k in range(count):
        s = candidates[k]
        if shapes[s].waiting > 0 and shapes[s].tried != world.counters[0].passes:
            candidates[kept] = s
            kept += 1
    return kept


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
