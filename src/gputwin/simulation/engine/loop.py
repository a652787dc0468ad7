"""The event loop: arrivals and events in order of time, one scheduling pass after each instant's changes."""

from __future__ import annotations

from typing import Any

import numpy as np

from gputwin.simulation.engine.compiled import compiled, inlined
from gputwin.simulation.engine.fit.index import LOG_END
from gputwin.simulation.engine.fit.totals import CAUGHT_UP, NEW_SHAPES
from gputwin.simulation.engine.lifecycle import ends_now, enqueue, queue_of, start, stop
from gputwin.simulation.engine.placing.place import place, place_one
from gputwin.simulation.engine.prefetch import prefetch
from gputwin.simulation.engine.queue.jobs import WAITING, push, remove
from gputwin.simulation.engine.queue.recalculate import recalculate
from gputwin.simulation.engine.state.events import CORRECT, FINISH, STARVE, next_time, next_to_finish, pop, schedule
from gputwin.simulation.engine.state.lives import BY_FINISH, SHRUNK, STARTED, has_log_room
from gputwin.simulation.engine.state.outages import has_room_for_changes
from gputwin.simulation.engine.state.records import wide
from gputwin.simulation.engine.state.running import believe
from gputwin.simulation.engine.state.series import BEGIN, WIDTH, advance
from gputwin.simulation.engine.trials.undo import begin_for, undo
from gputwin.simulation.engine.world import (
    ARRIVAL,
    BUDGET,
    CONSERVATIVE,
    GREEDY,
    LOSS,
    LOST,
    NEVER_FITS,
    RUNS,
    WAITS,
    World,
)

ENDED, PAUSED, FULL_LOG, REACHED = range(4)
"""Why the loop returned: the run is over; its budget is spent; the log of segments or the heap is to be enlarged; nothing
more happens until the time at which it was to be left (World.until)."""

FEW = 16
"""Jobs: room is kept for at least so many that are submitted at one instant."""


def run(
    world: World,
    order: Any,
    promotion: Any,
    score: Any,
    devices: Any,
    claim: Any,
    rank: Any,
    crossing: Any,
    speed: Any,
    share: Any,
    turn: Any,
    gate: Any,
    schedule_pass: Any,
    handle: Any,
    settle: Any,
) -> int:
    """Run the world on from where it stands and return why it stopped; all of its state is in the world.

    `schedule_pass` starts who of the waiting jobs may start now, `handle` carries out the events that only runs with
    change have, and `settle` gives those who started their rates.
    """
    jobs, shapes, mode = world.queue.jobs, world.queue.shapes, world.settings[0].backfill
    arrival, now, left = world.loop[ARRIVAL], world.clock[0], world.loop[BUDGET]
    if left < 0:
        _mark_never_fitting(world, score, devices)
        left = -left
    while True:
        world.loop[ARRIVAL], world.clock[0] = arrival, now
        world.loop[BUDGET] = left
        if left == 0:
            return PAUSED
        left -= 1
        coming = jobs[arrival].submit if arrival < jobs.size else np.inf
        upcoming = next_time(world.events)
        if world.settings[0].changes != 0:
            if coming == np.inf and world.queue.counts[WAITING] + world.counters[0].running == 0:
                # Only nodes would go on failing.
                upcoming = np.inf
            elif not _has_room_for_an_instant(world, arrival):
                return FULL_LOG
        planned = world.reserved_from[0] if mode == CONSERVATIVE and world.queue.counts[WAITING] > 0 else np.inf
        soonest = min(coming, upcoming, planned)
        present = world.queue.counts[WAITING] + world.counters[0].running
        if soonest > world.until[0] and (soonest < np.inf or present > 0):
            return REACHED
        if soonest == np.inf:
            _close(world, now)
            return ENDED
        now = soonest
        advance(
            world.series,
            world.machines,
            world.index,
            world.knobs,
            world.queue.counts[WAITING],
            world.counters[0].running,
            now,
        )
        decide = planned == now
        while next_time(world.events) == now:
            kind, number = pop(world.events)
            _fetch_next(world)
            if kind == FINISH:
                if ends_now(world, number, now):
                    _fetch_place(world, number)
                    stop(world, number, now, wide(BY_FINISH))
                    decide = True
            elif kind == CORRECT:
                decide = _correct(world, number, now) or decide
            elif kind == STARVE:
                _starve(world, number)
                decide = True
            else:
                decide = True
                handle(world, kind, number, now, order, promotion, rank, crossing)
        while arrival < jobs.size and jobs[arrival].submit == now:
            # Jobs submitted together are put in order before any of them starts.
            decide = decide or (arrival + 1 < jobs.size and jobs[arrival + 1].submit == now)
            if shapes[jobs[arrival].shape].never_fits == 1:
                jobs[arrival].outcome = NEVER_FITS
            else:
                decide = _enter(world, arrival, decide, now, order, score, devices) or decide
            arrival += 1
        waiting = world.queue.counts[WAITING] > 0 or world.planned[0] > 0
        if waiting and (decide or _look_again(world)):
            world.counters[0].look_only = not decide
            if world.settings[0].recalculates != 0:
                recalculate(world, now, order)
            schedule_pass(world, now, order, promotion, claim, score, devices, turn, gate)
        if world.lives.counts[STARTED] + world.lives.counts[SHRUNK] > 0 or world.settings[0].neighbours != 0:
            settle(world, now, rank, crossing, speed, share, score, devices)


