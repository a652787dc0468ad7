"""Passes in which a job that does not fit may take the place of running jobs that rank behind it.

Running jobs are kept in order of rank, by the preemption rule. A job claims what is held by jobs of a rank above its claim.
They are taken back on trial, the highest rank first, until the job fits; then those that need not go are spared, the
lowest rank first. Only then are the others stopped and put back into the queue. If the job does not fit even so, nothing
is changed.
"""

from __future__ import annotations

from typing import Any

from gputwin.simulation.engine.attribution.causes import blame_head
from gputwin.simulation.engine.attribution.waiting import end_pass, reason
from gputwin.simulation.engine.changes.handle import wait_again
from gputwin.simulation.engine.changes.sizes import shrink_for
from gputwin.simulation.engine.compiled import compiled, inlined
from gputwin.simulation.engine.fit.index import FULL, room_on, touch
from gputwin.simulation.engine.fit.room import enough_in_all
from gputwin.simulation.engine.fit.totals import NOBODY
from gputwin.simulation.engine.lifecycle import start_waiting, stop
from gputwin.simulation.engine.placing.place import all_fit, fits, place
from gputwin.simulation.engine.queue.jobs import LISTED, before, first, last, previous
from gputwin.simulation.engine.queue.shape_tree import ANYTHING
from gputwin.simulation.engine.queue.startable import lacking
from gputwin.simulation.engine.state.lives import BY_PREEMPTION, FOR, RUNNING_ROOT, seconds_left
from gputwin.simulation.engine.state.records import UP, change, wide
from gputwin.simulation.engine.world import World

_OUT, _IN = 0, 1
"""What a shape's `reach` says: whether it is among the candidates of the present pass."""


def strict_preemptive_pass(
    world: World, now: float, order: Any, promotion: Any, claim: Any, score: Any, devices: Any, turn: Any, gate: Any
) -> None:
    """Start jobs in order until one neither fits nor can make room; nobody overtakes it."""
    while True:
        j = first(world.queue, wide(0))
        if j < 0:
            return
        placed = fits(world, wide(world.queue.jobs[j].shape)) and place(world, j, score, devices)
        if not placed and make_room(world, j, now, order, promotion, claim, score, devices):
            placed = place(world, j, score, devices)
        if not placed:
            if world.settings[0].attributes != 0:
                blame_head(world.causes, j, reason(world, wide(world.queue.jobs[j].shape)), now)
            return
        start_waiting(world, j, now)


def greedy_preemptive_pass(
    world: World, now: float, order: Any, promotion: Any, claim: Any, score: Any, devices: Any, turn: Any, gate: Any
) -> None:
    """Start every job that fits or can make room, in order; others are passed over."""
    count = _candidates(world, now, claim)
    candidates, shapes, jobs = world.queue.candidates, world.queue.shapes, world.queue.jobs
    while count > 0:
        at, j = 0, first(world.queue, candidates[0])
        for k in range(1, count):
            other = first(world.queue, candidates[k])
            if before(jobs, other, j):
                at, j = k, other
        s = wide(candidates[at])
        placed = lacking(world, s) == ANYTHING and place(world, j, score, devices)
        if not placed and make_room(world, j, now, order, promotion, claim, score, devices):
            placed = place(world, j, score, devices)
            count = _add_candidates(world, count)
        if placed:
            start_waiting(world, j, now)
            if shapes[s].waiting > 0:
                continue
        # What does not fit now will not fit later in this pass either: it may claim whatever a later job may.
        count -= 1
        candidates[at] = candidates[count]
        shapes[s].reach = _OUT
        if not placed:
            shapes[s].tried = world.counters[0].passes
    end_pass(world, NOBODY, now)


@inlined
def _claim(world: World, j: int, now: float, claim: Any) -> float:
    """Return the claim of the waiting job j; while it is asked, `believed_end` is when it would end if it started now."""
    job = world.queue.jobs[j]
    work = max(job.predicted - job.done, 0.0)
    job.believed_end = now + seconds_left(world.lives, world.queue.jobs, j, work)
    return claim(world.queue.jobs, j, now, world.knobs)


@compiled
def _candidates(world: World, now: float, claim: Any) -> int:
    """Collect the shapes that have room or may claim some; return their number."""
    queue, count = world.queue, 0
    world.counters[0].passes += 1
    worst = last(queue.jobs, world.lives.counts[RUNNING_ROOT])
    for k in range(queue.counts[LISTED]):
        s = wide(queue.listed[k])
        shape = queue.shapes[s]
        may = world.settings[0].elastic != 0 or lacking(world, s) == ANYTHING
        if not may and worst >= 0:
            may = _claim(world, first(queue, s), now, claim) < queue.jobs[worst].key
        shape.reach = _IN if may else _OUT
        if may:
            queue.candidates[count] = s
            count += 1
    return count


