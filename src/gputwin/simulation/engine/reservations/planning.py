"""When and where a job can start, beside what runs and what is planned."""

from __future__ import annotations

from typing import Any

import numpy as np

from gputwin.simulation.engine.compiled import compiled, inlined
from gputwin.simulation.engine.fit.index import FIRST_FITS
from gputwin.simulation.engine.fit.questions import next_fit, room
from gputwin.simulation.engine.placing.place import fits_now
from gputwin.simulation.engine.reservations.earliest import earliest, room_from
from gputwin.simulation.engine.reservations.timeline import chain, enter
from gputwin.simulation.engine.reservations.trial import attempt, in_the_way
from gputwin.simulation.engine.state.events import next_time, pop, schedule
from gputwin.simulation.engine.state.records import WHOLE, wide
from gputwin.simulation.engine.trials.journal import begin
from gputwin.simulation.engine.trials.undo import undo
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
    requests, job, count = world.requests, world.queue.jobs[j], world.machines.nodes.size
    r = wide(world.groups[world.queue.shapes[job.shape].first_group].request)
    job.planned, top = np.inf, -np.inf
    # Now, if at all, it fits where it would without plans.
    n = next_fit(world, r, wide(0))
    if n >= 0 and requests[r].slot != FIRST_FITS and attempt(world, j, now, now, score, devices):
        job.planned = now
        return
    while n >= 0 and requests[r].slot == FIRST_FITS:
        top = _consider(world, j, r, n, now, not in_the_way(world, j, n, now), top, score, devices)
        if job.planned == now:
            return
        n = next_fit(world, r, n + 1) if n + 1 < count else wide(-1)
    for n in range(count):
        time = earliest(world, j, r, n, now, job.planned)
        if time < np.inf:
            top = _consider(world, j, r, n, time, False, top, score, devices)


@compiled
def _consider(
    world: World, j: int, r: int, n: int, time: float, alone: bool, top: float, score: Any, devices: Any
) -> float:
    """Plan the single instance of job j on node n from `time` on if it fits and is better so; return the best score.

    `alone`: it is for now, and no plan is in its way there.
    """
    machines, requests, job = world.machines, world.requests, world.queue.jobs[j]
    if not alone:
        begin(world.index.journal, machines)
        enter(world, j, n, time)
    if alone or room(world, r, n) > 0:
        value = score(world.index, machines, requests, r, n, world.knobs)
        if time < job.planned or value > top:
            slot = world.slots[job.first_slot]
            slot.node, slot.devices, slot.request = n, 0, r
            if requests[r].gpu_count > 0:
                slot.devices = devices(machines, requests, r, n, world.knobs)
            job.planned, top = time, value
    if not alone:
        undo(world.index, machines)
    return top


@compiled
def _plan_gang(world: World, j: int, now: float, score: Any, devices: Any) -> None:
    """Plan a gang: the first time at which each role has room by itself and all can be placed together.

    The room of a role on a node grows only when something ends there. So the nodes are followed from one such end to the
    next, in order of time; `World.endings` holds the next one of each node. The room at that moment alone is easily told
    and is no less than that for as long as the job runs, which is worked out only when there would be enough.
    """
    job, heap, plans = world.queue.jobs[j], world.endings, world.plans
    count, s = world.machines.nodes.size, wide(job.shape)
    if fits_now(world, s) and attempt(world, j, now, now, score, devices):
        job.planned = now
        return
    job.planned = np.inf
    heap.count[0] = 0
    plans.rooms[:, :] = 0
    for n in range(count):
        _follow(world, s, n, chain(world, n), now)
    while heap.count[0] > 0:
        time, useful = next_time(heap), False
        while next_time(heap) == time:
            n = pop(heap)[1]
            useful = _follow(world, s, n, wide(plans.cursor[n]), time) or useful
        if useful and _has_room(world, s):
            for n in range(count):
                if plans.unsure[n] != 0:
                    _make_sure(world, j, n, time)
            if _has_room(world, s) and attempt(world, j, now, time, score, devices):
                job.planned = time
                return


@compiled
def _follow(world: World, s: int, n: int, k: int, time: float) -> bool:
    """Note the room of each role of shape s on node n at `time`, the moments up to which begin with k.

    Returns whether there is any. The next end on the node is noted in `World.endings`.
    """
    plans, shape, node, moments = world.plans, world.queue.shapes[s], world.machines.nodes[n], world.plans.moments
    cpu, memory, whole, gpu_free = node.cpu_free, node.memory_free, node.gpus_whole, node.gpu_free
    while k >= 0 and moments[k].time <= time:
        moment = moments[k]
        cpu, memory, whole, gpu_free = moment.cpu, moment.memory, wide(moment.whole), wide(moment.gpu_free)
        k = wide(moment.next)
    useful, total = False, world.machines.nodes.size
    for g in range(wide(shape.groups)):
        group = world.groups[shape.first_group + g]
        room = _room_in(world, wide(group.request), wide(group.size), n, cpu, memory, whole, gpu_free)
        useful = useful or room > 0
        plans.rooms[g, total] += room - plans.rooms[g, n]
        plans.rooms[g, n] = room
    plans.unsure[n] = 1
    while k >= 0 and not k & 1:
        k = wide(moments[k].next)
    plans.cursor[n] = k
    if k >= 0:
        schedule(world.endings, moments[k].time, wide(0), n)
    return useful


@inlined
def _room_in(world: World, r: int, size: int, n: int, cpu: int, memory: int, whole: int, gpu_free: int) -> int:
    """Return how many of `size` instances of r may fit on node n when so much is free there."""
    request, room = world.requests[r], size
    if request.gpu_count > 0:
        if not world.index.allowed[r, world.machines.nodes[n].model]:
            return wide(0)
        if request.gpu_milli == WHOLE:
            room = min(room, whole // request.gpu_count)
        else:
            room = min(room, gpu_free // (request.gpu_count * request.gpu_milli))
    if request.cpu > 0:
        room = min(room, cpu // request.cpu)
    if request.memory > 0:
        room = min(room, memory // request.memory)
    return max(room, wide(0))


@inlined
def _has_room(world: World, s: int) -> bool:
    """Return whether each role of shape s has room by Plans.rooms."""
    shape, total = world.queue.shapes[s], world.machines.nodes.size
    short = 0
    for g in range(wide(shape.groups)):
        short += world.plans.rooms[g, total] < world.groups[shape.first_group + g].size
    return short == 0


@compiled
def _make_sure(world: World, j: int, n: int, time: float) -> None:
    """Work out the room of each role of job j on node n from `time` on, for as long as it is believed to run."""
    plans, shape, total = world.plans, world.queue.shapes[world.queue.jobs[j].shape], world.machines.nodes.size
    plans.unsure[n] = 0
    for g in range(wide(shape.groups)):
        if plans.rooms[g, n] > 0:
            group = world.groups[shape.first_group + g]
            room = min(room_from(world, j, wide(group.request), n, time), wide(group.size))
            plans.rooms[g, total] += room - plans.rooms[g, n]
            plans.rooms[g, n] = room