@inlined
def _fetch_next(world: World) -> None:
    """Have the records of the job that ends next fetched while this event is carried out."""
    j = next_to_finish(world.events)
    if j >= 0:
        prefetch(world.queue.jobs, j)
        if world.settings[0].changes != 0:
            prefetch(world.lives.records, j)


@inlined
def _fetch_place(world: World, j: int) -> None:
    """Have what says where the first instance of job j runs fetched, all of it at once."""
    i = world.queue.jobs[j].first_slot
    prefetch(world.slots, i)
    if world.settings[0].tracks != 0:
        prefetch(world.links, i)


@compiled
def _has_room_for_an_instant(world: World, arrival: int) -> bool:
    """Return whether the log and the heap have room for what one instant can bring."""
    jobs, together = world.queue.jobs, arrival + FEW
    # Mostly fewer come at once, and need not be counted.
    while together < jobs.size and jobs[together].submit == jobs[arrival].submit:
        together += 1
    present = world.queue.counts[WAITING] + world.counters[0].running + together - arrival
    room = world.events.count[0] + 4 * present + 64 < world.events.heap.size
    room = room and has_room_for_changes(world.outages, world.machines.nodes.size)
    return room and has_log_room(world.lives, world.counters[0].running)


@inlined
def _look_again(world: World) -> bool:
    """Return whether causes may have changed though nobody can start.

    So it is under greedy skip when an arrival alone was started or put into the queue of a shape nobody waited with.
    """
    changed = world.totals.state[CAUGHT_UP] != world.index.log_end[LOG_END] or world.totals.state[NEW_SHAPES] > 0
    return changed and world.settings[0].backfill == GREEDY and world.counters[0].starving == 0


@compiled
def _close(world: World, now: float) -> None:
    """Let the last bin of the series end with the state as it is."""
    end = world.series.clock[BEGIN] + world.series.values.shape[0] * world.series.clock[WIDTH]
    if end > now:
        advance(world.series, world.machines, world.index, world.knobs, wide(0), world.counters[0].running, end)


@inlined
def _enter(world: World, j: int, undecided: bool, now: float, order: Any, score: Any, devices: Any) -> bool:
    """Let job j in: started at once where nobody is before it, lost where nobody may wait, else queued.

    Returns whether a scheduling pass is needed because of it. `undecided`: a pass is coming anyway, so that others
    may go first.
    """
    mode = world.settings[0].backfill
    s = wide(world.queue.jobs[j].shape)
    alone = world.queue.counts[WAITING] == 0 and world.settings[0].fair == 0 and world.settings[0].planned == 0
    # Without a release since the last pass, whoever waits still cannot start, so under greedy skip j goes next.
    greedy = mode == GREEDY and world.counters[0].starving == 0
    passable = greedy and world.queue.shapes[s].waiting == 0
    if mode == LOSS or (not undecided and (alone or passable)):
        single = world.queue.shapes[s].instances == 1
        if place_one(world, j, score, devices) if single else place(world, j, score, devices):
            start(world, j, now)
            return False
        if mode == LOSS:
            world.queue.jobs[j].outcome = LOST
            return False
    enqueue(world, j, now, order(world.queue.jobs, j, now, world.knobs))
    if world.max_wait[0] < np.inf:
        schedule(world.events, now + world.max_wait[0], STARVE, j)
    return not greedy or world.settings[0].preempts != 0


@compiled
def _correct(world: World, j: int, now: float) -> bool:
    """Believe a job that outlives its prediction to run as long again; False where the event no longer agrees with it.

    Tsafrir, Etsion and Feitelson, "Backfilling Using System-Generated Predictions", 2007, section 3.2.
    """
    job = world.queue.jobs[j]
    if job.outcome != RUNS or job.believed_end > np.nextafter(now, np.inf):
        return False
    believe(world, j, now + max(now - job.start, 1.0))
    if job.believed_end < job.end:
        schedule(world.events, job.believed_end, CORRECT, j)
    world.counters[0].reserved_job = -1
    return True


@compiled
def _starve(world: World, j: int) -> None:
    """Let job j, if it still waits, go before all that have not waited as long."""
    job = world.queue.jobs[j]
    if job.outcome != WAITS:
        return
    q = queue_of(world, job.shape)
    remove(world.queue, q, j)
    push(world.queue, q, j, -np.inf)
    world.counters[0].starving += 1
    world.counters[0].reserved_job = -1


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
        begin_for(world, s, score)
        fits = place(world, j, score, devices)
        undo(world.index, world.machines)
        shapes[s].never_fits = not fits
        for i in range(jobs[j].first_slot, jobs[j].first_slot + shapes[s].instances):
            world.slots[i].node = -1