@compiled
def _add_candidates(world: World, count: int) -> int:
    """Add the shapes that have room now though they had none, and those of whoever had to yield; return the number."""
    queue, victims = world.queue, world.lives.victims
    for k in range(victims[0] + queue.counts[LISTED]):
        yielded = k < victims[0]
        s = wide(queue.jobs[victims[k + 1]].shape if yielded else queue.listed[k - victims[0]])
        shape = queue.shapes[s]
        if shape.reach == _IN or shape.tried == world.counters[0].passes or shape.waiting == 0:
            continue
        if yielded or lacking(world, s) == ANYTHING:
            queue.candidates[count] = s
            shape.reach = _IN
            count += 1
    return count


@inlined
def _shift(world: World, j: int, sign: int, told: bool) -> None:
    """Free (sign -1) or take again (sign 1) what the running job j holds, on trial; `told`: the index is to know."""
    first_slot = world.queue.jobs[j].first_slot
    for i in range(first_slot, first_slot + world.queue.shapes[world.queue.jobs[j].shape].instances):
        slot = world.slots[i]
        n = wide(slot.node)
        if world.machines.nodes[n].state == UP:
            change(world.machines, world.requests, wide(slot.request), n, slot.devices, wide(sign))
            if told:
                touch(world.index, world.machines, n, sign < 0)


@compiled
def _tell(world: World, j: int) -> None:
    """Let the index know of the nodes of job j, which was freed on trial."""
    first_slot = world.queue.jobs[j].first_slot
    for i in range(first_slot, first_slot + world.queue.shapes[world.queue.jobs[j].shape].instances):
        touch(world.index, world.machines, wide(world.slots[i].node), True)


@compiled
def _node_with_room(world: World, r: int, v: int) -> int:
    """Return a node of the freed job v on which an instance of r fits; -1 for none."""
    first_slot = world.queue.jobs[v].first_slot
    for i in range(first_slot, first_slot + world.queue.shapes[world.queue.jobs[v].shape].instances):
        n = wide(world.slots[i].node)
        if room_on(world.machines, world.requests, world.index.allowed, r, n, FULL) > 0:
            return n
    return wide(-1)


@compiled
def make_room(
    world: World, j: int, now: float, order: Any, promotion: Any, claim: Any, score: Any, devices: Any
) -> bool:
    """Make room for job j; False, and no change, if it cannot be made.

    Running jobs are shrunk, where they can be; else those of a rank above the claim of job j are stopped.
    """
    if world.settings[0].elastic != 0:
        world.lives.victims[0] = 0
        if shrink_for(world, j, now, score, devices):
            return True
    jobs, victims, root = world.queue.jobs, world.lives.victims, world.lives.counts[RUNNING_ROOT]
    limit = _claim(world, j, now, claim)
    shape = world.queue.shapes[jobs[j].shape]
    single = shape.instances == 1
    r = wide(world.groups[shape.first_group].request)
    count, fitting, node, told = 0, False, wide(-1), False
    v = last(jobs, root)
    while v >= 0 and jobs[v].key > limit and not fitting:
        count += 1
        victims[count] = v
        _shift(world, v, -1, told)
        if single:
            node = _node_with_room(world, r, v)
            fitting = node >= 0
        elif told or enough_in_all(world.machines, world.requests, world.groups, shape, world.index.allowed):
            if not told:
                # Before, there was too little in all: nobody looked for places.
                for k in range(1, count + 1):
                    _tell(world, wide(victims[k]))
                told = True
            fitting = all_fit(world, j, score, devices)
        v = previous(jobs, root, v)
    for k in range(count, 0, -1):
        v = wide(victims[k])
        _shift(world, v, 1, told)
        if fitting:
            if single:
                still = room_on(world.machines, world.requests, world.index.allowed, r, node, FULL) > 0
            else:
                still = all_fit(world, j, score, devices)
            if not still:
                _shift(world, v, -1, told)
                victims[k] = -1 - v
    if not fitting:
        victims[0] = 0
        return False
    kept = 0
    for k in range(1, count + 1):
        if victims[k] < 0:
            v = wide(-1 - victims[k])
            _shift(world, v, 1, told)
            kept += 1
            victims[kept] = v
    victims[0] = kept
    world.lives.counts[FOR] = j
    for k in range(1, kept + 1):
        v = wide(victims[k])
        stop(world, v, now, wide(BY_PREEMPTION))
        wait_again(world, v, now, order, promotion)
    return True
