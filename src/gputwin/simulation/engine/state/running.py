"""Who runs where: the list of running jobs, and for each node the instances on it."""

from __future__ import annotations

import numpy as np

from gputwin.simulation.engine.compiled import compiled, inlined
from gputwin.simulation.engine.fit.index import touch
from gputwin.simulation.engine.state.outages import drained, hide
from gputwin.simulation.engine.state.records import DRAINING, UP, change, wide
from gputwin.simulation.engine.world import BY_END, STALE, World


@inlined
def enlist(world: World, j: int) -> None:
    """Note that job j runs where its slots say."""
    world.counters[0].running += 1
    if world.settings[0].tracks == 0:
        return
    job, links = world.queue.jobs[j], world.links
    job.running_at = world.counters[0].running - 1
    world.running[job.running_at] = j
    for i in range(job.first_slot, job.first_slot + world.queue.shapes[job.shape].instances):
        request = world.requests[world.slots[i].request]
        links[i].job, links[i].end, links[i].gpu_milli = j, job.believed_end, request.gpu_milli * request.gpu_count
        _link(world, i)


@inlined
def discharge(world: World, j: int, now: float) -> None:
    """Free what job j holds and forget that it runs; where it ran stays on record."""
    job = world.queue.jobs[j]
    end = job.first_slot + world.queue.shapes[job.shape].instances
    for i in range(job.first_slot, end):
        slot = world.slots[i]
        n = wide(slot.node)
        change(world.machines, world.requests, wide(slot.request), n, slot.devices, wide(-1))
        if world.machines.nodes[n].state != UP:
            hide(world.outages, world.machines, world.series.capacity, n, False)
        touch(world.index, world.machines, n, True)
    world.counters[0].running -= 1
    if world.settings[0].tracks == 0:
        return
    last = world.running[world.counters[0].running]
    world.running[job.running_at] = last
    world.queue.jobs[last].running_at = job.running_at
    for i in range(job.first_slot, end):
        _unlink(world, i)
        n = wide(world.slots[i].node)
        if world.machines.nodes[n].state == DRAINING:
            drained(world.outages, world.machines, world.series.capacity, n, now)


@compiled
def release(world: World, begin: int, end: int, now: float) -> None:
    """Free the instances in slots begin..end of a job that runs on."""
    for i in range(begin, end):
        n = wide(world.slots[i].node)
        change(world.machines, world.requests, wide(world.slots[i].request), n, world.slots[i].devices, wide(-1))
        if world.machines.nodes[n].state != UP:
            hide(world.outages, world.machines, world.series.capacity, n, False)
        touch(world.index, world.machines, n, True)
        _unlink(world, i)
        if world.machines.nodes[n].state == DRAINING:
            drained(world.outages, world.machines, world.series.capacity, n, now)


@compiled
def take_up(world: World, j: int, begin: int, end: int) -> None:
    """Note that job j, which runs, has instances in slots begin..end too."""
    for i in range(begin, end):
        request = world.requests[world.slots[i].request]
        world.links[i].job, world.links[i].end = j, world.queue.jobs[j].believed_end
        world.links[i].gpu_milli = request.gpu_milli * request.gpu_count
        _link(world, i)


@compiled
def believe(world: World, j: int, end: float) -> None:
    """Believe from now on that the running job j ends at `end`."""
    job = world.queue.jobs[j]
    job.believed_end = end
    for i in range(job.first_slot, job.first_slot + world.queue.shapes[job.shape].instances):
        _unlink(world, i)
        world.links[i].end = end
        _link(world, i)


@compiled
def first_to_end(world: World, n: int) -> int:
    """Return the job on node n that is believed to end first, among equals the one of the first slot; -1: nothing runs."""
    links, i = world.links, wide(world.machines.nodes[n].first_slot)
    first = i
    while i >= 0:
        if links[i].end < links[first].end or (links[i].end == links[first].end and i < first):
            first = i
        i = wide(links[i].next)
    return wide(links[first].job) if first >= 0 else wide(-1)


@compiled
def _link(world: World, i: int) -> None:
    """Put slot i into its node's list: in order of (end, slot), or first where nobody asks for that order."""
    n, links = world.slots[i].node, world.links
    _unsettle(world, n)
    node, end = world.machines.nodes[n], links[i].end
    before, after = wide(-1), wide(node.first_slot)
    in_order = world.settings[0].tracks == BY_END
    while in_order and after >= 0 and (links[after].end < end or (links[after].end == end and after < i)):
        before, after = after, wide(links[after].next)
    links[i].previous, links[i].next = before, after
    if after >= 0:
        links[after].previous = i
    if before >= 0:
        links[before].next = i
    else:
        node.first_slot = i
        world.first_end[n] = end


@compiled
def _unlink(world: World, i: int) -> None:
    n, links = world.slots[i].node, world.links
    _unsettle(world, n)
    before, after = links[i].previous, links[i].next
    if after >= 0:
        links[after].previous = before
    if before >= 0:
        links[before].next = after
    else:
        world.machines.nodes[n].first_slot = after
        world.first_end[n] = links[after].end if after >= 0 else np.inf


@inlined
def _unsettle(world: World, n: int) -> None:
    """Have the reservation work out anew what it needs on node n, where a job starts or ends."""
    if world.rows[n] >= 0:
        world.masks[world.rows[n]] = STALE
