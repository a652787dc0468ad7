"""What every node will have free over time under conservative backfilling, if all goes as believed and planned.

Each node has a chain of moments in order of time: an instance that runs has one, its believed end; an instance that is
planned has two. A moment knows the CPU, memory and GPUs free from then on, so that most nodes are passed over without
looking at devices. A chain is made anew when it is needed after a change.

A plan holds what it needs from its start until its end. One that is believed to last no time holds it for the shortest
time that can be told apart, so that nobody else is planned into the same instant.
"""

from __future__ import annotations

import numpy as np

from gputwin.simulation.engine.compiled import compiled, inlined
from gputwin.simulation.engine.fit.room import MANY
from gputwin.simulation.engine.state.records import APPLICATIONS, WHOLE, Floats, Records, SmallInts, gpu_class, wide
from gputwin.simulation.engine.trials.journal import keep
from gputwin.simulation.engine.world import STALE, World

FRESH, OUTDATED = 1, 2
"""What World.masks says of a node's chain: right; plans have changed. STALE: what runs has changed."""
_FIELDS = 4
"""A row: CPU, memory, disk, RDMA, then each device's share, then each one's memory."""


@inlined
def finish(start: float, predicted: float) -> float:
    """Return when a plan ends: at least a moment after its start."""
    return max(start + predicted, np.nextafter(start, np.inf))


@inlined
def chain(world: World, n: int) -> int:
    """Return the first moment of node n, its chain made anew where something has changed."""
    if world.masks[n] != FRESH:
        _make_chain(world, n)
    return wide(world.plans.first[n])


@compiled
def _make_chain(world: World, n: int) -> None:
    plans, node, links, jobs = world.plans, world.machines.nodes[n], world.links, world.queue.jobs
    if world.masks[n] == STALE:
        plans.changed[n] |= 1
    world.masks[n] = FRESH
    last, i = wide(-1), wide(node.first_slot)
    plans.first[n] = -1
    while i >= 0:
        plans.moments[2 * i + 1].time = links[i].end
        last = _insert(plans.moments, plans.first, n, 2 * i + 1, last)
        i = wide(links[i].next)
    last, i = wide(-1), wide(node.first_planned)
    while i >= 0:
        job = jobs[links[i].job]
        plans.moments[2 * i].time = job.planned
        plans.moments[2 * i + 1].time = finish(job.planned, job.predicted)
        last = _insert(plans.moments, plans.first, n, 2 * i, last)
        _insert(plans.moments, plans.first, n, 2 * i + 1, last)
        i = wide(links[i].next)
    _sum_up(world, n)


@inlined
def _insert(moments: Records, first: SmallInts, n: int, k: int, after: int) -> int:
    """Put moment k into the chain of node n, not before the moment `after` (-1: anywhere), and return it."""
    following = wide(moments[after].next) if after >= 0 else wide(first[n])
    while following >= 0 and moments[following].time <= moments[k].time:
        after, following = following, wide(moments[following].next)
    moments[k].next = following
    if after >= 0:
        moments[after].next = k
    else:
        first[n] = k
    return k


@compiled
def _sum_up(world: World, n: int) -> None:
    """Note with each moment of node n what is free from then on."""
    row, count = world.withheld[0], wide(world.machines.nodes[n].gpu_count)
    _present(world, n, row)
    k = wide(world.plans.first[n])
    while k >= 0:
        moment = world.plans.moments[k]
        _pass(world, n, k, row)
        whole, share, total = 0, 0.0, 0.0
        for d in range(count):
            free = row[_FIELDS + d]
            whole += free >= WHOLE
            share = max(share, free)
            total += free
        moment.cpu, moment.memory = wide(row[0]), wide(row[1])
        moment.whole, moment.share, moment.gpu_free = whole, wide(share), wide(total)
        k = wide(moment.next)


@inlined
def _present(world: World, n: int, row: Floats) -> None:
    """Put what is free on node n now into a row."""
    node, most = world.machines.nodes[n], world.machines.gpus.shape[1]
    row[0], row[1], row[2], row[3] = node.cpu_free, node.memory_free, node.disk_free, node.rdma_free
    for d in range(node.gpu_count):
        device = world.machines.gpus[n, d]
        row[_FIELDS + d], row[_FIELDS + most + d] = device.free, device.memory_free


@inlined
def _put_row(world: World, n: int, row: Floats) -> None:
    """Make what is free on node n what a row says."""
    node, most = world.machines.nodes[n], world.machines.gpus.shape[1]
    node.cpu_free, node.memory_free = wide(row[0]), wide(row[1])
    node.disk_free, node.rdma_free = wide(row[2]), wide(row[3])
    whole, total = 0, 0
    for d in range(node.gpu_count):
        device = world.machines.gpus[n, d]
        device.free, device.memory_free = wide(row[_FIELDS + d]), wide(row[_FIELDS + most + d])
        whole += device.free == WHOLE
        total += device.free
    node.gpus_whole, node.gpu_free = whole, total


@inlined
def _pass(world: World, n: int, k: int, row: Floats) -> None:
    """Change a row as moment k of node n does."""
    slot, sign, most = world.slots[k >> 1], 1.0 if k & 1 else -1.0, world.machines.gpus.shape[1]
    request = world.requests[slot.request]
    row[0] += sign * request.cpu
    row[1] += sign * request.memory
    row[2] += sign * request.disk
    row[3] += sign * request.rdma
    if request.gpu_count > 0:
        for d in range(world.machines.nodes[n].gpu_count):
            if slot.devices >> d & 1:
                row[_FIELDS + d] += sign * request.gpu_milli
                row[_FIELDS + most + d] += sign * request.gpu_memory


