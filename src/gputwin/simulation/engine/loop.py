"""The event loop: arrivals and events in order of time, one scheduling pass after each instant's changes."""

from __future__ import annotations

from typing import Any

import numpy as np

from gputwin.simulation.engine.attribution import begin_wait, blame
from gputwin.simulation.engine.compiled import compiled, inlined
from gputwin.simulation.engine.events import CORRECT, FINISH, STARVE, next_time, pop, schedule
from gputwin.simulation.engine.index import LOG_END
from gputwin.simulation.engine.ledger import CAUGHT_UP, NEW_SHAPES, PASSED, begin_waiting, note_arrival
from gputwin.simulation.engine.passes import begin, queue_of
from gputwin.simulation.engine.place import place, place_one, unplace
from gputwin.simulation.engine.queue import WAITING, push, remove
from gputwin.simulation.engine.running import believe, discharge
from gputwin.simulation.engine.series import BEGIN, WIDTH, advance
from gputwin.simulation.engine.state import wide
from gputwin.simulation.engine.world import (
    ATTRIBUTE,
    BACKFILL,
    CONSERVATIVE,
    FINISHED,
    GREEDY,
    LOOK_ONLY,
    LOSS,
    LOST,
    NEVER_FITS,
    RESERVED_JOB,
    RUNNING_COUNT,
    STARVING,
    STRICT,
    WAITS,
    World,
)


def run(world: World, order: Any, score: Any, devices: Any, schedule_pass: Any) -> float:
    """Run the world to its end and return the time of the last event, s.

    `schedule_pass(world, now, score, devices)` starts who of the waiting jobs may start now.
    """
    jobs, shapes, mode = world.queue.jobs, world.queue.shapes, world.options[BACKFILL]
    _mark_never_fitting(world, score, devices)
    arrival, now = wide(0), 0.0
    while True:
        coming = jobs[arrival].submit if arrival < jobs.size else np.inf
        upcoming = next_time(world.events)
        planned = world.reserved_from[0] if mode == CONSERVATIVE and world.queue.counts[WAITING] > 0 else np.inf
        if coming == np.inf and upcoming == np.inf and planned == np.inf:
            _close(world, now)
            return now
        now = min(coming, upcoming, planned)
        advance(
            world.series,
            world.machines,
            world.index,
            world.knobs,
            world.queue.counts[WAITING],
            world.options[RUNNING_COUNT],
            now,
        )
        decide = planned == now
        while next_time(world.events) == now:
            decide = True
            kind, number = pop(world.events)
            if kind == FINISH:
                _finish(world, number, now)
            elif kind == CORRECT:
                _correct(world, number, now)
            elif kind == STARVE:
                _starve(world, number)
        while arrival < jobs.size and jobs[arrival].submit == now:
            # Jobs submitted together are put in order before any of them starts.
            decide = decide or (arrival + 1 < jobs.size and jobs[arrival + 1].submit == now)
            if shapes[jobs[arrival].shape].never_fits == 1:
                jobs[arrival].outcome = NEVER_FITS
            else:
                decide = _enter(world, arrival, decide, now, order, score, devices) or decide
            arrival += 1
        if world.queue.counts[WAITING] > 0 and (decide or _look_again(world)):
            world.options[LOOK_ONLY] = not decide
            schedule_pass(world, now, score, devices)


@inlined
def _look_again(world: World) -> bool:
    """Return whether others may wait for something else now, though nobody can start who could not before.

    So it is under greedy skip when an arrival alone was started or put into the queue of a shape nobody waited with.
    """
    changed = world.ledger.state[CAUGHT_UP] != world.index.log_end[LOG_END] or world.ledger.state[NEW_SHAPES] > 0
    return changed and world.options[BACKFILL] == GREEDY and world.options[STARVING] == 0


@compiled
def _close(world: World, now: float) -> None:
    """Let the last bin of the series end with the state as it is."""
    end = world.series.clock[BEGIN] + world.series.values.shape[0] * world.series.clock[WIDTH]
    if end > now:
        advance(world.series, world.machines, world.index, world.knobs, wide(0), world.options[RUNNING_COUNT], end)


