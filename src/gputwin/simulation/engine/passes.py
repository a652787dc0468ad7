"""One scheduling pass: who of the waiting jobs starts now, under each rule of overtaking.

The loop is handed the pass it needs, so that only that one is compiled.
"""

from __future__ import annotations

from typing import Any

from gputwin.simulation.engine.attribution import blame_head
from gputwin.simulation.engine.compiled import compiled
from gputwin.simulation.engine.index import FIRST_FITS
from gputwin.simulation.engine.ledger import ARRIVALS, NEW_SHAPES, NOBODY, OPEN_SHAPES
from gputwin.simulation.engine.lifecycle import start_waiting
from gputwin.simulation.engine.place import fits, place, unplace
from gputwin.simulation.engine.queue import before, first, first_of_all
from gputwin.simulation.engine.reservation import reserve
from gputwin.simulation.engine.shape_tree import ANYTHING
from gputwin.simulation.engine.startable import (
    CLOSED,
    SHORT_ONLY,
    candidate,
    first_beside,
    first_with_room,
    has_all_room,
    lacking,
    list_touched,
    wait_for,
)
from gputwin.simulation.engine.state import wide
from gputwin.simulation.engine.veils import lacks_beside, refresh, restore, withhold, withhold_row
from gputwin.simulation.engine.waiting import end_pass, reason
from gputwin.simulation.engine.world import (
    ATTRIBUTE,
    HELD_BACK,
    LOOK_ONLY,
    PASSES,
    RESERVED_JOB,
    SHOWN,
    STARVING,
    World,
)

_TRIALS = 8
"""With more reserved nodes in the way, hiding all of them is cheaper."""


def strict_pass(world: World, now: float, order: Any, promotion: Any, claim: Any, score: Any, devices: Any) -> None:
    """Start jobs in order until one does not fit; nobody overtakes it."""
    while True:
        j = first(world.queue, 0)
        if j < 0:
            return
        if not (fits(world, world.queue.jobs[j].shape) and place(world, j, score, devices)):
            if world.options[ATTRIBUTE] != 0:
                blame_head(world.causes, j, reason(world, wide(world.queue.jobs[j].shape)), now)
            return
        start_waiting(world, j, now)


def greedy_pass(world: World, now: float, order: Any, promotion: Any, claim: Any, score: Any, devices: Any) -> None:
    """Start every job that fits, in order; others are passed over. All jobs of a shape fit or fail alike: it is tried."""
    if world.options[LOOK_ONLY] != 0:
        end_pass(world, NOBODY, now)
        return
    queue = world.queue
    nodes = list_touched(world, world.options[HELD_BACK] != 0)
    world.options[HELD_BACK] = 0
    fresh = _new_shapes(world)
    while True:
        j = first_with_room(world, nodes)
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
            queue.shapes[s].tried = world.options[PASSES]
            wait_for(world, s, lacking(world, s))
        fresh = _still_fresh(world, fresh)
    end_pass(world, NOBODY, now)


@compiled
def _new_shapes(world: World) -> int:
    """Collect the shapes of which nothing is known yet and that have room; return their number."""
    ledger, count = world.ledger, 0
    for k in range(ledger.state[NEW_SHAPES]):
        s = wide(ledger.lists[NEW_SHAPES, k])
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
        if shapes[s].waiting > 0 and shapes[s].tried != world.options[PASSES]:
            candidates[kept] = s
            kept += 1
    return kept


def easy_pass(world: World, now: float, order: Any, promotion: Any, claim: Any, score: Any, devices: Any) -> None:
    """Start jobs in order; when one does not fit, reserve for it and let others overtake that do not delay it."""
    queue, shapes = world.queue, world.queue.shapes
    while True:
        head = first_of_all(queue)
        if head < 0:
            world.options[RESERVED_JOB] = -1
            _forget_arrivals(world)
            world.ledger.state[NEW_SHAPES] = 0
            return
        if not (fits(world, wide(queue.jobs[head].shape)) and place(world, head, score, devices)):
            break
        start_waiting(world, head, now)
        # It may have taken what was reserved for one behind it.
        world.options[RESERVED_JOB] = -1
    anew = world.options[RESERVED_JOB] != head
    # Listed first: a reservation tries changes that it takes back.
    nodes = list_touched(world, False)
    if anew:
        reserve(world, head, score, devices)
    refresh(world)
    first_shape, window = wide(queue.jobs[head].shape), world.reserved_from[0] - now
    count = _shapes_to_ask(world, first_shape, anew)
    while True:
        j = first_beside(world, nodes, window, first_shape)
        kept = 0
        for k in range(count):
            s = wide(queue.candidates[k])
            other = candidate(world, s, window) if shapes[s].waiting > 0 else wide(-1)
            if other >= 0:
                queue.candidates[kept] = s
                kept += 1
                if j < 0 or before(queue.jobs, other, j):
                    j = other
        count = kept
        if j < 0:
            break
        s = wide(queue.jobs[j].shape)
        ends_before = queue.jobs[j].predicted <= window
        if _place_beside(world, j, ends_before, score, devices):
            start_waiting(world, j, now)
            refresh(world)
        else:
            shapes[s].reach = CLOSED if ends_before else SHORT_ONLY
            g = lacking(world, s)
            wait_for(world, s, g if g != ANYTHING or ends_before else lacks_beside(world, s))
    world.options[HELD_BACK] = 1
    end_pass(world, first_shape, now)


