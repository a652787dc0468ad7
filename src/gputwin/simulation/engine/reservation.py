"""EASY's reservation: when and where the first blocked job will start, and how others may use its nodes till then.

Lifka, "The ANL/IBM SP Scheduling System", 1995; Mu'alem and Feitelson, 2001. The shadow time is the first believed
end of a running job at which the blocked job fits. Its instances are then given definite nodes and devices; a job that
is believed to end later may use of those nodes only what the reservation leaves.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gputwin.simulation.engine.compiled import compiled
from gputwin.simulation.engine.events import FINISH, next_time, pop, schedule
from gputwin.simulation.engine.index import FULL, next_fit, room_on, touch
from gputwin.simulation.engine.place import fits_now, place, unplace
from gputwin.simulation.engine.state import APPLICATIONS, WHOLE, Floats, change, wide
from gputwin.simulation.engine.world import (
    HIDDEN,
    NOTHING,
    RESERVED_COUNT,
    RESERVED_JOB,
    RUNNING_COUNT,
    SHOWN,
    STALE,
    World,
)


@compiled
def reserve(world: World, j: int, score: Any, devices: Any) -> None:
    """Reserve the earliest start of the blocked job j."""
    world.options[RESERVED_JOB] = j
    for k in range(world.options[RESERVED_COUNT]):
        world.rows[world.reserved[k].node] = -1
    world.options[RESERVED_COUNT] = 0
    world.reserved_from[0] = np.inf
    if world.queue.shapes[world.queue.jobs[j].shape].instances == 1:
        _reserve_one(world, j, score, devices)
    else:
        _reserve_gang(world, j, score, devices)
    _settle_rows(world)


@compiled
def _reserve_one(world: World, j: int, score: Any, devices: Any) -> None:
    """Reserve for a single instance: the node that can take it first, by each node's own believed ends."""
    machines, requests, slots = world.machines, world.requests, world.slots
    r = world.groups[world.queue.shapes[world.queue.jobs[j].shape].first_group].request
    soonest, top = np.inf, -np.inf
    for n in range(machines.nodes.size):
        if world.first_end[n] > soonest or not _enough_ends(world, r, n, soonest):
            continue
        # Free what runs here in order of believed end until the instance fits, then put it all back.
        i, freed = wide(machines.nodes[n].first_slot), 0
        while i >= 0 and world.links[i].end <= soonest:
            end = world.links[i].end
            while i >= 0 and world.links[i].end == end:
                change(machines, requests, slots[i].request, n, slots[i].devices, -1)
                freed += 1
                i = wide(world.links[i].next)
            if room_on(machines, requests, world.index.allowed, r, n, FULL) > 0:
                value = score(machines, requests, r, n, world.knobs)
                if end < soonest or value > top:
                    soonest, top = end, value
                    spot = world.reserved[0]
                    spot.node, spot.request, spot.devices = n, r, 0
                    if requests[r].gpu_count > 0:
                        spot.devices = devices(machines, requests, r, n, world.knobs)
                    world.options[RESERVED_COUNT] = 1
                break
        i = wide(machines.nodes[n].first_slot)
        for _ in range(freed):
            change(machines, requests, slots[i].request, n, slots[i].devices, 1)
            i = wide(world.links[i].next)
    world.reserved_from[0] = soonest


@compiled
def _enough_ends(world: World, r: int, n: int, until: float) -> bool:
    """Return whether node n will have as much GPU share free as an instance of r needs, if all ends as believed."""
    request, node, links = world.requests[r], world.machines.nodes[n], world.links
    if request.gpu_count == 0:
        return True
    if not world.index.allowed[r, node.model]:
        return False
    missing = request.gpu_count * request.gpu_milli - node.gpu_free
    i = wide(node.first_slot)
    while missing > 0 and i >= 0 and links[i].end <= until:
        missing -= links[i].gpu_milli
        i = wide(links[i].next)
    return missing <= 0


