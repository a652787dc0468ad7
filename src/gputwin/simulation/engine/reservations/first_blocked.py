"""EASY's reservation: when and where the first blocked job will start.

Lifka, "The ANL/IBM SP Scheduling System", 1995; Mu'alem and Feitelson, 2001. The shadow time is the first believed
end of a running job at which the blocked job fits. Its instances are then given definite nodes and devices; a job that
is believed to end later may use of those nodes only what the reservation leaves (`mask.py`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gputwin.simulation.engine.compiled import compiled
from gputwin.simulation.engine.fit.index import move
from gputwin.simulation.engine.fit.questions import room
from gputwin.simulation.engine.placing.place import fits_now, place
from gputwin.simulation.engine.reservations.mask import settle_rows
from gputwin.simulation.engine.state.events import FINISH, next_time, pop, schedule
from gputwin.simulation.engine.state.records import change, wide
from gputwin.simulation.engine.trials.journal import begin, keep
from gputwin.simulation.engine.trials.undo import begin_for, undo
from gputwin.simulation.engine.world import World


@compiled
def reserve(world: World, j: int, score: Any, devices: Any) -> None:
    """Reserve the earliest start of the blocked job j."""
    world.counters[0].reserved_job = j
    for k in range(world.counters[0].reserved):
        world.rows[world.reserved[k].node] = -1
    world.counters[0].reserved = 0
    world.reserved_from[0] = np.inf
    if world.queue.shapes[world.queue.jobs[j].shape].instances == 1:
        _reserve_one(world, j, score, devices)
    else:
        _reserve_gang(world, j, score, devices)
    settle_rows(world)


@compiled
def _reserve_one(world: World, j: int, score: Any, devices: Any) -> None:
    """Reserve for a single instance: the node that can take it first, by each node's own believed ends."""
    machines, requests, slots = world.machines, world.requests, world.slots
    r = world.groups[world.queue.shapes[world.queue.jobs[j].shape].first_group].request
    soonest, top = np.inf, -np.inf
    for n in range(machines.nodes.size):
        if world.first_end[n] > soonest or not _enough_ends(world, r, n, soonest):
            continue
        # Free on trial what runs here, in order of believed end, until the instance fits.
        begin(world.index.journal, machines)
        keep(world.index.journal, machines, wide(n))
        i = wide(machines.nodes[n].first_slot)
        while i >= 0 and world.links[i].end <= soonest:
            end = world.links[i].end
            while i >= 0 and world.links[i].end == end:
                change(machines, requests, slots[i].request, n, slots[i].devices, -1)
                i = wide(world.links[i].next)
            if room(world, r, n) > 0:
                value = score(world.index, machines, requests, r, n, world.knobs)
                if end < soonest or value > top:
                    soonest, top = end, value
                    spot = world.reserved[0]
                    spot.node, spot.request, spot.devices = n, r, 0
                    if requests[r].gpu_count > 0:
                        spot.devices = devices(machines, requests, r, n, world.knobs)
                    world.counters[0].reserved = 1
                break
        undo(world.index, machines)
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
    for k in range(world.counters[0].running):
        schedule(endings, jobs[world.running[k]].believed_end, FINISH, world.running[k])
    begin_for(world, wide(jobs[j].shape), score)
    while endings.count[0] > 0 and world.counters[0].reserved == 0:
        end = next_time(endings)
        while next_time(endings) == end and endings.count[0] > 0:
            _free(world, pop(endings)[1])
        if fits_now(world, jobs[j].shape) and place(world, j, score, devices):
            world.reserved_from[0] = end
            size = world.queue.shapes[jobs[j].shape].instances
            world.counters[0].reserved = size
            for k in range(size):
                spot, slot = world.reserved[k], slots[jobs[j].first_slot + k]
                spot.node, spot.devices, spot.request = slot.node, slot.devices, slot.request
    undo(world.index, world.machines)


@compiled
def _free(world: World, j: int) -> None:
    """Free what the running job j holds."""
    first = world.queue.jobs[j].first_slot
    for i in range(first, first + world.queue.shapes[world.queue.jobs[j].shape].instances):
        slot = world.slots[i]
        r, n = wide(slot.request), wide(slot.node)
        move(world.index, world.machines, world.requests, r, n, slot.devices, wide(-1))
