"""EASY backfilling: others overtake the first blocked job only where they do not delay it.

Lifka, "The ANL/IBM SP Scheduling System", 1995.
"""

from __future__ import annotations

from typing import Any

from gputwin.simulation.engine.attribution.waiting import count_changes, end_pass
from gputwin.simulation.engine.compiled import compiled
from gputwin.simulation.engine.fit.questions import blocked_by
from gputwin.simulation.engine.fit.totals import ARRIVALS, NEW_SHAPES, OPEN_SHAPES, forget_new
from gputwin.simulation.engine.lifecycle import start_waiting
from gputwin.simulation.engine.placing.place import fits, place
from gputwin.simulation.engine.queue.jobs import first_of_all
from gputwin.simulation.engine.queue.shape_tree import ANYTHING
from gputwin.simulation.engine.queue.startable import (
    CLOSED,
    SHORT_ONLY,
    gather,
    gather_shape,
    list_touched,
    next_beside,
    start_gathering,
    wait_for,
)
from gputwin.simulation.engine.reservations.beside import place_beside
from gputwin.simulation.engine.reservations.first_blocked import reserve
from gputwin.simulation.engine.reservations.mask import lacks_beside, refresh
from gputwin.simulation.engine.state.records import wide
from gputwin.simulation.engine.world import World


def easy_pass(
    world: World, now: float, order: Any, promotion: Any, claim: Any, score: Any, devices: Any, turn: Any, gate: Any
) -> None:
    """Start jobs in order; when one does not fit, reserve for it and let others overtake that do not delay it."""
    queue = world.queue
    while True:
        head = first_of_all(queue)
        if head < 0:
            world.counters[0].reserved_job = -1
            forget_arrivals(world)
            forget_new(world.totals, world.queue.shapes)
            return
        if not (fits(world, wide(queue.jobs[head].shape)) and place(world, head, score, devices)):
            break
        start_waiting(world, head, now)
        # It may have taken what was reserved for one behind it.
        world.counters[0].reserved_job = -1
    anew = world.counters[0].reserved_job != head
    nodes = list_touched(world, False)
    if anew:
        reserve(world, head, score, devices)
    refresh(world)
    first_shape, window = wide(queue.jobs[head].shape), world.reserved_from[0] - now
    count = _shapes_to_ask(world, first_shape, anew)
    count_changes(world)
    start_gathering(world)
    for k in range(count):
        gather_shape(world, wide(queue.candidates[k]), False)
    gather(world, nodes, window, first_shape)
    while True:
        j = next_beside(world, window)
        if j < 0:
            break
        ends_before = queue.jobs[j].predicted <= window
        if place_beside(world, j, ends_before, score, devices):
            start_waiting(world, j, now)
            refresh(world)
            count_changes(world)
        else:
            close_for(world, wide(queue.jobs[j].shape), ends_before)
    world.counters[0].held_back = 1
    end_pass(world, first_shape, now)


@compiled
def _shapes_to_ask(world: World, head: int, anew: bool) -> int:
    """Collect the shapes to ask whatever node has changed; return their number.

    These are the new ones, those to which a job came, and where there is a new reservation all that have room. The
    shape at the head has its reservation and is not among them.
    """
    totals, candidates, shapes, count = world.totals, world.queue.candidates, world.queue.shapes, 0
    for k in range(totals.state[NEW_SHAPES]):
        s = totals.lists[NEW_SHAPES, k]
        if shapes[s].waiting > 0 and s != head:
            candidates[count] = s
            count += 1
    for k in range(totals.state[ARRIVALS]):
        s = totals.lists[ARRIVALS, k]
        # Those with room are asked below.
        if shapes[s].waiting > 0 and s != head and not (anew and shapes[s].open_at >= 0):
            candidates[count] = s
            count += 1
    if anew:
        for k in range(totals.state[OPEN_SHAPES]):
            s = totals.lists[OPEN_SHAPES, k]
            if s != head:
                candidates[count] = s
                count += 1
    forget_arrivals(world)
    return count


@compiled
def forget_arrivals(world: World) -> None:
    """Forget to which shapes jobs have come."""
    totals = world.totals
    for k in range(totals.state[ARRIVALS]):
        world.queue.shapes[totals.lists[ARRIVALS, k]].arrived = 0
    totals.state[ARRIVALS] = 0


@compiled
def close_for(world: World, s: int, ends_before: bool) -> None:
    """Let nobody of shape s overtake any more in this pass, or only those that end before the reservation begins."""
    count_changes(world)
    world.queue.shapes[s].reach = CLOSED if ends_before else SHORT_ONLY
    g = blocked_by(world, s)
    wait_for(world, s, g if g != ANYTHING or ends_before else lacks_beside(world, s))