@compiled
def _reserve_gang(world: World, j: int, score: Any, devices: Any) -> None:
    """Reserve for a gang: free running jobs in order of believed end until all its instances fit."""
    jobs, slots, endings = world.queue.jobs, world.slots, world.endings
    endings.count[0] = 0
    for k in range(world.options[RUNNING_COUNT]):
        schedule(endings, jobs[world.running[k]].believed_end, FINISH, world.running[k])
    freed = 0
    while endings.count[0] > 0 and world.options[RESERVED_COUNT] == 0:
        end = next_time(endings)
        while next_time(endings) == end and endings.count[0] > 0:
            world.freed[freed] = pop(endings)[1]
            _shift(world, world.freed[freed], -1)
            freed += 1
        if fits_now(world, jobs[j].shape) and place(world, j, score, devices):
            world.reserved_from[0] = end
            size = world.queue.shapes[jobs[j].shape].instances
            world.options[RESERVED_COUNT] = size
            for k in range(size):
                spot, slot = world.reserved[k], slots[jobs[j].first_slot + k]
                spot.node, spot.devices, spot.request = slot.node, slot.devices, slot.request
            unplace(world, jobs[j].first_slot, jobs[j].first_slot + size)
    for k in range(freed - 1, -1, -1):
        _shift(world, world.freed[k], 1)


@compiled
def _shift(world: World, j: int, sign: int) -> None:
    """Free (sign -1) or take again (sign 1) what the running job j holds."""
    first = world.queue.jobs[j].first_slot
    for i in range(first, first + world.queue.shapes[world.queue.jobs[j].shape].instances):
        slot = world.slots[i]
        change(world.machines, world.requests, slot.request, slot.node, slot.devices, sign)
        touch(world.index, world.machines, slot.node, sign < 0)


APPLICATION, FIELDS = 4, 5
"""Withheld: CPU, memory, disk, RDMA, whether an instance counts as living there; then each device's share, memory."""


@compiled
def _settle_rows(world: World) -> None:
    """Let each reserved node have the row of its first instance, to be worked out when needed."""
    for k in range(world.options[RESERVED_COUNT]):
        n = world.reserved[k].node
        if world.rows[n] < 0:
            world.rows[n] = k
        world.veils[k] = STALE if world.rows[n] == k else NOTHING


@compiled
def refresh(world: World) -> None:
    """Work out what the reservation will need on each of its nodes beyond what ends there before it begins.

    World.withheld has one row per reserved instance; the row of a node's first instance carries all of that node. It
    stays right until a job starts or ends there.
    """
    for k in range(world.options[RESERVED_COUNT]):
        if world.veils[k] == STALE:
            _work_out(world, k)


@compiled
def _work_out(world: World, first: int) -> None:
    n, row, living = wide(world.reserved[first].node), world.withheld[first], False
    row[:] = 0.0
    for k in range(first, world.options[RESERVED_COUNT]):
        spot = world.reserved[k]
        if spot.node == n:
            world.withheld[k, APPLICATION] = _counts_as_living(world, k)
            living = living or world.withheld[k, APPLICATION] > 0.0
            add_row(world, row, spot.request, spot.devices, n, 1.0)
    i = world.machines.nodes[n].first_slot
    while i >= 0:
        if world.queue.jobs[world.links[i].job].believed_end <= world.reserved_from[0]:
            add_row(world, row, world.slots[i].request, world.slots[i].devices, n, -1.0)
        i = wide(world.links[i].next)
    world.veils[first] = SHOWN if living else NOTHING
    for f in range(row.size):
        row[f] = max(row[f], 0.0)
        if row[f] > 0.0:
            world.veils[first] = SHOWN


@compiled
def _counts_as_living(world: World, k: int) -> bool:
    """Return whether reserved instance k counts as living on its node: none of its application ends there in time."""
    spot = world.reserved[k]
    application = world.requests[spot.request].application
    if application < 0:
        return False
    needed = 1
    for other in range(k):
        alike = world.requests[world.reserved[other].request].application == application
        needed += world.reserved[other].node == spot.node and alike
    i = world.machines.nodes[spot.node].first_slot
    while i >= 0:
        ends = world.queue.jobs[world.links[i].job].believed_end <= world.reserved_from[0]
        needed -= ends and world.requests[world.slots[i].request].application == application
        i = wide(world.links[i].next)
    return needed > 0