@compiled
def _shapes_to_ask(world: World, head: int, anew: bool) -> int:
    """Collect the shapes to ask whatever node has changed; return their number.

    These are the new ones, those to which a job came, and where there is a new reservation all that have room. The
    shape at the head has its reservation and is not among them.
    """
    ledger, candidates, shapes, count = world.ledger, world.queue.candidates, world.queue.shapes, 0
    for k in range(ledger.state[NEW_SHAPES]):
        s = ledger.lists[NEW_SHAPES, k]
        if shapes[s].waiting > 0 and s != head:
            candidates[count] = s
            count += 1
    for k in range(ledger.state[ARRIVALS]):
        s = ledger.lists[ARRIVALS, k]
        # Those with room are asked below.
        if shapes[s].waiting > 0 and s != head and not (anew and shapes[s].open_at >= 0):
            candidates[count] = s
            count += 1
    if anew:
        for k in range(ledger.state[OPEN_SHAPES]):
            s = ledger.lists[OPEN_SHAPES, k]
            if s != head:
                candidates[count] = s
                count += 1
    _forget_arrivals(world)
    return count


@compiled
def _forget_arrivals(world: World) -> None:
    ledger = world.ledger
    for k in range(ledger.state[ARRIVALS]):
        world.queue.shapes[ledger.lists[ARRIVALS, k]].arrived = 0
    ledger.state[ARRIVALS] = 0


@compiled
def _place_beside(world: World, j: int, ends_before: bool, score: Any, devices: Any) -> bool:
    """Place job j where it does not delay the reservation; `ends_before`: it is believed to end before that begins."""
    if ends_before:
        return place(world, j, score, devices)
    refresh(world)
    if world.requests[0].slot == FIRST_FITS:
        placed = _place_on_trial(world, j, score, devices)
    else:
        withhold(world)
        placed = place(world, j, score, devices)
    restore(world)
    return placed


@compiled
def _place_on_trial(world: World, j: int, score: Any, devices: Any) -> bool:
    """Place job j on the first nodes that fit beside the reservation, hiding only what stands in its way.

    A node hidden in part is fit for less. So where the first that fit are none of those still to be hidden, they would
    also be the first with all hidden; and where nothing fits, nothing would.
    """
    first = world.queue.jobs[j].first_slot
    size = world.queue.shapes[world.queue.jobs[j].shape].instances
    for _ in range(_TRIALS):
        if not place(world, j, score, devices):
            return False
        in_the_way = wide(-1)
        for i in range(first, first + size):
            k = wide(world.rows[world.slots[i].node])
            if k >= 0 and world.veils[k] == SHOWN:
                in_the_way = k
                break
        if in_the_way < 0:
            return True
        unplace(world, first, first + size)
        withhold_row(world, in_the_way)
    withhold(world)
    return place(world, j, score, devices)


_greedy_pass, _easy_pass = compiled(greedy_pass), compiled(easy_pass)


def greedy_pass_with_limit(
    world: World, now: float, order: Any, promotion: Any, claim: Any, score: Any, devices: Any
) -> None:
    """Start every job that fits, in order, unless one has reached the longest wait: that one has a reservation."""
    while world.options[STARVING] > 0:
        head = first_of_all(world.queue)
        if not place(world, head, score, devices):
            _easy_pass(world, now, order, promotion, claim, score, devices)
            return
        start_waiting(world, head, now)
        world.options[RESERVED_JOB] = -1
    _greedy_pass(world, now, order, promotion, claim, score, devices)
