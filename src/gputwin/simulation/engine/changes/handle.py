"""What happens to jobs besides their arrival and end: nodes fail and come back, running jobs lose their rank."""

from __future__ import annotations

from typing import Any

import numpy as np

from gputwin.simulation.engine.compiled import compiled
from gputwin.simulation.engine.fit.index import touch
from gputwin.simulation.engine.lifecycle import enter_rank, queue_of, relax, requeue, stop
from gputwin.simulation.engine.queue.jobs import push, remove
from gputwin.simulation.engine.state.events import (
    BOOT,
    CROSS,
    DRAIN,
    NODE_DOWN,
    NODE_UP,
    PROMOTE,
    RELAX,
    YIELD,
    schedule,
)
from gputwin.simulation.engine.state.lives import BY_DRAIN, BY_FAILURE, BY_PREEMPTION, FOR, MOST_STOPS, progress
from gputwin.simulation.engine.state.outages import drained, draw_seconds, set_state
from gputwin.simulation.engine.state.records import BOOTING, DOWN, DRAINING, OFF, UP, wide
from gputwin.simulation.engine.state.running import first_to_end
from gputwin.simulation.engine.world import GAVE_UP, RUNS, WAITS, World


def handle_nothing(
    world: World, kind: int, number: int, now: float, order: Any, promotion: Any, rank: Any, crossing: Any
) -> None:
    """Do nothing: there are no such events."""


def handle_change(
    world: World, kind: int, number: int, now: float, order: Any, promotion: Any, rank: Any, crossing: Any
) -> None:
    """Carry out one event of a kind that only runs with change have."""
    if kind == NODE_DOWN:
        _fail(world, number, now, order, promotion)
    elif kind == NODE_UP:
        _come_back(world, number, now)
    elif kind == DRAIN:
        _drain(world, number, now)
    elif kind == BOOT:
        _boot(world, number, now)
    elif kind == YIELD:
        _yield(world, number, now, order, promotion)
    elif kind == CROSS:
        _cross(world, number, now, rank, crossing)
    elif kind == PROMOTE:
        _promote(world, number, now, order)
    elif kind == RELAX:
        relax(world, number, now, order)


@compiled
def wait_again(world: World, j: int, now: float, order: Any, promotion: Any) -> None:
    """Put job j, which was stopped, back into the queue, unless it was stopped too often."""
    job = world.queue.jobs[j]
    if world.lives.records[j].stops >= world.lives.costs[MOST_STOPS]:
        job.outcome = GAVE_UP
        job.end = now
        return
    requeue(world, j, now, order)
    patience = promotion(world.queue.jobs, j, now, world.knobs)
    if patience < np.inf:
        world.lives.records[j].promoted_at = now + patience
        schedule(world.events, now + patience, PROMOTE, j)


@compiled
def _fail(world: World, n: int, now: float, order: Any, promotion: Any) -> None:
    """Stop what runs on node n; it is repaired after a time that is drawn, or off if it belongs to a pool."""
    state, pooled = world.machines.nodes[n].state, world.outages.pooled[n]
    if state not in (UP, DRAINING) and not (pooled and state == BOOTING):
        return
    if pooled and world.outages.due[n] != now:
        return
    why = BY_DRAIN if state == DRAINING else BY_FAILURE
    set_state(world.outages, world.machines, world.series.capacity, n, OFF if pooled else DOWN, now)
    j = first_to_end(world, n)
    while j >= 0:
        stop(world, j, now, wide(why))
        wait_again(world, j, now, order, promotion)
        j = first_to_end(world, n)
    touch(world.index, world.machines, n, False)
    world.counters[0].reserved_job = -1
    if why == BY_FAILURE and not pooled:
        repair = draw_seconds(world.outages, n, wide(1))
        if repair < np.inf:
            schedule(world.events, now + repair, NODE_UP, n)


@compiled
def _yield(world: World, j: int, now: float, order: Any, promotion: Any) -> None:
    """Stop the running job j, since the plan gives its place to others."""
    if world.queue.jobs[j].outcome == RUNS:
        world.lives.counts[FOR] = -1
        stop(world, j, now, wide(BY_PREEMPTION))
        wait_again(world, j, now, order, promotion)


@compiled
def _boot(world: World, n: int, now: float) -> None:
    """Let node n of a pool, which is off, start; it is up when it is due."""
    if world.machines.nodes[n].state != OFF:
        return
    set_state(world.outages, world.machines, world.series.capacity, n, BOOTING, now)
    schedule(world.events, world.outages.due[n], NODE_UP, n)


@compiled
def _come_back(world: World, n: int, now: float) -> None:
    if world.outages.pooled[n] and (world.machines.nodes[n].state != BOOTING or world.outages.due[n] != now):
        return
    set_state(world.outages, world.machines, world.series.capacity, n, UP, now)
    touch(world.index, world.machines, n, True)
    world.counters[0].reserved_job = -1
    failure = draw_seconds(world.outages, n, wide(0))
    if failure < np.inf:
        schedule(world.events, now + failure, NODE_DOWN, n)
    world.outages.due[n] = now + failure


@compiled
def _drain(world: World, n: int, now: float) -> None:
    """Let node n take no more jobs; it is down once the last has left."""
    if world.machines.nodes[n].state != UP:
        return
    set_state(world.outages, world.machines, world.series.capacity, n, DRAINING, now)
    drained(world.outages, world.machines, world.series.capacity, n, now)
    touch(world.index, world.machines, n, False)
    world.counters[0].reserved_job = -1


@compiled
def _cross(world: World, j: int, now: float, rank: Any, crossing: Any) -> None:
    """Rank the running job j anew, if the event still agrees with it."""
    job = world.queue.jobs[j]
    if job.outcome != RUNS:
        return
    progress(world.lives, world.queue.jobs, j, now)
    new = rank(world.queue.jobs, j, now, world.knobs)
    if new != job.key:
        enter_rank(world, j, new)
        change = crossing(world.queue.jobs, j, now, world.knobs)
        if change < np.inf:
            schedule(world.events, change, CROSS, j)


@compiled
def _promote(world: World, j: int, now: float, order: Any) -> None:
    """Forget the service of job j, if it has waited for so long since it was stopped."""
    job, life = world.queue.jobs[j], world.lives.records[j]
    if job.outcome != WAITS or life.promoted_at != now:
        return
    job.attained = 0.0
    q = queue_of(world, wide(job.shape))
    remove(world.queue, q, j)
    push(world.queue, q, j, order(world.queue.jobs, j, now, world.knobs))
