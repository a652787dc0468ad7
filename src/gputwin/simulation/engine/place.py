"""Starting a job: all instances of all its groups find a node and devices, or none does."""

from __future__ import annotations

from typing import Any

import numpy as np
from gputwin.simulation.engine.compiled import compiled

from gputwin.simulation.engine.index import ALL, best_node, node_room, refresh, touch
from gputwin.simulation.engine.state import give_back, take
from gputwin.simulation.engine.world import BY_SCORE, GANG, TOPOLOGY, World


@compiled
def fits(world: World, s: int, score: Any) -> bool:
    """Return whether each group of shape s has room for all its instances, each group taken alone."""
    for g in range(world.shapes.first[s], world.shapes.first[s + 1]):
        r = world.shapes.request[g]
        refresh(world.index, world.nodes, world.requests, r, world.knobs, score)
        if world.index.total[r, ALL] < world.shapes.size[g]:
            return False
    return True


@compiled
def place(world: World, j: int, score: Any, devices: Any) -> bool:
    """Give every instance of job j its node and devices, or change nothing and return False."""
    s = world.jobs.shape[j]
    i = first = world.jobs.first_slot[j]
    for g in range(world.shapes.first[s], world.shapes.first[s + 1]):
        r, size = world.shapes.request[g], world.shapes.size[g]
        refresh(world.index, world.nodes, world.requests, r, world.knobs, score)
        if world.index.total[r, ALL] < size:
            unplace(world, first, i)
            return False
        if size == 1 or world.options[GANG] == BY_SCORE:
            for _ in range(size):
                n = best_node(world.index, world.nodes, world.requests, r, world.knobs, score)
                if n < 0:
                    unplace(world, first, i)
                    return False
                _put(world, i, r, n, devices)
                i += 1
                refresh(world.index, world.nodes, world.requests, r, world.knobs, score)
        else:
            i = _place_gang(world, i, r, size, score, devices)
    return True


@compiled
def _put(world: World, i: int, r: int, n: int, devices: Any) -> None:
    chosen = 0
    if world.requests.gpu_count[r] > 0:
        chosen = devices(world.nodes, world.requests, r, n, world.knobs)
    take(world.nodes, world.requests, r, n, chosen)
    touch(world.index, n)
    world.slots.node[i] = n
    world.slots.devices[i] = chosen
    world.slots.request[i] = r


@compiled
def unplace(world: World, begin: int, end: int) -> None:
    """Take back the instances in slots begin..end."""
    for i in range(begin, end):
        n = world.slots.node[i]
        give_back(world.nodes, world.requests, world.slots.request[i], n, world.slots.devices[i])
        touch(world.index, n)
        world.slots.node[i] = -1


@compiled
def _place_gang(world: World, i: int, r: int, size: int, score: Any, devices: Any) -> int:
    """Place `size` instances on few nodes, close together where asked; the caller knows that there is room.

    Each step takes the smallest node that holds all that remain, or else the one that holds most of them.
    """
    region_of, region = world.nodes.rack, -1
    if world.options[GANG] == TOPOLOGY:
        region_of, region = _closest_region(world, r, size)
    while size > 0:
        n = _fullest_node(world, r, size, region_of, region)
        for _ in range(min(node_room(world.index, world.nodes, world.requests, r, n), size)):
            _put(world, i, r, n, devices)
            i += 1
            size -= 1
        refresh(world.index, world.nodes, world.requests, r, world.knobs, score)
    return i


@compiled
def _fullest_node(world: World, r: int, size: int, region_of: Any, region: int) -> int:
    best, best_room = -1, 0
    for n in range(world.nodes.cpu.size):
        if region >= 0 and region_of[n] != region:
            continue
        room = node_room(world.index, world.nodes, world.requests, r, n)
        if room == 0:
            continue
        holds, best_holds = room >= size, best_room >= size
        if best < 0 or (holds and (not best_holds or room < best_room)) or (not best_holds and room > best_room):
            best, best_room = n, room
    return best


@compiled
def _closest_region(world: World, r: int, size: int) -> tuple[Any, int]:
    """Return the smallest region that holds the gang: one node's rack, a rack, a domain; -1: the whole cluster."""
    for level in range(2):
        region_of = world.nodes.rack if level == 0 else world.nodes.domain
        rooms = np.zeros(region_of.max() + 1, np.int64)
        single = -1
        for n in range(region_of.size):
            room = node_room(world.index, world.nodes, world.requests, r, n)
            if region_of[n] >= 0:
                rooms[region_of[n]] += room
            if room >= size and single < 0:
                single = n
        if single >= 0:
            return region_of, -1
        best = -1
        for k in range(rooms.size):
            if rooms[k] >= size and (best < 0 or rooms[k] < rooms[best]):
                best = k
        if best >= 0:
            return region_of, best
    return world.nodes.rack, -1
