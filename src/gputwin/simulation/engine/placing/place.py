"""Starting a job: all instances of all its groups find a node and devices, or none does."""

from __future__ import annotations

from typing import Any

from gputwin.simulation.engine.compiled import compiled, inlined
from gputwin.simulation.engine.fit.index import FREED, FULL, LOG_END, move
from gputwin.simulation.engine.fit.questions import next_fit, room, total
from gputwin.simulation.engine.placing.scores import best_node, rank_again, rank_nodes, ranks
from gputwin.simulation.engine.placing.search import place_by_search
from gputwin.simulation.engine.state.records import wide
from gputwin.simulation.engine.world import BY_SCORE, TOPOLOGY, World

_FEW = 8


@compiled
def fits(world: World, s: int) -> bool:
    """Return whether each group of shape s has room for all its instances, each group taken alone.

    What did not fit still does not while nothing is freed, and a single instance fits only where something changed.
    """
    shape, ends = world.queue.shapes[s], world.index.log_end
    since, checked = ends[LOG_END] - shape.checked, shape.checked
    if shape.fits < 0 or since > 0:
        shape.checked = ends[LOG_END]
        if shape.fits == 0 and ends[FREED] <= checked:
            return False
        if shape.fits == 0 and shape.instances == 1 and since <= min(_FEW, world.index.log.size):
            shape.fits = _fits_where_changed(world, s, checked)
        else:
            shape.fits = fits_now(world, s)
    return shape.fits == 1


@compiled
def fits_now(world: World, s: int) -> bool:
    """Return the same without remembering anything."""
    shape = world.queue.shapes[s]
    for g in range(shape.first_group, shape.first_group + shape.groups):
        group = world.groups[g]
        if total(world, wide(group.request), wide(group.size), FULL) < wide(group.size):
            return False
    return True


@compiled
def _fits_where_changed(world: World, s: int, since: int) -> bool:
    """Return whether the single instance of shape s fits on a node changed after the log's position `since`."""
    index, r = world.index, wide(world.groups[world.queue.shapes[s].first_group].request)
    for k in range(since, index.log_end[LOG_END]):
        n = wide(index.log[k & (index.log.size - 1)])
        if room(world, r, n) > 0:
            return True
    return False


@inlined
def place_one(world: World, j: int, score: Any, devices: Any) -> bool:
    """Give the only instance of job j its node and devices, or return False."""
    r = wide(world.groups[world.queue.shapes[world.queue.jobs[j].shape].first_group].request)
    n = best_node(world.index, world.machines, world.requests, r, world.knobs, score)
    return n >= 0 and _put(world, world.queue.jobs[j].first_slot, r, n, devices)


@compiled
def place(world: World, j: int, score: Any, devices: Any) -> bool:
    """Give every instance of job j its node and devices, or change nothing and return False.

    Where the roles of a gang get in each other's way, it is placed by search, so that one that fits is not refused.
    """
    if place_in_order(world, j, score, devices):
        return True
    # The search knows no MIG slices.
    searches = world.settings[0].mig == 0 and world.queue.shapes[world.queue.jobs[j].shape].groups > 1
    return searches and place_by_search(world, j)


@compiled
def place_in_order(world: World, j: int, score: Any, devices: Any) -> bool:
    """Do the same role by role, in the order of the shape's groups (the hardest first), without going back."""
    shape = world.queue.shapes[world.queue.jobs[j].shape]
    i = world.queue.jobs[j].first_slot
    freed = world.index.log_end[FREED]
    in_rack = world.settings[0].delays != 0 and world.lives.forms[world.queue.jobs[j].shape].in_rack != 0
    for g in range(shape.first_group, shape.first_group + shape.groups):
        r, size = wide(world.groups[g].request), wide(world.groups[g].size)
        left, region, level = size, -1, 0
        by_score = world.settings[0].gang == BY_SCORE and not in_rack
        if size > 1:
            if total(world, r, size, FULL) < size:
                left = size + 1
            elif in_rack:
                region, _ = _best_region(world, r, size, wide(level))
                left = size if region >= 0 else size + 1
            elif world.settings[0].gang == TOPOLOGY:
                level, region = _closest_region(world, r, size)
        if 1 < left <= size and by_score and ranks(world.index, world.requests, r):
            put = _put_by_rank(world, i, r, size, score, devices)
            i += put
            left = 0 if put == size else size + 1
        while 0 < left <= size:
            if size == 1 or by_score:
                n = best_node(world.index, world.machines, world.requests, r, world.knobs, score)
                many = 1
            else:
                n = _fullest_node(world, r, left, level, region)
                many = min(room(world, r, n), left) if n >= 0 else 0
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
            # All is as it was: what did not fit still does not.
            world.index.log_end[FREED] = freed
            return False
    return True