@compiled
def enter(world: World, j: int, n: int, begin: float) -> None:
    """Make node n what it is at its fullest while job j would run there from `begin` on; a trial is open.

    The index does not know of it.
    """
    moments = world.plans.moments
    now, least, end = world.withheld[0], world.withheld[1], finish(begin, world.queue.jobs[j].predicted)
    k = chain(world, n)
    keep(world.index.journal, world.machines, n)
    _present(world, n, now)
    while k >= 0 and moments[k].time <= begin:
        _pass(world, n, k, now)
        k = wide(moments[k].next)
    fields = _FIELDS + world.machines.gpus.shape[1] + wide(world.machines.nodes[n].gpu_count)
    for f in range(fields):
        least[f] = now[f]
    while k >= 0 and moments[k].time < end:
        time = moments[k].time
        while k >= 0 and moments[k].time == time:
            _pass(world, n, k, now)
            k = wide(moments[k].next)
        for f in range(fields):
            least[f] = min(least[f], now[f])
    for f in range(fields):
        # Beside somebody who runs longer than believed, plans hold more than there is, but not of other devices.
        least[f] = max(least[f], 0.0)
    _put_row(world, n, least)
    _part_with(world, n, begin)
    if world.machines.residents.shape[1] > APPLICATIONS:
        _count_applications(world, j, n, begin, end)


@inlined
def _part_with(world: World, n: int, begin: float) -> None:
    """Count off from the residents of node n those who will have left by `begin`, by their class of GPUs."""
    i = wide(world.machines.nodes[n].first_slot)
    while i >= 0 and world.links[i].end <= begin:
        r = wide(world.slots[i].request)
        if world.requests[r].gpu_count > 0:
            world.machines.residents[n, gpu_class(world.requests, r)] -= 1
        i = wide(world.links[i].next)


@compiled
def _count_applications(world: World, j: int, n: int, begin: float, end: float) -> None:
    """Count as living on node n the most instances there are at once of the limited applications of job j."""
    shape = world.queue.shapes[world.queue.jobs[j].shape]
    for g in range(shape.first_group, shape.first_group + shape.groups):
        application = world.requests[world.groups[g].request].application
        seen = application < 0
        for earlier in range(shape.first_group, g):
            seen = seen or world.requests[world.groups[earlier].request].application == application
        if seen:
            continue
        residents, caps = world.machines.residents, world.machines.caps
        slack = _slack(world, n, application, begin, end) if caps.shape[1] > 0 else MANY
        residents[n, application] += _most_of_application(world, n, application, begin, end)
        if caps.shape[1] > 0:
            caps[n, application - APPLICATIONS] = min(residents[n, application] + slack, MANY)


@compiled
def _most_of_application(world: World, n: int, application: int, begin: float, end: float) -> int:
    """Return how many more instances of an application there are at once in [begin, end) than now."""
    most, moment = _more_of_application(world, n, application, begin), wide(world.machines.nodes[n].first_planned)
    while moment >= 0:
        at = world.queue.jobs[world.links[moment].job].planned
        if begin < at < end and world.requests[world.slots[moment].request].application == application:
            most = max(most, _more_of_application(world, n, application, at))
        moment = wide(world.links[moment].next)
    return most


@compiled
def _slack(world: World, n: int, application: int, begin: float, end: float) -> int:
    """Return how many more instances those planned on node n in [begin, end) can bear by their own limits."""
    slack, moment = _slack_at(world, n, application, begin), wide(world.machines.nodes[n].first_planned)
    while moment >= 0:
        at = world.queue.jobs[world.links[moment].job].planned
        if begin < at < end and world.requests[world.slots[moment].request].application == application:
            slack = min(slack, _slack_at(world, n, application, at))
        moment = wide(world.links[moment].next)
    return slack


@compiled
def _slack_at(world: World, n: int, application: int, at: float) -> int:
    slack, i = MANY, wide(world.machines.nodes[n].first_planned)
    there = world.machines.residents[n, application] + _more_of_application(world, n, application, at)
    while i >= 0:
        holder, request = world.queue.jobs[world.links[i].job], world.requests[world.slots[i].request]
        alike = request.application == application
        if alike and holder.planned <= at < finish(holder.planned, holder.predicted):
            slack = min(slack, max(request.max_per_node - there, 0))
        i = wide(world.links[i].next)
    return slack


@compiled
def _more_of_application(world: World, n: int, application: int, at: float) -> int:
    jobs, links = world.queue.jobs, world.links
    more, i = 0, wide(world.machines.nodes[n].first_planned)
    while i >= 0:
        holder = jobs[links[i].job]
        alike = world.requests[world.slots[i].request].application == application
        more += alike and holder.planned <= at < finish(holder.planned, holder.predicted)
        i = wide(links[i].next)
    i = wide(world.machines.nodes[n].first_slot)
    while i >= 0:
        alike = world.requests[world.slots[i].request].application == application
        more -= alike and links[i].end <= at
        i = wide(links[i].next)
    return more
