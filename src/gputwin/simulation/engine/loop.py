"""The event loop: arrivals and events in order of time, one scheduling pass after each instant's changes."""

from __future__ import annotations

from typing import Any

import numpy as np
from gputwin.simulation.engine.compiled import compiled

from gputwin.simulation.engine.attribution import begin_wait, blame, cause_of
from gputwin.simulation.engine.events import CORRECT, FINISH, next_time, pop, schedule
from gputwin.simulation.engine.passes import (
    begin,
    easy_pass,
    greedy_pass,
    queue_of,
    scratch_width,
    strict_pass,
)
from gputwin.simulation.engine.place import fits, place, unplace
from gputwin.simulation.engine.queue import push
from gputwin.simulation.engine.reservation import instances_of
from gputwin.simulation.engine.running import discharge
from gputwin.simulation.engine.series import advance
from gputwin.simulation.engine.world import (
    ATTRIBUTE,
    BACKFILL,
    EASY,
    FINISHED,
    GREEDY,
    LOSS,
    LOST,
    NEVER_FITS,
    STRICT,
    World,
)


def run(world: World, order: Any, score: Any, devices: Any) -> float:
    """Run the world to its end and return the time of the last event, s."""
    never = _mark_never_fitting(world, score, devices)
    candidates = np.zeros(world.queue.root.size, np.int32)
    reach = np.zeros(world.queue.root.size, np.int8)
    withheld = np.zeros((world.reservation.node.size, scratch_width(world)))
    jobs, arrival, now = world.jobs, 0, 0.0
    mode = world.options[BACKFILL]
    while True:
        coming = jobs.submit[arrival] if arrival < jobs.submit.size else np.inf
        upcoming = next_time(world.events)
        if coming == np.inf and upcoming == np.inf:
            return now
        now = min(coming, upcoming)
        advance(
            world.series, world.nodes, world.index, world.knobs, world.queue.waiting[0],
            world.runs.running_count[0], now,
        )
        released = False
        while next_time(world.events) == now:
            kind, number = pop(world.events)
            if kind == FINISH:
                _finish(world, number, now)
                released = True
            elif kind == CORRECT:
                released = _correct(world, number, now) or released
        fresh = False
        while arrival < jobs.submit.size and jobs.submit[arrival] == now:
            j, s = arrival, jobs.shape[arrival]
            arrival += 1
            if never[s]:
                world.runs.outcome[j] = NEVER_FITS
            elif not _enter(world, j, s, released or fresh, now, order, score, devices):
                fresh = True
        if world.queue.waiting[0] > 0:
            if mode == STRICT:
                if released or fresh:
                    strict_pass(world, now, score, devices)
            elif mode == GREEDY:
                if released or fresh:
                    greedy_pass(world, now, candidates, score, devices)
            elif mode == EASY:
                easy_pass(world, now, candidates, reach, withheld, score, devices)


@compiled
def _enter(
    world: World, j: int, s: int, others_first: bool, now: float, order: Any, score: Any, devices: Any
) -> bool:
    """Let job j in: started at once where nobody is before it, lost where nobody may wait, else queued.

    Returns whether nothing is left to decide about it.
    """
    mode = world.options[BACKFILL]
    if mode == LOSS:
        if place(world, j, score, devices):
            begin(world, j, now)
        else:
            world.runs.outcome[j] = LOST
        return True
    alone = world.queue.waiting[0] == 0
    # Without a release since the last pass, whoever waits still cannot start, so under greedy skip j goes next.
    if not others_first and (alone or (mode == GREEDY and world.queue.length[s] == 0)):
        if place(world, j, score, devices):
            begin(world, j, now)
            return True
        decided = mode == GREEDY
    else:
        decided = mode == GREEDY and not others_first
    q = queue_of(world, s)
    if world.options[ATTRIBUTE] != 0:
        if world.queue.length[q] == 0 and mode != STRICT:
            fits(world, s, score)
            blame(world.causes, s, cause_of(world.nodes, world.requests, world.shapes, world.index, s), now)
        begin_wait(world.causes, s, j, now)
    push(world.queue, world.jobs.predicted, q, j, order(world.jobs, j, now, world.knobs))
    return decided


@compiled
def _finish(world: World, j: int, now: float) -> None:
    first = world.jobs.first_slot[j]
    world.runs.outcome[j] = FINISHED
    if world.runs.believed_end[j] != now:
        # The plan relied on another end: make it anew.
        world.reservation.job[0] = -1
    discharge(world, j, first, first + instances_of(world, world.jobs.shape[j]))


@compiled
def _correct(world: World, j: int, now: float) -> bool:
    """Believe a job that outlives its prediction to run as long again; return whether plans change.

    Tsafrir, Etsion and Feitelson, "Backfilling Using System-Generated Predictions", 2007, section 3.2.
    """
    if world.runs.outcome[j] == FINISHED:
        return False
    believed = now + max(now - world.runs.start[j], 1.0)
    world.runs.believed_end[j] = believed
    if believed < world.runs.end[j]:
        schedule(world.events, believed, CORRECT, j)
    world.reservation.job[0] = -1
    return True


@compiled
def _mark_never_fitting(world: World, score: Any, devices: Any) -> Any:
    """Return for each shape whether not even the empty cluster can hold a job of it."""
    never = np.zeros(world.shapes.first.size - 1, np.bool_)
    tried = np.zeros(never.size, np.bool_)
    for j in range(world.jobs.submit.size):
        s = world.jobs.shape[j]
        if tried[s]:
            continue
        tried[s] = True
        if not fits(world, s, score):
            never[s] = True
        elif world.shapes.first[s + 1] - world.shapes.first[s] > 1:
            if place(world, j, score, devices):
                first = world.jobs.first_slot[j]
                unplace(world, first, first + instances_of(world, s))
            else:
                never[s] = True
    return never
