"""EASY's reservation: when and where the first blocked job will start, and how others may still use its nodes till then.

Lifka, "The ANL/IBM SP Scheduling System", 1995; Mu'alem and Feitelson, 2001. The shadow time is the first believed
end of a running job at which the blocked job fits. Its instances are then given definite nodes and devices; a job that
is believed to end later may use of those nodes only what the reservation leaves.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from gputwin.simulation.engine.compiled import compiled

from gputwin.simulation.engine.fit import room
from gputwin.simulation.engine.index import touch
from gputwin.simulation.engine.place import fits, place, unplace
from gputwin.simulation.engine.state import WHOLE, Floats, give_back, take
from gputwin.simulation.engine.world import World


@compiled
def instances_of(world: World, s: int) -> int:
    """Return the number of instances of a job of shape s."""
    total = 0
    for g in range(world.shapes.first[s], world.shapes.first[s + 1]):
        total += world.shapes.size[g]
    return total


@compiled
def reserve(world: World, j: int, score: Any, devices: Any) -> None:
    """Reserve the earliest start of the blocked job j."""
    s = world.jobs.shape[j]
    world.reservation.job[0] = j
    if instances_of(world, s) == 1:
        _reserve_one(world, j, score, devices)
    else:
        _reserve_gang(world, j, score, devices)


@compiled
def _reserve_one(world: World, j: int, score: Any, devices: Any) -> None:
    """Reserve for a single instance: the node that can take it first, by each node's own believed ends."""
    nodes, requests, slots = world.nodes, world.requests, world.slots
    r = world.shapes.request[world.shapes.first[world.jobs.shape[j]]]
    soonest, best, top = np.inf, -1, -np.inf
    released = np.empty(_most_on_a_node(world), np.int64)
    for n in range(nodes.cpu.size):
        if requests.gpu_count[r] > 0 and not requests.allowed[r, nodes.model[n]]:
            continue
        # Release what runs here in order of believed end until the instance fits, then put it all back.
        count, when, last = 0, -np.inf, -1
        while True:
            i, end = _next_to_end(world, n, when, last)
            if i < 0 or end > soonest:
                break
            give_back(nodes, requests, slots.request[i], n, slots.devices[i])
            released[count] = i
            count += 1
            when, last = end, i
            following, at = _next_to_end(world, n, when, last)
            if following >= 0 and at == end:
                continue
            if room(nodes, requests, r, n) > 0:
                value = score(nodes, requests, r, n, world.knobs)
                if end < soonest or value > top:
                    soonest, best, top = end, n, value
                    chosen = devices(nodes, requests, r, n, world.knobs) if requests.gpu_count[r] > 0 else 0
                    world.reservation.devices[0] = chosen
                break
        for k in range(count):
            i = released[k]
            take(nodes, requests, slots.request[i], n, slots.devices[i])
    world.reservation.time[0] = soonest
    world.reservation.count[0] = 1 if best >= 0 else 0
    world.reservation.node[0] = best
    world.reservation.request[0] = r


@compiled
def _most_on_a_node(world: World) -> int:
    most = 0
    for n in range(world.nodes.cpu.size):
        count, i = 0, world.slots.first_on_node[n]
        while i >= 0:
            count += 1
            i = world.slots.next[i]
        most = max(most, count)
    return most


@compiled
def _next_to_end(world: World, n: int, after: float, last: int) -> tuple[int, float]:
    """Return the instance on node n that is believed to end next after (time, slot), and when."""
    best, soonest = -1, np.inf
    i = world.slots.first_on_node[n]
    while i >= 0:
        end = world.runs.believed_end[world.slots.job[i]]
        later = end > after or (end == after and i > last)
        if later and (end < soonest or (end == soonest and i < best)):
            best, soonest = i, end
        i = world.slots.next[i]
    return best, soonest


@compiled
def _reserve_gang(world: World, j: int, score: Any, devices: Any) -> None:
    """Reserve for a gang: release running jobs in order of believed end until all its instances fit."""
    runs, slots, jobs = world.runs, world.slots, world.jobs
    running = runs.running[: runs.running_count[0]].copy()
    ends = np.empty(running.size)
    for k in range(running.size):
        ends[k] = runs.believed_end[running[k]]
    order = np.argsort(ends, kind="mergesort")
    released = 0
    world.reservation.time[0] = np.inf
    world.reservation.count[0] = 0
    first = jobs.first_slot[j]
    size = instances_of(world, jobs.shape[j])
    while released < order.size:
        end = ends[order[released]]
        while released < order.size and ends[order[released]] == end:
            _free_slots(world, running[order[released]])
            released += 1
        if fits(world, jobs.shape[j], score) and place(world, j, score, devices):
            world.reservation.time[0] = end
            world.reservation.count[0] = size
            for k in range(size):
                world.reservation.node[k] = slots.node[first + k]
                world.reservation.devices[k] = slots.devices[first + k]
                world.reservation.request[k] = slots.request[first + k]
            unplace(world, first, first + size)
            break
    for k in range(released - 1, -1, -1):
        job = running[order[k]]
        for i in range(jobs.first_slot[job], jobs.first_slot[job] + instances_of(world, jobs.shape[job])):
            take(world.nodes, world.requests, slots.request[i], slots.node[i], slots.devices[i])
            touch(world.index, slots.node[i])


