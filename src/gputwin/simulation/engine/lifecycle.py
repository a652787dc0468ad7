"""A job's life: `enqueue`, `start`, `stop` and `resize` are the only code that changes who holds what.

    submit -> enqueue -> start -> [rate changes] -> stop(finished)
                 ^                                    |
                 +------ stop(preempted | failed | drained)

A finish event is valid only if it still agrees with its job (`ends_now`), so nothing is ever cancelled.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gputwin.simulation.engine.attribution.causes import CAUSES, begin_wait, blame, end_wait
from gputwin.simulation.engine.attribution.waiting import end_waiting
from gputwin.simulation.engine.compiled import compiled, inlined
from gputwin.simulation.engine.fit.index import LOG_END
from gputwin.simulation.engine.fit.totals import PASSED, begin_waiting, note_arrival
from gputwin.simulation.engine.queue.jobs import WAITING, insert, push, remove, take_out
from gputwin.simulation.engine.state.events import CORRECT, FINISH, RELAX, schedule
from gputwin.simulation.engine.state.lives import (
    BY_DRAIN,
    BY_FINISH,
    BY_PREEMPTION,
    BY_RESIZE,
    INSTANCES,
    RESIZE,
    RESTART,
    RUNNING_ROOT,
    SAVE,
    SAVE_LATER,
    SAVE_WHEN_DRAINED,
    SAVE_WHEN_PREEMPTED,
    SHRUNK,
    STARTED,
    log_segment,
    progress,
    seconds_left,
)
from gputwin.simulation.engine.state.records import wide
from gputwin.simulation.engine.state.running import discharge, enlist, release, take_up
from gputwin.simulation.engine.state.tenants import charge, note_waiting
from gputwin.simulation.engine.world import FINISHED, RUNS, STRICT, WAITS, World


@inlined
def queue_of(world: World, s: int) -> int:
    """Return the queue that jobs of shape s wait in: one for all under strict order, else one per shape."""
    return 0 if world.settings[0].backfill == STRICT else s


@inlined
def enqueue(world: World, j: int, now: float, key: float) -> None:
    """Let job j wait from now on."""
    s = wide(world.queue.jobs[j].shape)
    q = queue_of(world, s)
    if world.queue.counts[WAITING] == 0:
        # Nobody waited whom the changes up to now could have helped.
        world.totals.state[PASSED] = world.index.log_end[LOG_END]
    if world.settings[0].backfill != STRICT and world.queue.shapes[q].waiting > 0:
        note_arrival(world.totals, world.queue.shapes, s)
    elif world.settings[0].backfill != STRICT:
        begin_waiting(world.totals, world.queue.shapes, s)
        if world.settings[0].attributes != 0:
            # Its clocks stood still while nobody waited.
            blame(world.causes, world.queue.shapes, s, wide(world.queue.shapes[s].cause), now)
    if world.settings[0].attributes != 0:
        begin_wait(world.causes, world.queue.shapes, s, j, now)
    if world.settings[0].fair != 0:
        note_waiting(world, j)
    push(world.queue, q, j, key)
    if world.settings[0].delays != 0 and world.lives.forms[s].patience < np.inf:
        schedule(world.events, now + world.lives.forms[s].patience, RELAX, j)


@inlined
def start(world: World, j: int, now: float) -> None:
    """Start job j, which has just been placed."""
    job = world.queue.jobs[j]
    job.start = now
    job.outcome = RUNS
    if world.settings[0].fair != 0:
        charge(world, j, wide(1), now)
    if world.settings[0].changes != 0:
        _resume(world, j, now)
        return
    job.end = now + job.duration
    job.believed_end = now + job.predicted
    enlist(world, j)
    if job.end < np.inf:
        schedule(world.events, job.end, FINISH, j)
    if job.believed_end < job.end and world.settings[0].corrects != 0:
        schedule(world.events, job.believed_end, CORRECT, j)


@inlined
def _leave_queue(world: World, j: int, now: float) -> None:
    """Take the waiting job j out of its queue, and charge its wait to causes."""
    job = world.queue.jobs[j]
    q = queue_of(world, wide(job.shape))
    remove(world.queue, q, j)
    if world.settings[0].backfill != STRICT and world.queue.shapes[q].waiting == 0:
        end_waiting(world, q)
    world.counters[0].starving -= job.key == -np.inf
    if world.settings[0].attributes != 0:
        since = world.lives.records[j].queued if world.settings[0].changes != 0 else job.submit
        end_wait(world.causes, world.queue.shapes, wide(job.shape), j, since, now)
    if world.settings[0].fair != 0:
        world.turns.waiting[job.tenant] -= 1


@compiled
def start_waiting(world: World, j: int, now: float) -> None:
    """Start job j, which has just been placed, out of the queue."""
    _leave_queue(world, j, now)
    start(world, j, now)


@compiled
def relax(world: World, j: int, now: float, order: Any) -> None:
    """Let job j, if it has waited for so long, go on waiting in its next form: its instances may be further apart."""
    job, life = world.queue.jobs[j], world.lives.records[j]
    form = world.lives.forms[job.shape]
    if job.outcome != WAITS or life.queued + form.patience != now:
        return
    _leave_queue(world, j, now)
    life.waited += now - life.queued
    life.queued = now
    _keep_causes(world, j)
    job.shape = form.next
    requeue(world, j, now, order)


@inlined
def _list_for_rates(world: World, j: int) -> None:
    """Have the rate of job j settled at the end of the instant."""
    lives = world.lives
    if lives.records[j].listed == 0:
        lives.records[j].listed = 1
        lives.started[lives.counts[STARTED]] = j
        lives.counts[STARTED] += 1


@compiled
def _resume(world: World, j: int, now: float) -> None:
    """Begin a segment of job j; its rate, and with it its end, is settled at the end of the instant (`rates.py`)."""
    job, life = world.queue.jobs[j], world.lives.records[j]
    if np.isnan(life.first_start):
        life.first_start = now
    life.waited += now - life.queued
    life.since = now
    life.rate, life.uneven = 1.0, 0
    job.end = np.inf
    job.believed_end = now + seconds_left(world.lives, world.queue.jobs, j, max(job.predicted - job.done, 0.0))
    enlist(world, j)
    _list_for_rates(world, j)
    world.lives.counts[INSTANCES] += world.queue.shapes[job.shape].instances


@inlined
def ends_now(world: World, j: int, now: float) -> bool:
    """Return whether a finish event of job j at `now` still agrees with it."""
    return world.queue.jobs[j].end == now and world.queue.jobs[j].outcome == RUNS


@inlined
def stop(world: World, j: int, now: float, why: int) -> None:
    """Free what job j holds; why is a reason of `lives.py`. Unless it has finished, it is not in any queue then."""
    job = world.queue.jobs[j]
    if job.believed_end != now or why != BY_FINISH:
        # The plan relied on another end: make it anew.
        world.counters[0].reserved_job = -1
    if world.settings[0].changes != 0:
        _end_segment(world, j, now, why)
    if why == BY_FINISH:
        job.outcome = FINISHED
    if world.settings[0].fair != 0:
        charge(world, j, wide(-1), now)
    discharge(world, j, now)
    if world.settings[0].elastic != 0:
        # When it starts again, it asks for its full size.
        full = world.lives.records[j].full_shape
        shrunk = world.queue.shapes[job.shape].instances < world.queue.shapes[full].instances
        world.lives.counts[SHRUNK] -= shrunk
        job.shape = full


@compiled
def _end_segment(world: World, j: int, now: float, why: int) -> None:
    """Bring job j's entry of work and costs up to its stop."""
    lives, job = world.lives, world.queue.jobs[j]
    life, instances = lives.records[j], wide(world.queue.shapes[job.shape].instances)
    progress(lives, world.queue.jobs, j, now)
    log_segment(lives, world.queue.jobs, world.slots, instances, j, now, why)
    lives.counts[INSTANCES] -= instances
    if life.entered != 0:
        life.entered = 0
        lives.counts[RUNNING_ROOT] = take_out(world.queue.jobs, lives.counts[RUNNING_ROOT], j)
    if why == BY_FINISH:
        job.done = job.duration
        return
    life.stops += 1
    job.outcome = WAITS
    job.end = np.inf
    life.queued = now
    life.overhead, life.saving, life.rate = lives.costs[RESTART], 0, 1.0
    saves = why == BY_PREEMPTION and lives.costs[SAVE_WHEN_PREEMPTED] != 0.0
    if saves or (why == BY_DRAIN and lives.costs[SAVE_WHEN_DRAINED] != 0.0):
        life.safe = job.done
        life.overhead += lives.costs[SAVE_LATER] if why == BY_PREEMPTION else lives.costs[SAVE]
    # Less than nothing is safe before the first of staggered checkpoints.
    life.lost += job.done - max(life.safe, 0.0)
    job.done = max(life.safe, 0.0)
    _keep_causes(world, j)