@inlined
def _enter(world: World, j: int, undecided: bool, now: float, order: Any, score: Any, devices: Any) -> bool:
    """Let job j in: started at once where nobody is before it, lost where nobody may wait, else queued.

    Returns whether a scheduling pass is needed because of it. `undecided`: a pass is coming anyway, so that others
    may go first.
    """
    mode = world.options[BACKFILL]
    s = wide(world.queue.jobs[j].shape)
    alone = world.queue.counts[WAITING] == 0
    # Without a release since the last pass, whoever waits still cannot start, so under greedy skip j goes next.
    greedy = mode == GREEDY and world.options[STARVING] == 0
    passable = greedy and world.queue.shapes[s].waiting == 0
    if mode == LOSS or (not undecided and (alone or passable)):
        single = world.queue.shapes[s].instances == 1
        if place_one(world, j, score, devices) if single else place(world, j, score, devices):
            begin(world, j, now)
            return False
        if mode == LOSS:
            world.queue.jobs[j].outcome = LOST
            return False
    q = queue_of(world, s)
    if world.queue.counts[WAITING] == 0:
        # Nobody waited whom the changes up to now could have helped.
        world.ledger.state[PASSED] = world.index.log_end[LOG_END]
    if mode != STRICT and world.queue.shapes[q].waiting > 0:
        note_arrival(world.ledger, world.queue.shapes, s)
    elif mode != STRICT:
        begin_waiting(world.ledger, world.queue.shapes, s)
        if world.options[ATTRIBUTE] != 0:
            # Its clocks stood still while nobody waited.
            blame(world.causes, world.queue.shapes, s, wide(world.queue.shapes[s].cause), now)
    if world.options[ATTRIBUTE] != 0:
        begin_wait(world.causes, world.queue.shapes, s, j, now)
    push(world.queue, q, j, order(world.queue.jobs, j, now, world.knobs))
    if world.max_wait[0] < np.inf:
        schedule(world.events, now + world.max_wait[0], STARVE, j)
    return not greedy


@inlined
def _finish(world: World, j: int, now: float) -> None:
    world.queue.jobs[j].outcome = FINISHED
    if world.queue.jobs[j].believed_end != now:
        # The plan relied on another end: make it anew.
        world.options[RESERVED_JOB] = -1
    discharge(world, j)


@compiled
def _correct(world: World, j: int, now: float) -> None:
    """Believe a job that outlives its prediction to run as long again.

    Tsafrir, Etsion and Feitelson, "Backfilling Using System-Generated Predictions", 2007, section 3.2.
    """
    job = world.queue.jobs[j]
    if job.outcome == FINISHED:
        return
    believe(world, j, now + max(now - job.start, 1.0))
    if job.believed_end < job.end:
        schedule(world.events, job.believed_end, CORRECT, j)
    world.options[RESERVED_JOB] = -1


@compiled
def _starve(world: World, j: int) -> None:
    """Let job j, if it still waits, go before all that have not waited as long."""
    job = world.queue.jobs[j]
    if job.outcome != WAITS:
        return
    q = queue_of(world, job.shape)
    remove(world.queue, q, j)
    push(world.queue, q, j, -np.inf)
    world.options[STARVING] += 1
    world.options[RESERVED_JOB] = -1


@compiled
def _mark_never_fitting(world: World, score: Any, devices: Any) -> None:
    """Mark shapes of which not even the empty cluster can hold a job."""
    jobs, shapes = world.queue.jobs, world.queue.shapes
    unknown = shapes.size
    for j in range(jobs.size):
        if unknown == 0:
            return
        s = wide(jobs[j].shape)
        if shapes[s].never_fits >= 0:
            continue
        unknown -= 1
        shapes[s].never_fits = not place(world, j, score, devices)
        if shapes[s].never_fits == 0:
            unplace(world, jobs[j].first_slot, jobs[j].first_slot + shapes[s].instances)
