"""When and where a job can start, beside what runs and what is planned."""

from __future__ import annotations

from typing import Any

import numpy as np

from gputwin.simulation.engine.compiled import compiled, inlined
from gputwin.simulation.engine.earliest import earliest, room_from
from gputwin.simulation.engine.events import next_time, pop, schedule
from gputwin.simulation.engine.fit import device_fits
from gputwin.simulation.engine.index import FIRST_FITS, FULL, next_fit, room_on, touch
from gputwin.simulation.engine.place import fits_now, place
from gputwin.simulation.engine.state import WHOLE, change, wide
from gputwin.simulation.engine.timeline import chain, enter, finish, leave
from gputwin.simulation.engine.world import World


@compiled
def plan(world: World, j: int, now: float, score: Any, devices: Any) -> None:
    """Find the earliest start of job j, nodes and devices: Job.planned (infinity: none) and its slots."""
    if world.queue.shapes[world.queue.jobs[j].shape].instances == 1:
        _plan_one(world, j, now, score, devices)
    else:
        _plan_gang(world, j, now, score, devices)


@compiled
def _plan_one(world: World, j: int, now: float, score: Any, devices: Any) -> None:
    """Plan a single instance: the node that can take it first; among those, the one with the highest score."""
    machines, requests, job, count = world.machines, world.requests, world.queue.jobs[j], world.machines.nodes.size
    r = wide(world.groups[world.queue.shapes[job.shape].first_group].request)
    job.planned, top = np.inf, -np.inf
    # Now, if at all, it fits where it would without plans.
    n = next_fit(world.index, machines, requests, r, wide(0), FULL)
    if n >= 0 and requests[r].slot != FIRST_FITS and _attempt(world, j, now, now, score, devices):
        job.planned = now
        return
    while n >= 0 and requests[r].slot == FIRST_FITS:
        top = _consider(world, j, r, n, now, not _in_the_way(world, j, n, now), top, score, devices)
        if job.planned == now:
            return
        n = next_fit(world.index, machines, requests, r, n + 1, FULL) if n + 1 < count else wide(-1)
    for n in range(count):
        time = earliest(world, j, r, n, now, job.planned)
        if time < np.inf:
            top = _consider(world, j, r, n, time, False, top, score, devices)


@inlined
def _in_the_way(world: World, j: int, n: int, now: float) -> bool:
    """Return whether a plan on node n begins while job j would run if it started now; the list is in order of start."""
    i = wide(world.machines.nodes[n].first_planned)
    if i < 0:
        return False
    return world.queue.jobs[world.links[i].job].planned < finish(now, world.queue.jobs[j].predicted)


@compiled
def _consider(
    world: World, j: int, r: int, n: int, time: float, alone: bool, top: float, score: Any, devices: Any
) -> float:
    """Plan the single instance of job j on node n from `time` on if it fits and is better so; return the best score.

    `alone`: it is for now, and no plan is in its way there.
    """
    machines, requests, job = world.machines, world.requests, world.queue.jobs[j]
    if not alone:
        enter(world, j, n, time)
    if alone or room_on(machines, requests, world.index.allowed, r, n, FULL) > 0:
        value = score(machines, requests, r, n, world.knobs)
        if time < job.planned or value > top:
            slot = world.slots[job.first_slot]
            slot.node, slot.devices, slot.request = n, 0, r
            if requests[r].gpu_count > 0:
                slot.devices = devices(machines, requests, r, n, world.knobs)
            job.planned, top = time, value
    if not alone:
        leave(world, j, n, time)
    return top


@compiled
def _plan_gang(world: World, j: int, now: float, score: Any, devices: Any) -> None:
    """Plan a gang: the first time at which each role has room by itself and all can be placed together.

    The room of a role on a node grows only when something ends there. So the nodes are followed from one such moment to
    the next, in order of time; `World.endings` holds for each role and node when to look at it again. Until the nodes
    on which an instance fits by then could hold the gang if they were empty, their room is not worked out.
    """
    job, heap, rooms = world.queue.jobs[j], world.endings, world.plans.rooms
    shape, count = world.queue.shapes[job.shape], world.machines.nodes.size
    if fits_now(world, wide(job.shape)) and _attempt(world, j, now, now, score, devices):
        job.planned = now
        return
    job.planned = np.inf
    heap.count[0] = 0
    for g in range(wide(shape.groups)):
        rooms[g, count] = 0
        for n in range(count):
            rooms[g, n] = 0
            time = earliest(world, j, wide(world.groups[shape.first_group + g].request), n, now, np.inf)
            if time < np.inf:
                schedule(heap, time, g, n)
    exact = False
    while heap.count[0] > 0:
        time, grew = next_time(heap), False
        while next_time(heap) == time:
            g, n = pop(heap)
            before = rooms[g, n]
            if exact:
                _follow(world, j, g, n, time)
            else:
                rooms[g, n] = _room_when_empty(world, world.groups[shape.first_group + g], n)
                rooms[g, count] += rooms[g, n]
            grew = grew or rooms[g, n] > before
        if not grew or not _has_room(world, wide(job.shape)):
            continue
        if not exact:
            exact = True
            for g in range(wide(shape.groups)):
                for n in range(count):
                    if rooms[g, n] > 0:
                        _follow(world, j, g, n, time)
        if time > now and _has_room(world, wide(job.shape)) and _attempt(world, j, now, time, score, devices):
            job.planned = time
            return