@compiled
def veil(world: World, k: int, sign: int) -> None:
    """Hide (sign 1) or show again (sign -1) what row k withholds of its node; the index is not told."""
    n = wide(world.reserved[k].node)
    hide_amounts(world, world.withheld[k], n, sign)
    if world.machines.residents.shape[1] == APPLICATIONS:
        return
    for i in range(k, world.options[RESERVED_COUNT]):
        spot = world.reserved[i]
        if world.withheld[i, APPLICATION] > 0.0 and spot.node == n:
            world.machines.residents[n, world.requests[spot.request].application] += sign


@compiled
def withhold(world: World) -> None:
    """Hide on all reserved nodes what the reservation will need there."""
    for k in range(world.options[RESERVED_COUNT]):
        if world.veils[k] == SHOWN:
            withhold_row(world, k)


@compiled
def withhold_row(world: World, k: int) -> None:
    """Hide what row k withholds."""
    veil(world, k, 1)
    world.veils[k] = HIDDEN
    touch(world.index, world.machines, wide(world.reserved[k].node), False)


@compiled
def restore(world: World) -> None:
    """Show again all that is hidden."""
    for k in range(world.options[RESERVED_COUNT]):
        if world.veils[k] == HIDDEN:
            veil(world, k, -1)
            world.veils[k] = SHOWN
            touch(world.index, world.machines, wide(world.reserved[k].node), True)


@compiled
def fits_beside(world: World, s: int) -> bool:
    """Return whether each group of shape s, taken alone, fits beside what the reservation will need; nothing is hidden."""
    shape, count = world.queue.shapes[s], world.machines.nodes.size
    for g in range(shape.first_group, shape.first_group + shape.groups):
        r, n, room = wide(world.groups[g].request), -1, 0
        while room < world.groups[g].size:
            n = next_fit(world.index, world.machines, world.requests, r, n + 1, FULL) if n + 1 < count else -1
            if n < 0:
                return False
            k = wide(world.rows[n])
            veiled = k >= 0 and world.veils[k] == SHOWN
            if veiled:
                veil(world, k, 1)
            room += max(room_on(world.machines, world.requests, world.index.allowed, r, n, FULL), 0)
            if veiled:
                veil(world, k, -1)
    return True


@compiled
def add_row(world: World, row: Floats, r: int, devices: int, n: int, sign: float) -> None:
    """Add to a row of withheld amounts what one instance of r holds on node n."""
    request = world.requests[r]
    row[0] += sign * request.cpu
    row[1] += sign * request.memory
    row[2] += sign * request.disk
    row[3] += sign * request.rdma
    most = world.machines.gpus.shape[1]
    for d in range(world.machines.nodes[n].gpu_count):
        if devices >> d & 1:
            row[FIELDS + d] += sign * request.gpu_milli
            row[FIELDS + most + d] += sign * request.gpu_memory


@compiled
def hide_row(world: World, row: Floats, n: int, sign: int) -> None:
    """Hide (sign 1) or show again (sign -1) the amounts of a row on node n."""
    hide_amounts(world, row, n, sign)
    touch(world.index, world.machines, n, sign < 0)


@compiled
def hide_amounts(world: World, row: Floats, n: int, sign: int) -> None:
    """Do what `hide_row` does, and do not tell the index."""
    node = world.machines.nodes[n]
    node.cpu_free -= sign * int(row[0])
    node.memory_free -= sign * int(row[1])
    node.disk_free -= sign * int(row[2])
    node.rdma_free -= sign * int(row[3])
    most = world.machines.gpus.shape[1]
    for d in range(node.gpu_count):
        device = world.machines.gpus[n, d]
        was = device.free
        now = was - sign * int(row[FIELDS + d])
        device.free = now
        device.memory_free -= sign * int(row[FIELDS + most + d])
        node.gpus_whole += (now == WHOLE) - (was == WHOLE)
        node.gpu_free += now - was
