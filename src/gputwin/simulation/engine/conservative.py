"""Conservative backfilling: every waiting job has a reservation, and nobody may delay anyone's.

Mu'alem and Feitelson, "Utilization, Predictability, Workloads, and User Runtime Estimates", 2001. A job is given, on
arrival, the earliest start at which it fits for as long as it is believed to run, beside what runs and what is reserved.
When a job ends at another time than believed, reservations are made anew one by one, in order, each beside all others:
none gets later unless something took longer than believed.

A reservation holds definite nodes and devices. Whether a job fits on a node from t on for d seconds is asked of the node
as it will be at its fullest in that time: what ends by t is freed, and the most that reservations hold at once is hidden.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gputwin.simulation.engine.compiled import compiled
from gputwin.simulation.engine.index import FULL, room_on, touch
from gputwin.simulation.engine.ledger import NO_HEAD
from gputwin.simulation.engine.lifecycle import start_waiting
from gputwin.simulation.engine.place import place
from gputwin.simulation.engine.queue import after, first_of_all
from gputwin.simulation.engine.state import change, wide
from gputwin.simulation.engine.veils import FIELDS, add_row, hide_row
from gputwin.simulation.engine.waiting import end_pass
from gputwin.simulation.engine.world import RESERVED_JOB, RUNNING_COUNT, World


def conservative_pass(
    world: World, now: float, order: Any, promotion: Any, claim: Any, score: Any, devices: Any
) -> None:
    """Plan who has no plan, or everyone where ends differ from what was believed, and start whose time has come.

    World.options[RESERVED_JOB] is -1 where all plans are to be made anew.
    """
    anew = world.options[RESERVED_JOB] < 0
    world.options[RESERVED_JOB] = 0
    j = first_of_all(world.queue)
    while j >= 0:
        following = after(world.queue, j)
        job = world.queue.jobs[j]
        if anew and not np.isnan(job.planned):
            _forget(world, j)
            job.planned = np.nan
        if np.isnan(job.planned):
            _plan(world, j, now, score, devices)
        if job.planned <= now:
            _start_planned(world, j, now)
        j = following
    world.reserved_from[0] = _next_start(world)
    end_pass(world, NO_HEAD, now)


@compiled
def _next_start(world: World) -> float:
    """Return the earliest planned start."""
    soonest = np.inf
    j = first_of_all(world.queue)
    while j >= 0:
        if world.queue.jobs[j].planned < soonest:
            soonest = world.queue.jobs[j].planned
        j = after(world.queue, j)
    return soonest


@compiled
def _start_planned(world: World, j: int, now: float) -> None:
    _forget(world, j)
    job = world.queue.jobs[j]
    for i in range(job.first_slot, job.first_slot + world.queue.shapes[job.shape].instances):
        slot = world.slots[i]
        change(world.machines, world.requests, slot.request, slot.node, slot.devices, 1)
        touch(world.index, world.machines, slot.node, False)
    start_waiting(world, j, now)


@compiled
def _remember(world: World, j: int) -> None:
    """Enter the planned instances of job j into the lists of their nodes."""
    job, links = world.queue.jobs[j], world.links
    for i in range(job.first_slot, job.first_slot + world.queue.shapes[job.shape].instances):
        node = world.machines.nodes[world.slots[i].node]
        following = node.first_planned
        links[i].job, links[i].next, links[i].previous = j, following, -1
        if following >= 0:
            links[following].previous = i
        node.first_planned = i


@compiled
def _forget(world: World, j: int) -> None:
    job, links = world.queue.jobs[j], world.links
    for i in range(job.first_slot, job.first_slot + world.queue.shapes[job.shape].instances):
        previous, following = links[i].previous, links[i].next
        if previous >= 0:
            links[previous].next = following
        else:
            world.machines.nodes[world.slots[i].node].first_planned = following
        if following >= 0:
            links[following].previous = previous


@compiled
def _plan(world: World, j: int, now: float, score: Any, devices: Any) -> None:
    """Reserve the earliest start of job j."""
    job = world.queue.jobs[j]
    if world.queue.shapes[job.shape].instances == 1:
        _plan_one(world, j, now, score, devices)
    else:
        _plan_gang(world, j, now, score, devices)
    if job.planned < np.inf:
        _remember(world, j)
    else:
        # Somebody runs longer than believed where it should go: it is planned again with the next event.
        job.planned = np.nan


@compiled
def _plan_one(world: World, j: int, now: float, score: Any, devices: Any) -> None:
    """Plan a single instance: the node that can take it first; among those, the one with the highest score."""
    machines, requests, job = world.machines, world.requests, world.queue.jobs[j]
    r = world.groups[world.queue.shapes[job.shape].first_group].request
    slot = world.slots[job.first_slot]
    job.planned, top = np.inf, -np.inf
    for n in range(machines.nodes.size):
        time = now
        while time < np.inf and time <= job.planned:
            _enter_window(world, j, n, time)
            fits = room_on(machines, requests, world.index.allowed, r, n, FULL) > 0
            if fits:
                value = score(machines, requests, r, n, world.knobs)
                if time < job.planned or value > top:
                    chosen = devices(machines, requests, r, n, world.knobs) if requests[r].gpu_count > 0 else 0
                    job.planned, top = time, value
                    slot.node, slot.devices, slot.request = n, chosen, r
            _leave_window(world, j, n, time)
            if fits:
                break
            time = _next_end_on(world, n, time)


@compiled
def _next_end_on(world: World, n: int, time: float) -> float:
    """Return the next time after `time` at which something on node n ends, running or planned."""
    soonest, jobs = np.inf, world.queue.jobs
    i = world.machines.nodes[n].first_slot
    while i >= 0:
        end = jobs[world.links[i].job].believed_end
        if time < end < soonest:
            soonest = end
        i = wide(world.links[i].next)
    i = world.machines.nodes[n].first_planned
    while i >= 0:
        holder = jobs[world.links[i].job]
        if time < holder.planned + holder.predicted < soonest:
            soonest = holder.planned + holder.predicted
        i = wide(world.links[i].next)
    return soonest


@compiled
def _plan_gang(world: World, j: int, now: float, score: Any, devices: Any) -> None:
    """Plan a gang: the first end of anything at which all its instances can be placed."""
    job, count = world.queue.jobs[j], world.machines.nodes.size
    job.planned = np.inf
    time = now
    while time < np.inf and job.planned == np.inf:
        for n in range(count):
            _enter_window(world, j, n, time)
            touch(world.index, world.machines, n, True)
        if place(world, j, score, devices):
            job.planned = time
            for i in range(job.first_slot, job.first_slot + world.queue.shapes[job.shape].instances):
                slot = world.slots[i]
                change(world.machines, world.requests, slot.request, slot.node, slot.devices, -1)
        for n in range(count):
            _leave_window(world, j, n, time)
            touch(world.index, world.machines, n, True)
        time = _next_end(world, time)


@compiled
def _next_end(world: World, time: float) -> float:
    """Return the next time after `time` at which anything ends, running or planned."""
    soonest, jobs = np.inf, world.queue.jobs
    for k in range(world.options[RUNNING_COUNT]):
        end = jobs[world.running[k]].believed_end
        if time < end < soonest:
            soonest = end
    j = first_of_all(world.queue)
    while j >= 0:
        end = jobs[j].planned + jobs[j].predicted
        if time < end < soonest:
            soonest = end
        j = after(world.queue, j)
    return soonest


@compiled
def _enter_window(world: World, j: int, n: int, time: float) -> None:
    """Make node n what it is at its fullest while job j would run from `time` on."""
    _free_ended(world, n, time, -1)
    _most_planned(world, n, time, time + world.queue.jobs[j].predicted)
    _at_most_what_is_free(world, n)
    hide_row(world, world.withheld[n], n, 1)
    _count_applications(world, j, n, time, 1)


@compiled
def _at_most_what_is_free(world: World, n: int) -> None:
    """Cut what plans hold on node n to what there is: beside an overrun they hold more, but not of other devices."""
    row, node, most = world.withheld[n], world.machines.nodes[n], world.machines.gpus.shape[1]
    row[0] = min(row[0], max(node.cpu_free, 0))
    row[1] = min(row[1], max(node.memory_free, 0))
    row[2] = min(row[2], max(node.disk_free, 0))
    row[3] = min(row[3], max(node.rdma_free, 0))
    for d in range(node.gpu_count):
        row[FIELDS + d] = min(row[FIELDS + d], max(world.machines.gpus[n, d].free, 0))
        row[FIELDS + most + d] = min(row[FIELDS + most + d], max(world.machines.gpus[n, d].memory_free, 0))


@compiled
def _leave_window(world: World, j: int, n: int, time: float) -> None:
    """Undo `_enter_window`."""
    _count_applications(world, j, n, time, -1)
    hide_row(world, world.withheld[n], n, -1)
    _free_ended(world, n, time, 1)


@compiled
def _free_ended(world: World, n: int, time: float, sign: int) -> None:
    i = world.machines.nodes[n].first_slot
    while i >= 0:
        if world.queue.jobs[world.links[i].job].believed_end <= time:
            change(world.machines, world.requests, world.slots[i].request, n, world.slots[i].devices, sign)
        i = wide(world.links[i].next)


@compiled
def _most_planned(world: World, n: int, begin: float, end: float) -> None:
    """Put into World.withheld[n] the most that plans hold on node n at any one time in [begin, end).

    That is at `begin` or when one of the plans starts; what ends there after `begin` is counted off from its end on.
    """
    jobs, links = world.queue.jobs, world.links
    most, now = world.withheld[n], world.withheld[world.machines.nodes.size]
    most[:] = 0.0
    head = wide(world.machines.nodes[n].first_planned)
    moment = head
    at = begin
    while head >= 0:
        now[:] = 0.0
        i = head
        while i >= 0:
            holder = jobs[links[i].job]
            if holder.planned <= at < holder.planned + holder.predicted:
                add_row(world, now, world.slots[i].request, world.slots[i].devices, n, 1.0)
            i = wide(links[i].next)
        i = wide(world.machines.nodes[n].first_slot)
        while i >= 0:
            if begin < jobs[links[i].job].believed_end <= at:
                add_row(world, now, world.slots[i].request, world.slots[i].devices, n, -1.0)
            i = wide(links[i].next)
        for f in range(most.size):
            most[f] = max(most[f], now[f])
        while moment >= 0 and not begin < jobs[links[moment].job].planned < end:
            moment = wide(links[moment].next)
        if moment < 0:
            return
        at = jobs[links[moment].job].planned
        moment = wide(links[moment].next)


@compiled
def _count_applications(world: World, j: int, n: int, time: float, sign: int) -> None:
    """Count planned instances of the limited applications of job j as living on node n, the most there are at once."""
    shape = world.queue.shapes[world.queue.jobs[j].shape]
    for g in range(shape.first_group, shape.first_group + shape.groups):
        application = world.requests[world.groups[g].request].application
        seen = application < 0
        for earlier in range(shape.first_group, g):
            seen = seen or world.requests[world.groups[earlier].request].application == application
        if not seen:
            most = _most_of_application(world, n, application, time, time + world.queue.jobs[j].predicted)
            world.machines.residents[n, application] += sign * most


@compiled
def _most_of_application(world: World, n: int, application: int, begin: float, end: float) -> int:
    jobs, links = world.queue.jobs, world.links
    most = 0
    moment = wide(world.machines.nodes[n].first_planned)
    at = begin
    while True:
        living, i = 0, wide(world.machines.nodes[n].first_planned)
        while i >= 0:
            holder = jobs[links[i].job]
            alike = world.requests[world.slots[i].request].application == application
            living += alike and holder.planned <= at < holder.planned + holder.predicted
            i = wide(links[i].next)
        i = wide(world.machines.nodes[n].first_slot)
        while i >= 0:
            alike = world.requests[world.slots[i].request].application == application
            living -= alike and begin < jobs[links[i].job].believed_end <= at
            i = wide(links[i].next)
        most = max(most, living)
        while moment >= 0 and not begin < jobs[links[moment].job].planned < end:
            moment = wide(links[moment].next)
        if moment < 0:
            return most
        at = jobs[links[moment].job].planned
        moment = wide(links[moment].next)
