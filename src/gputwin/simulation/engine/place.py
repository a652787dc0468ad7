"""Starting a job: all instances of all its groups find a node and devices, or none does."""

from __future__ import annotations

from typing import Any

from gputwin.simulation.engine.compiled import compiled
from gputwin.simulation.engine.index import best_node, node_room, refresh, touch
from gputwin.simulation.engine.state import give_back, take
from gputwin.simulation.engine.world import BY_SCORE, GANG, TOPOLOGY, World


@compiled
def fits(world: World, s: int, score: Any) -> bool:
    """Return whether each group of shape s has room for all its instances, each group taken alone."""
    shape = world.queue.shapes[s]
    enough = True
    for g in range(shape.first_group, shape.first_group + shape.groups):
        r = world.groups[g].request
        refresh(world.index, world.machines, world.requests, r, world.knobs, score)
        enough = enough and world.requests[r].room >= world.groups[g].size
    return enough


@compiled
def place(world: World, j: int, score: Any, devices: Any) -> bool:
    """Give every instance of job j its node and devices, or change nothing and return False."""
    shape = world.queue.shapes[world.queue.jobs[j].shape]
    i = world.queue.jobs[j].first_slot
    for g in range(shape.first_group, shape.first_group + shape.groups):
        r, size = world.groups[g].request, world.groups[g].size
        left, region, level = size, -1, 0
        while left > 0:
            refresh(world.index, world.machines, world.requests, r, world.knobs, score)
            if left == size:
                if world.requests[r].room < size:
                    break
                if size > 1 and world.options[GANG] == TOPOLOGY:
                    level, region = _closest_region(world, r, size)
            if size == 1 or world.options[GANG] == BY_SCORE:
                n = best_node(world.index, world.machines, world.requests, r, world.knobs, score)
                many = 1
            else:
                n = _fullest_node(world, r, left, level, region)
                many = min(node_room(world.index, world.machines, world.requests, r, n), left) if n >= 0 else 0
            if n < 0:
                break
            put = 0
            while put < many and _put(world, i, r, n, devices):
                i += 1
                put += 1
            left -= put
            if put < many:
                break
        if left > 0:
            unplace(world, world.queue.jobs[j].first_slot, i)
            return False
    return True


@compiled
def _put(world: World, i: int, r: int, n: int, devices: Any) -> bool:
    """Put one instance of r on node n; False where the policy finds no devices, though there is room."""
    chosen = 0
    if world.requests[r].gpu_count > 0:
        chosen = devices(world.machines, world.requests, r, n, world.knobs)
        if chosen == 0:
            return False
    take(world.machines, world.requests, r, n, chosen)
    touch(world.index, n)
    slot = world.slots[i]
    slot.node, slot.devices, slot.request = n, chosen, r
    return True


@compiled
def unplace(world: World, begin: int, end: int) -> None:
    """Take back the instances in slots begin..end."""
    for i in range(begin, end):
        slot = world.slots[i]
        give_back(world.machines, world.requests, slot.request, slot.node, slot.devices)
        touch(world.index, slot.node)
        slot.node = -1


@compiled
def _region_of(world: World, n: int, level: int) -> int:
    return world.machines.nodes[n].rack if level == 0 else world.machines.nodes[n].domain


@compiled
def _fullest_node(world: World, r: int, size: int, level: int, region: int) -> int:
    """Return the node with least room among those that hold `size` instances, else the one with most room.

    Only nodes of the region count, where one is given.
    """
    best, best_room = -1, 0
    for n in range(world.machines.nodes.size):
        if region >= 0 and _region_of(world, n, level) != region:
            continue
        room = node_room(world.index, world.machines, world.requests, r, n)
        if room == 0:
            continue
        holds, best_holds = room >= size, best_room >= size
        if best < 0 or (holds and (not best_holds or room < best_room)) or (not best_holds and room > best_room):
            best, best_room = n, room
    return best


@compiled
def _closest_region(world: World, r: int, size: int) -> tuple[int, int]:
    """Return (level, region): the rack or network domain with least room that holds the gang; -1: look everywhere.

    Everywhere is right too when one node can hold it all.
    """
    count = world.machines.nodes.size
    for level in range(2):
        regions = 0
        for n in range(count):
            regions = max(regions, _region_of(world, n, level) + 1)
            if node_room(world.index, world.machines, world.requests, r, n) >= size:
                return level, -1
        rooms = world.regions
        for k in range(regions):
            rooms[k] = 0
        for n in range(count):
            if _region_of(world, n, level) >= 0:
                rooms[_region_of(world, n, level)] += node_room(world.index, world.machines, world.requests, r, n)
        best = -1
        for k in range(regions):
            if rooms[k] >= size and (best < 0 or rooms[k] < rooms[best]):
                best = k
        if best >= 0:
            return level, best
    return 0, -1
