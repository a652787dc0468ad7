"""How fast jobs run, settled once at the end of each instant for who started and for whoever has other neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np

from gputwin.simulation.engine.changes.sizes import grow_back
from gputwin.simulation.engine.compiled import compiled
from gputwin.simulation.engine.fit.index import LOG_END
from gputwin.simulation.engine.lifecycle import enter_rank
from gputwin.simulation.engine.state.events import CORRECT, CROSS, FINISH, schedule
from gputwin.simulation.engine.state.lives import (
    BY_RATE,
    SETTLED,
    SHRUNK,
    STARTED,
    log_segment,
    progress,
    seconds_left,
)
from gputwin.simulation.engine.state.records import wide
from gputwin.simulation.engine.state.running import believe
from gputwin.simulation.engine.world import IN_RACK, RUNS, World


def settle_nothing(
    world: World, now: float, rank: Any, crossing: Any, speed: Any, share: Any, score: Any, devices: Any
) -> None:
    """Do nothing: every job runs at full speed to its end."""


def settle_rates(
    world: World, now: float, rank: Any, crossing: Any, speed: Any, share: Any, score: Any, devices: Any
) -> None:
    """Give each job that started its rate and its end, and whoever has other neighbours now a new one."""
    counts = world.lives.counts
    if counts[SHRUNK] > 0:
        grow_back(world, now, score, devices)
    for k in range(counts[STARTED]):
        j = wide(world.lives.started[k])
        world.lives.records[j].listed = 0
        if world.queue.jobs[j].outcome == RUNS:
            if world.settings[0].rated != 0:
                _set_rate(world, j, now, speed, share)
            _time(world, j, now)
            if world.settings[0].ranked != 0:
                enter_rank(world, j, rank(world.queue.jobs, j, now, world.knobs))
                change = crossing(world.queue.jobs, j, now, world.knobs)
                if change < np.inf:
                    schedule(world.events, change, CROSS, j)
    counts[STARTED] = 0
    if world.settings[0].neighbours != 0:
        _settle_neighbours(world, now, rank, speed, share)
    counts[SETTLED] = world.index.log_end[LOG_END]


@compiled
def _settle_neighbours(world: World, now: float, rank: Any, speed: Any, share: Any) -> None:
    index = world.index
    end, size = index.log_end[LOG_END], index.log.size
    first = max(world.lives.counts[SETTLED], end - size)
    everywhere = end - world.lives.counts[SETTLED] > size
    for k in range(0 if everywhere else first, world.machines.nodes.size if everywhere else end):
        n = wide(k) if everywhere else wide(index.log[k & (size - 1)])
        if everywhere or k == first or n != index.log[(k - 1) & (size - 1)]:
            if world.settings[0].neighbours == IN_RACK and not everywhere:
                _settle_rack(world, n, now, rank, speed, share)
            else:
                _settle_node(world, n, now, rank, speed, share)


@compiled
def _settle_rack(world: World, n: int, now: float, rank: Any, speed: Any, share: Any) -> None:
    """Give the jobs in the rack of node n, whose nodes are in sequence, the rates that go with their neighbours."""
    nodes, first = world.machines.nodes, n
    while first > 0 and nodes[first - 1].rack == nodes[n].rack:
        first -= 1
    while first < nodes.size and nodes[first].rack == nodes[n].rack:
        _settle_node(world, wide(first), now, rank, speed, share)
        first += 1


@compiled
def _settle_node(world: World, n: int, now: float, rank: Any, speed: Any, share: Any) -> None:
    """Give the jobs on node n the rates that go with their neighbours."""
    # A node's list is in order of believed ends, which change with rates: its jobs are listed first.
    listed, count, last = world.freed, 0, wide(-1)
    i = wide(world.machines.nodes[n].first_slot)
    while i >= 0:
        j = wide(world.links[i].job)
        if j != last:
            listed[count] = j
            count += 1
        last, i = j, wide(world.links[i].next)
    for k in range(count):
        j = wide(listed[k])
        if _set_rate(world, j, now, speed, share):
            _time(world, j, now)
            if world.settings[0].ranked != 0:
                enter_rank(world, j, rank(world.queue.jobs, j, now, world.knobs))


@compiled
def _set_rate(world: World, j: int, now: float, speed: Any, share: Any) -> bool:
    """Ask for the rate of job j and return whether it has changed."""
    life, of, jobs = world.lives.records[j], world.lives.factors[j], world.queue.jobs
    model, spread, neighbours = speed(
        jobs, world.queue.shapes, world.slots, world.machines, world.requests, world.speeds, world.knobs, j
    )
    neighbours *= share(
        jobs, world.queue.shapes, world.slots, world.machines, world.requests, world.speeds, world.knobs, j
    )
    size = world.lives.forms[jobs[j].shape].speed
    uneven = model != 1.0 or spread != 1.0 or neighbours != 1.0 or size != 1.0
    same = uneven == (life.uneven != 0)
    if same and uneven:
        same = model == of.model and spread == of.spread and neighbours == of.neighbours and size == of.size
    if same:
        return False
    if jobs[j].start < now:
        progress(world.lives, jobs, j, now)
        instances = wide(world.queue.shapes[jobs[j].shape].instances)
        log_segment(world.lives, jobs, world.slots, instances, j, now, wide(BY_RATE))
        jobs[j].start = now
    of.model, of.spread, of.neighbours, of.size = model, spread, neighbours, size
    life.rate, life.uneven = model * spread * neighbours * size, uneven
    return True


@compiled
def _time(world: World, j: int, now: float) -> None:
    """Work out when job j ends, and is believed to end, at its present rate."""
    jobs, job, lives = world.queue.jobs, world.queue.jobs[j], world.lives
    job.end = now + seconds_left(lives, jobs, j, job.duration - job.done)
    believed = now + seconds_left(lives, jobs, j, max(job.predicted - job.done, 0.0))
    if believed != job.believed_end:
        world.counters[0].reserved_job = -1
        if world.settings[0].tracks != 0:
            believe(world, j, believed)
        job.believed_end = believed
    if job.end < np.inf:
        schedule(world.events, job.end, FINISH, j)
    if believed < job.end and world.settings[0].corrects != 0:
        schedule(world.events, believed, CORRECT, j)