@compiled
def _put_by_rank(world: World, i: int, r: int, size: int, score: Any, devices: Any) -> int:
    """Put `size` instances of r, from slot i on, each on the best node as it is then; return how many found one."""
    count = rank_nodes(world.index, world.machines, world.requests, r, size, world.knobs, score)
    for put in range(size):
        if count == 0 or not _put(world, i + put, r, wide(world.index.ranking[0].node), devices):
            return wide(put)
        count = rank_again(world.index, world.machines, world.requests, r, count, world.knobs, score)
    return size


@compiled
def all_fit(world: World, j: int, score: Any, devices: Any) -> bool:
    """Return whether job j fits now; nothing stays changed."""
    s = wide(world.queue.jobs[j].shape)
    if not fits_now(world, s):
        return False
    if world.queue.shapes[s].groups == 1:
        return True
    begin = world.queue.jobs[j].first_slot
    if not place(world, j, score, devices):
        return False
    unplace(world, begin, begin + world.queue.shapes[s].instances)
    return True


@compiled
def add_instances(world: World, r: int, begin: int, end: int, score: Any, devices: Any) -> bool:
    """Place instances of r in slots begin..end one by one, by score; all of them, or none and False."""
    freed = world.index.log_end[FREED]
    for i in range(begin, end):
        n = best_node(world.index, world.machines, world.requests, r, world.knobs, score)
        if n < 0 or not _put(world, wide(i), r, n, devices):
            unplace(world, begin, wide(i))
            world.index.log_end[FREED] = freed
            return False
    return True


@inlined
def _put(world: World, i: int, r: int, n: int, devices: Any) -> bool:
    """Put one instance of r on node n; False where the policy finds no devices, though there is room."""
    chosen = 0
    if world.requests[r].gpu_count > 0:
        chosen = devices(world.machines, world.requests, r, n, world.knobs)
        if chosen == 0:
            return False
    move(world.index, world.machines, world.requests, r, n, wide(chosen), wide(1))
    slot = world.slots[i]
    slot.node, slot.devices, slot.request = n, chosen, r
    return True


@compiled
def occupy(world: World, begin: int, end: int) -> None:
    """Take what the instances in slots begin..end need, where a trial or a plan has found them places."""
    for i in range(begin, end):
        slot = world.slots[i]
        move(world.index, world.machines, world.requests, wide(slot.request), wide(slot.node), slot.devices, wide(1))


@compiled
def unplace(world: World, begin: int, end: int) -> None:
    """Take back the instances in slots begin..end."""
    for i in range(begin, end):
        slot = world.slots[i]
        move(world.index, world.machines, world.requests, wide(slot.request), wide(slot.node), slot.devices, wide(-1))
        slot.node = -1


@inlined
def _following(world: World, r: int, n: int) -> int:
    """Return the first node after n that fits r; -1 for none."""
    if n + 1 >= world.machines.nodes.size:
        return -1
    return next_fit(world, r, n + 1)


@inlined
def _region_of(world: World, n: int, level: int) -> int:
    return world.machines.nodes[n].rack if level == 0 else world.machines.nodes[n].domain


@compiled
def _fullest_node(world: World, r: int, size: int, level: int, region: int) -> int:
    """Return the node with least room among those that hold `size` instances, else the one with most room.

    Only nodes of the region count, where one is given.
    """
    best, best_room = -1, 0
    n = _following(world, r, wide(-1))
    while n >= 0:
        if region < 0 or _region_of(world, n, level) == region:
            found = room(world, r, n)
            holds, best_holds = found >= size, best_room >= size
            if best < 0 or (holds and (not best_holds or found < best_room)) or (not best_holds and found > best_room):
                best, best_room = n, found
        n = _following(world, r, n)
    return best


@compiled
def _closest_region(world: World, r: int, size: int) -> tuple[int, int]:
    """Return (level, region): the rack or network domain with least room that holds the gang; -1: look everywhere.

    Everywhere is right too when one node can hold it all.
    """
    for level in range(2):
        best, on_one_node = _best_region(world, r, size, wide(level))
        if on_one_node or best >= 0:
            return level, wide(-1) if on_one_node else best
    return 0, -1


@compiled
def _best_region(world: World, r: int, size: int, level: int) -> tuple[int, bool]:
    """Return the rack (level 0) or network domain (1) with least room that holds `size` instances of r (-1: none), and
    whether one node holds them.
    """
    rooms, best, on_one_node = world.regions, wide(-1), False
    rooms[:] = 0
    n = _following(world, r, wide(-1))
    while n >= 0:
        found = room(world, r, n)
        on_one_node = on_one_node or found >= size
        if _region_of(world, n, level) >= 0:
            rooms[_region_of(world, n, level)] += found
        n = _following(world, r, n)
    for k in range(rooms.size):
        if rooms[k] >= size and (best < 0 or rooms[k] < rooms[best]):
            best = wide(k)
    return best, on_one_node
