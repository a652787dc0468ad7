"""One scheduling pass: who of the waiting jobs starts now, under each rule of overtaking.

The loop is handed the pass it needs, so that only that one is compiled.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gputwin.simulation.engine.attribution import blame_head, end_wait
from gputwin.simulation.engine.compiled import compiled, inlined
from gputwin.simulation.engine.events import CORRECT, FINISH, schedule
from gputwin.simulation.engine.index import FIRST_FITS
from gputwin.simulation.engine.ledger import NEW_SHAPES, NOBODY, OPEN_SHAPES
from gputwin.simulation.engine.place import fits, place, unplace
from gputwin.simulation.engine.queue import before, first, first_of_all, first_short, remove
from gputwin.simulation.engine.reservation import reserve
from gputwin.simulation.engine.running import enlist
from gputwin.simulation.engine.state import wide
from gputwin.simulation.engine.veils import fits_beside, refresh, restore, withhold, withhold_row
from gputwin.simulation.engine.waiting import count_changes, end_pass, end_waiting, hopeless, look_for_room, reason
from gputwin.simulation.engine.world import (
    ATTRIBUTE,
    BACKFILL,
    LOOK_ONLY,
    RESERVED_JOB,
    RUNS,
    SHOWN,
    STARVING,
    STRICT,
    TRACK,
    World,
)

CLOSED, SHORT_ONLY, OPEN = 0, 1, 2
_TRIALS = 8
"""With more reserved nodes in the way, hiding all of them is cheaper."""


@inlined
def begin(world: World, j: int, now: float) -> None:
    """Start job j, which has just been placed."""
    job = world.queue.jobs[j]
    job.start = now
    job.outcome = RUNS
    job.end = now + job.duration
    job.believed_end = now + job.predicted
    enlist(world, j)
    if job.end < np.inf:
        schedule(world.events, job.end, FINISH, j)
    if job.believed_end < job.end and world.options[TRACK] != 0:
        schedule(world.events, job.believed_end, CORRECT, j)


@compiled
def start_waiting(world: World, j: int, now: float) -> None:
    """Start job j, which has just been placed, out of the queue."""
    job = world.queue.jobs[j]
    q = queue_of(world, wide(job.shape))
    remove(world.queue, q, j)
    if world.options[BACKFILL] != STRICT and world.queue.shapes[q].waiting == 0:
        end_waiting(world, q)
    world.options[STARVING] -= job.key == -np.inf
    if world.options[ATTRIBUTE] != 0:
        end_wait(world.causes, world.queue.shapes, job.shape, j, job.submit, now)
    begin(world, j, now)


@inlined
def queue_of(world: World, s: int) -> int:
    """Return the queue that jobs of shape s wait in: one for all under strict order, else one per shape."""
    return 0 if world.options[BACKFILL] == STRICT else s


def strict_pass(world: World, now: float, score: Any, devices: Any) -> None:
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


def greedy_pass(world: World, now: float, score: Any, devices: Any) -> None:
    """Start every job that fits, in order; others are passed over. All jobs of a shape fit or fail alike: it is tried."""
    if world.options[LOOK_ONLY] != 0:
        end_pass(world, NOBODY, now)
        return
    look_for_room(world)
    candidates, count = world.queue.candidates, _may_fit(world)
    while count > 0:
        at, j = 0, first(world.queue, candidates[0])
        for k in range(1, count):
            other = first(world.queue, candidates[k])
            if before(world.queue.jobs, other, j):
                at, j = k, other
        s = wide(candidates[at])
        if not hopeless(world, s) and place(world, j, score, devices):
            start_waiting(world, j, now)
            count_changes(world)
            if world.queue.shapes[s].waiting > 0:
                continue
        count -= 1
        candidates[at] = candidates[count]
    end_pass(world, NOBODY, now)


@inlined
def _may_fit(world: World) -> int:
    """Collect the shapes that have room, and those of which nothing is known yet; return their number."""
    ledger, candidates = world.ledger, world.queue.candidates
    count = ledger.state[OPEN_SHAPES]
    for k in range(count):
        candidates[k] = ledger.lists[OPEN_SHAPES, k]
    for k in range(ledger.state[NEW_SHAPES]):
        if world.queue.shapes[ledger.lists[NEW_SHAPES, k]].waiting > 0:
            candidates[count] = ledger.lists[NEW_SHAPES, k]
            count += 1
    return count


def easy_pass(world: World, now: float, score: Any, devices: Any) -> None:
    """Start jobs in order; when one does not fit, reserve for it and let others overtake that do not delay it."""
    while True:
        head = first_of_all(world.queue)
        if head < 0:
            world.options[RESERVED_JOB] = -1
            world.ledger.state[NEW_SHAPES] = 0
            return
        count_changes(world)
        if hopeless(world, wide(world.queue.jobs[head].shape)) or not place(world, head, score, devices):
            break
        start_waiting(world, head, now)
        # It may have taken what was reserved for one behind it.
        world.options[RESERVED_JOB] = -1
    if world.options[RESERVED_JOB] != head:
        reserve(world, head, score, devices)
    candidates, shapes = world.queue.candidates, world.queue.shapes
    look_for_room(world)
    count = _open_shapes(world, head)
    window = world.reserved_from[0] - now
    while count > 0:
        at, best = -1, wide(-1)
        for k in range(count):
            j = _candidate(world, candidates[k], shapes[candidates[k]].reach, window)
            if j >= 0 and (best < 0 or before(world.queue.jobs, j, best)):
                at, best = k, j
        if best < 0:
            break
        s = wide(candidates[at])
        ends_before = world.queue.jobs[best].predicted <= window
        placed = not hopeless(world, s) and _place_beside(world, best, ends_before, score, devices)
        if placed:
            start_waiting(world, best, now)
            count_changes(world)
        else:
            shapes[s].reach = CLOSED if ends_before else SHORT_ONLY
        if shapes[s].reach == CLOSED or shapes[s].waiting == 0:
            count -= 1
            candidates[at] = candidates[count]
    end_pass(world, wide(world.queue.jobs[head].shape), now)


@compiled
def _place_beside(world: World, j: int, ends_before: bool, score: Any, devices: Any) -> bool:
    """Place job j where it does not delay the reservation; `ends_before`: it is believed to end before that begins."""
    if ends_before:
        return place(world, j, score, devices)
    refresh(world)
    if world.requests[0].slot == FIRST_FITS and world.queue.shapes[world.queue.jobs[j].shape].groups == 1:
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


@compiled
def _open_shapes(world: World, head: int) -> int:
    """Collect the shapes that fit now, and say for each whether long jobs fit beside the reservation too.

    The head's own shape has its reservation and is not among them.
    """
    candidates, shapes, found, count = world.queue.candidates, world.queue.shapes, _may_fit(world), 0
    for k in range(found):
        s = candidates[k]
        if s != world.queue.jobs[head].shape:
            candidates[count] = s
            shapes[s].reach = SHORT_ONLY
            count += 1
    if count > 0:
        refresh(world)
        for k in range(count):
            if fits_beside(world, wide(candidates[k])):
                shapes[candidates[k]].reach = OPEN
    return count


@compiled
def _candidate(world: World, s: int, reach: int, window: float) -> int:
    if reach == OPEN:
        return first(world.queue, s)
    return first_short(world.queue, s, window)


_greedy_pass, _easy_pass = compiled(greedy_pass), compiled(easy_pass)


def greedy_pass_with_limit(world: World, now: float, score: Any, devices: Any) -> None:
    """Start every job that fits, in order, unless one has reached the longest wait: that one has a reservation."""
    while world.options[STARVING] > 0:
        head = first_of_all(world.queue)
        if not place(world, head, score, devices):
            _easy_pass(world, now, score, devices)
            return
        start_waiting(world, head, now)
        world.options[RESERVED_JOB] = -1
    _greedy_pass(world, now, score, devices)