@compiled
def _free_slots(world: World, job: int) -> None:
    slots = world.slots
    for i in range(world.jobs.first_slot[job], world.jobs.first_slot[job] + instances_of(world, world.jobs.shape[job])):
        give_back(world.nodes, world.requests, slots.request[i], slots.node[i], slots.devices[i])
        touch(world.index, slots.node[i])


FIELDS = 5
"""CPU, memory, disk, RDMA, application instances withheld on a node; devices follow."""


@compiled
def withhold(world: World, withheld: Floats) -> None:
    """Hide from reserved nodes what the reservation will need beyond what ends there before it begins.

    `withheld` is scratch of one row per reserved instance; the first row of a node carries all of that node.
    """
    nodes, reservation = world.nodes, world.reservation
    withheld[:, :] = 0.0
    for k in range(reservation.count[0]):
        n, row = reservation.node[k], _row_of(world, k)
        _add(world, withheld[row], reservation.request[k], reservation.devices[k], n, 1.0)
    for k in range(reservation.count[0]):
        if _row_of(world, k) != k:
            continue
        n = reservation.node[k]
        i = world.slots.first_on_node[n]
        while i >= 0:
            if world.runs.believed_end[world.slots.job[i]] <= reservation.time[0]:
                _add(world, withheld[k], world.slots.request[i], world.slots.devices[i], n, -1.0)
            i = world.slots.next[i]
        for f in range(withheld.shape[1]):
            withheld[k, f] = max(withheld[k, f], 0.0)
        _hide(world, withheld[k], k, n, 1)
        touch(world.index, n)


@compiled
def restore(world: World, withheld: Floats) -> None:
    """Undo `withhold`."""
    for k in range(world.reservation.count[0]):
        if _row_of(world, k) == k:
            _hide(world, withheld[k], k, world.reservation.node[k], -1)
            touch(world.index, world.reservation.node[k])


@compiled
def _row_of(world: World, k: int) -> int:
    for row in range(k):
        if world.reservation.node[row] == world.reservation.node[k]:
            return row
    return k


@compiled
def _add(world: World, row: Floats, r: int, devices: int, n: int, sign: float) -> None:
    requests = world.requests
    row[0] += sign * requests.cpu[r]
    row[1] += sign * requests.memory[r]
    row[2] += sign * requests.disk[r]
    row[3] += sign * requests.rdma[r]
    head = world.shapes.request[world.shapes.first[world.jobs.shape[world.reservation.job[0]]]]
    if requests.application[r] >= 0 and requests.application[r] == requests.application[head]:
        row[4] += sign
    most = world.nodes.gpu_free.shape[1]
    for d in range(world.nodes.gpu_count[n]):
        if devices >> d & 1:
            row[FIELDS + d] += sign * requests.gpu_milli[r]
            row[FIELDS + most + d] += sign * requests.gpu_memory[r]


@compiled
def _hide(world: World, row: Floats, k: int, n: int, sign: int) -> None:
    nodes = world.nodes
    nodes.cpu_free[n] -= sign * int(row[0])
    nodes.memory_free[n] -= sign * int(row[1])
    nodes.disk_free[n] -= sign * int(row[2])
    nodes.rdma_free[n] -= sign * int(row[3])
    application = world.requests.application[world.reservation.request[k]]
    if application >= 0:
        nodes.application_count[n, application] += sign * int(row[4])
    most = nodes.gpu_free.shape[1]
    for d in range(nodes.gpu_count[n]):
        was = nodes.gpu_free[n, d]
        now = was - sign * int(row[FIELDS + d])
        nodes.gpu_free[n, d] = now
        nodes.gpus_whole[n] += (now == WHOLE) - (was == WHOLE)
        nodes.gpu_total_free[n] += now - was
        nodes.gpu_memory_free[n, d] -= sign * int(row[FIELDS + most + d])
