"""One scheduling pass: who of the waiting jobs starts now, under each rule of overtaking."""

from __future__ import annotations

from typing import Any

import numpy as np
from gputwin.simulation.engine.compiled import compiled

from gputwin.simulation.engine.attribution import BEHIND, blame, blame_head, cause_of, end_wait
from gputwin.simulation.engine.events import CORRECT, FINISH, schedule
from gputwin.simulation.engine.place import fits, place
from gputwin.simulation.engine.queue import before, first, first_of_all, first_short, remove
from gputwin.simulation.engine.reservation import FIELDS, instances_of, reserve, restore, withhold
from gputwin.simulation.engine.running import enlist
from gputwin.simulation.engine.world import ATTRIBUTE, BACKFILL, EASY, GREEDY, RUNNING, STRICT, World

CLOSED, SHORT_ONLY, OPEN = 0, 1, 2


@compiled
def begin(world: World, j: int, now: float) -> None:
    """Start job j, which has just been placed."""
    first_slot = world.jobs.first_slot[j]
    world.runs.start[j] = now
    world.runs.outcome[j] = RUNNING
    end = now + world.jobs.duration[j]
    world.runs.end[j] = end
    believed = now + world.jobs.predicted[j]
    world.runs.believed_end[j] = believed
    enlist(world, j, first_slot, first_slot + instances_of(world, world.jobs.shape[j]))
    if end < np.inf:
        schedule(world.events, end, FINISH, j)
    if believed < end and world.options[BACKFILL] >= EASY:
        schedule(world.events, believed, CORRECT, j)


@compiled
def start_waiting(world: World, j: int, now: float) -> None:
    """Start job j, which has just been placed, out of the queue."""
    s = world.jobs.shape[j]
    remove(world.queue, world.jobs.predicted, queue_of(world, s), j)
    if world.options[ATTRIBUTE] != 0:
        end_wait(world.causes, s, j, world.jobs.submit[j], now)
    begin(world, j, now)


@compiled
def queue_of(world: World, s: int) -> int:
    """Return the queue that jobs of shape s wait in: one for all under strict order, else one per shape."""
    return 0 if world.options[BACKFILL] == STRICT else s


@compiled
def strict_pass(world: World, now: float, score: Any, devices: Any) -> None:
    """Start jobs in order until one does not fit; nobody overtakes it."""
    while True:
        j = first(world.queue, 0)
        if j < 0:
            return
        if not place(world, j, score, devices):
            if world.options[ATTRIBUTE] != 0:
                s = world.jobs.shape[j]
                fits(world, s, score)
                cause = cause_of(world.nodes, world.requests, world.shapes, world.index, s)
                blame_head(world.causes, j, cause, now)
            return
        start_waiting(world, j, now)


@compiled
def greedy_pass(world: World, now: float, candidates: Any, score: Any, devices: Any) -> None:
    """Start every job that fits, in order; jobs that do not fit are passed over.

    All jobs of a shape fit or fail alike, so shapes are tried, not jobs. `candidates` is scratch for shapes.
    """
    count = 0
    for k in range(world.queue.listed_count[0]):
        s = world.queue.listed[k]
        if fits(world, s, score):
            candidates[count] = s
            count += 1
        elif world.options[ATTRIBUTE] != 0:
            blame(world.causes, s, cause_of(world.nodes, world.requests, world.shapes, world.index, s), now)
    while count > 0:
        at, j = 0, first(world.queue, candidates[0])
        for k in range(1, count):
            other = first(world.queue, candidates[k])
            if before(world.queue, other, j):
                at, j = k, other
        s = candidates[at]
        if place(world, j, score, devices):
            start_waiting(world, j, now)
            if world.queue.length[s] > 0:
                continue
        elif world.options[ATTRIBUTE] != 0:
            fits(world, s, score)
            blame(world.causes, s, cause_of(world.nodes, world.requests, world.shapes, world.index, s), now)
        count -= 1
        candidates[at] = candidates[count]


@compiled
def easy_pass(world: World, now: float, candidates: Any, reach: Any, withheld: Any, score: Any, devices: Any) -> None:
    """Start jobs in order; when one does not fit, reserve for it and let others overtake that do not delay it."""
    while True:
        head = first_of_all(world.queue)
        if head < 0:
            world.reservation.job[0] = -1
            return
        if not place(world, head, score, devices):
            break
        start_waiting(world, head, now)
    if world.reservation.job[0] != head:
        reserve(world, head, score, devices)
    count = _open_shapes(world, now, candidates, reach, withheld, score)
    while count > 0:
        at, best = -1, -1
        for k in range(count):
            j = _candidate(world, candidates[k], reach[candidates[k]], now)
            if j >= 0 and (best < 0 or before(world.queue, j, best)):
                at, best = k, j
        if best < 0:
            break
        s = candidates[at]
        ends_before = now + world.jobs.predicted[best] <= world.reservation.time[0]
        if not ends_before:
            withhold(world, withheld)
        placed = place(world, best, score, devices)
        if not ends_before:
            restore(world, withheld)
        if placed:
            start_waiting(world, best, now)
        elif ends_before:
            reach[s] = CLOSED
        else:
            reach[s] = SHORT_ONLY
        if reach[s] == CLOSED or world.queue.length[s] == 0:
            count -= 1
            candidates[at] = candidates[count]
    if world.options[ATTRIBUTE] != 0:
        _blame_all(world, now, score)


@compiled
def _open_shapes(world: World, now: float, candidates: Any, reach: Any, withheld: Any, score: Any) -> int:
    """Collect the shapes that fit now, and say for each whether long jobs fit beside the reservation too."""
    count = 0
    for k in range(world.queue.listed_count[0]):
        s = world.queue.listed[k]
        if fits(world, s, score):
            candidates[count] = s
            reach[s] = SHORT_ONLY
            count += 1
    if count > 0:
        withhold(world, withheld)
        for k in range(count):
            if fits(world, candidates[k], score):
                reach[candidates[k]] = OPEN
        restore(world, withheld)
    return count


@compiled
def _candidate(world: World, s: int, reach: int, now: float) -> int:
    if reach == OPEN:
        return first(world.queue, s)
    return first_short(world.queue, world.jobs.predicted, s, world.reservation.time[0] - now)


@compiled
def _blame_all(world: World, now: float, score: Any) -> None:
    for k in range(world.queue.listed_count[0]):
        s = world.queue.listed[k]
        cause = BEHIND
        if not fits(world, s, score):
            cause = cause_of(world.nodes, world.requests, world.shapes, world.index, s)
        elif s == world.jobs.shape[world.reservation.job[0]]:
            cause = cause_of(world.nodes, world.requests, world.shapes, world.index, s)
        blame(world.causes, s, cause, now)


@compiled
def scratch_width(world: World) -> int:
    """Return the columns `withhold` needs."""
    return FIELDS + 2 * world.nodes.gpu_free.shape[1]


@compiled
def greedy_arrival(world: World, j: int, now: float, score: Any, devices: Any) -> bool:
    """Start job j on arrival if it fits and no one of its shape waits; nobody else can start before a release."""
    s = world.jobs.shape[j]
    return bool(world.queue.length[s] == 0 and world.options[BACKFILL] == GREEDY and place(world, j, score, devices))