@inlined
def _keep_causes(world: World, j: int) -> None:
    """Add the causes of job j's last wait, which has ended, to those of its earlier ones."""
    if world.settings[0].attributes != 0:
        for c in range(CAUSES):
            world.lives.earlier[j, c] += world.causes.share[j, c]
            world.causes.share[j, c] = 0.0


@compiled
def resize(world: World, j: int, target: int, now: float) -> None:
    """Let the running job j go on with the instances of shape `target`: the first of those it has, or with those added.

    What is added has been placed already.
    """
    lives, job, shapes = world.lives, world.queue.jobs[j], world.queue.shapes
    life, size, wanted = lives.records[j], wide(shapes[job.shape].instances), wide(shapes[target].instances)
    full = wide(shapes[life.full_shape].instances)
    progress(lives, world.queue.jobs, j, now)
    if job.start < now:
        log_segment(lives, world.queue.jobs, world.slots, size, j, now, wide(BY_RESIZE))
    lives.counts[INSTANCES] += wanted - size
    if world.settings[0].elastic != 0:
        lives.counts[SHRUNK] += (wanted < full) - (size < full)
    if wanted < size:
        release(world, job.first_slot + wanted, job.first_slot + size, now)
    else:
        take_up(world, j, job.first_slot + size, job.first_slot + wanted)
    job.shape = target
    job.start = now
    if life.overhead == 0.0:
        life.overhead = lives.costs[RESIZE]
    _list_for_rates(world, j)


@compiled
def requeue(world: World, j: int, now: float, order: Any) -> None:
    """Let job j, which was stopped, wait again."""
    enqueue(world, j, now, order(world.queue.jobs, j, now, world.knobs))


@compiled
def enter_rank(world: World, j: int, rank: float) -> None:
    """Enter the running job j into the tree of running jobs by rank; the highest rank is the first to yield."""
    job, life = world.queue.jobs[j], world.lives.records[j]
    counts = world.lives.counts
    if life.entered != 0:
        if job.key == rank:
            return
        counts[RUNNING_ROOT] = take_out(world.queue.jobs, counts[RUNNING_ROOT], j)
    life.entered = 1
    job.key = rank
    counts[RUNNING_ROOT] = insert(world.queue.jobs, counts[RUNNING_ROOT], j)