@inlined
def _has_room(world: World, s: int) -> bool:
    """Return whether each role of shape s has room by Plans.rooms."""
    shape, count = world.queue.shapes[s], world.machines.nodes.size
    short = 0
    for g in range(wide(shape.groups)):
        short += world.plans.rooms[g, count] < world.groups[shape.first_group + g].size
    return short == 0


@compiled
def _follow(world: World, j: int, g: int, n: int, time: float) -> None:
    """Work out the room of role g of job j on node n from `time` on, and note when to look at it again."""
    rooms = world.plans.rooms
    r = wide(world.groups[world.queue.shapes[world.queue.jobs[j].shape].first_group + g].request)
    room = room_from(world, j, r, n, time)
    rooms[g, world.machines.nodes.size] += room - rooms[g, n]
    rooms[g, n] = room
    following = _next_change(world, j, r, n, time)
    if following < np.inf:
        schedule(world.endings, following, g, n)


@inlined
def _room_when_empty(world: World, group: Any, n: int) -> int:
    """Return how many instances of a group node n could hold at most."""
    request, node, room = world.requests[group.request], world.machines.nodes[n], wide(group.size)
    if request.gpu_count > 0:
        room = min(room, node.gpu_count * (WHOLE // request.gpu_milli) // request.gpu_count)
    if request.cpu > 0:
        room = min(room, node.cpu // request.cpu)
    if request.memory > 0:
        room = min(room, node.memory // request.memory)
    return room


@compiled
def _next_change(world: World, j: int, r: int, n: int, time: float) -> float:
    """Return when after `time` the room of request r of job j on node n may change.

    It grows when something ends there, and shrinks when a plan comes into the time the job would take.
    """
    moments, predicted = world.plans.moments, world.queue.jobs[j].predicted
    k, end = chain(world, n), finish(time, predicted)
    while k >= 0 and not (moments[k].time > time and k & 1):
        k = wide(moments[k].next)
    grows = earliest(world, j, r, n, moments[k].time, np.inf) if k >= 0 else np.inf
    k = wide(world.plans.first[n])
    while k >= 0 and (moments[k].time < end or k & 1):
        k = wide(moments[k].next)
    if k >= 0 and moments[k].time - predicted > time:
        return min(grows, np.nextafter(moments[k].time - predicted, np.inf))
    return grows


@compiled
def _attempt(world: World, j: int, now: float, time: float, score: Any, devices: Any) -> bool:
    """Place job j as if it were `time`, and take it back again; its slots keep nodes and devices."""
    machines, requests, job, entered = world.machines, world.requests, world.queue.jobs[j], world.plans.entered
    shape = world.queue.shapes[job.shape]
    for n in range(machines.nodes.size):
        entered[n] = 0
        # Now, only plans are in the way; later, what has no room now may have some.
        later = False
        if time > now:
            for g in range(wide(shape.groups)):
                later = later or world.plans.rooms[g, n] > 0
        elif not _in_the_way(world, j, n, now):
            continue
        if later or _room_for_any(world, j, n):
            enter(world, j, n, time)
            entered[n] = 1
            touch(world.index, machines, n, True)
    placed = fits_now(world, wide(job.shape)) and place(world, j, score, devices)
    if placed:
        for i in range(job.first_slot, job.first_slot + shape.instances):
            slot = world.slots[i]
            change(machines, requests, wide(slot.request), wide(slot.node), slot.devices, -1)
            if entered[slot.node] == 0:
                touch(world.index, machines, wide(slot.node), True)
    for n in range(machines.nodes.size):
        if entered[n] != 0:
            leave(world, j, n, time)
            touch(world.index, machines, n, True)
    return placed


@compiled
def _room_for_any(world: World, j: int, n: int) -> bool:
    """Return whether node n has room for an instance of any role of job j."""
    shape = world.queue.shapes[world.queue.jobs[j].shape]
    for g in range(shape.first_group, shape.first_group + shape.groups):
        r = wide(world.groups[g].request)
        if room_on(world.machines, world.requests, world.index.allowed, r, n, FULL) > 0:
            return True
    return False


@compiled
def still_holds(world: World, j: int) -> bool:
    """Return whether the instances of job j fit where and when they are planned; its own plan is put aside."""
    machines, requests, job, entered = world.machines, world.requests, world.queue.jobs[j], world.plans.entered
    begin, end, holds = job.first_slot, job.first_slot + world.queue.shapes[job.shape].instances, True
    taken = begin
    for i in range(begin, end):
        entered[world.slots[i].node] = 0
    while taken < end and holds:
        slot = world.slots[taken]
        n, r = wide(slot.node), wide(slot.request)
        if entered[n] == 0:
            enter(world, j, n, job.planned)
            entered[n] = 1
        holds = room_on(machines, requests, world.index.allowed, r, n, FULL) > 0
        for d in range(machines.nodes[n].gpu_count):
            if slot.devices >> d & 1:
                holds = holds and device_fits(machines, requests, r, n, d)
        if holds:
            change(machines, requests, r, n, slot.devices, 1)
            taken += 1
    for i in range(begin, taken):
        slot = world.slots[i]
        change(machines, requests, wide(slot.request), wide(slot.node), slot.devices, -1)
    for i in range(begin, end):
        n = wide(world.slots[i].node)
        if entered[n] != 0:
            leave(world, j, n, job.planned)
            entered[n] = 0
    return holds
