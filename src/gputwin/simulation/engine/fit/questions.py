"""The questions that everybody else asks: does it fit, where, how many times, and if not, what lacks room.

    room(world, r, n)       how many instances of request r node n has room for
    next_fit(world, r, n)   the first node from n on that has room for one
    total(world, r, enough) how many all nodes together have room for, counted no further than `enough`
    blocked_by(world, s)    a group of shape s that lacks room, taken alone

How they are answered is this folder's own business: from the nodes (`room.py`), a tree over them (`index.py`), or totals
that are kept for whoever waits (`totals.py`, `kinds.py`, `rows.py`, `thresholds.py`). The scores of placements
(`placing/scores.py`) work on the tree itself.
"""

from __future__ import annotations

from gputwin.simulation.engine.compiled import compiled, inlined
from gputwin.simulation.engine.fit import index as tree
from gputwin.simulation.engine.fit.index import FREED, FULL, GPU_ONLY, LOG_END, NO_LIMIT, room_on, room_up_to
from gputwin.simulation.engine.fit.totals import CAUGHT_UP, total_of
from gputwin.simulation.engine.queue.shape_tree import ANYTHING
from gputwin.simulation.engine.state.records import FREE_MODELS, wide
from gputwin.simulation.engine.trials.journal import OPEN
from gputwin.simulation.engine.world import World

_FEW = 32
"""With more changes, counting anew is cheaper."""
_UNKNOWN = -1
_next_fit = tree.next_fit


@inlined
def room(world: World, r: int, n: int) -> int:
    """Return how many instances of r fit on node n."""
    return room_on(world.machines, world.requests, world.index.allowed, r, n, FULL)


@inlined
def next_fit(world: World, r: int, start: int) -> int:
    """Return the first node from `start` on that fits an instance of r; -1 for none."""
    return _next_fit(world.index, world.machines, world.requests, r, start, FULL)


@compiled
def total(world: World, r: int, enough: int, counts: int) -> int:
    """Return how many instances of r fit on all nodes together; no more are counted once there are `enough`.

    `counts`: what of the request counts, as in `index.py`.
    """
    known = _known_total(world, r, enough, counts)
    return room_up_to(world.index, world.machines, world.requests, r, enough, counts) if known == _UNKNOWN else known


@inlined
def _known_total(world: World, r: int, enough: int, counts: int) -> int:
    """Return the total as it is kept, where somebody waits with it and it is up to date."""
    totals = world.totals
    up_to_date = totals.state[CAUGHT_UP] == world.index.log_end[LOG_END] and world.index.journal.state[OPEN] == 0
    if not up_to_date:
        return wide(_UNKNOWN)
    entry = totals.entries[r]
    if counts == GPU_ONLY:
        kind = totals.kinds.records[entry.kind]
        return kind.total if kind.holders > 0 else wide(_UNKNOWN)
    t = wide(r) if counts == FULL else wide(entry.no_limit) if counts == NO_LIMIT else wide(entry.no_network)
    if t < 0 or totals.entries[t].holders == 0:
        return wide(_UNKNOWN)
    # Where one node covers all who wait, the total says no more than that.
    covered = totals.entries[t].covered_by >= 0 and enough > totals.entries[t].covered
    return wide(_UNKNOWN) if covered else total_of(totals, t)


@compiled
def blocked_by(world: World, s: int) -> int:
    """Return a group of shape s that lacks room, taken alone; ANYTHING where each has room."""
    shape = world.queue.shapes[s]
    if shape.watched >= 0 and lacks_room(world, wide(shape.watched)):
        return wide(shape.watched)
    for g in range(shape.first_group, shape.first_group + shape.groups):
        if g != shape.watched and lacks_room(world, wide(g)):
            return wide(g)
    return ANYTHING


@compiled
def lacks_room(world: World, g: int) -> bool:
    """Return whether group g, taken alone, lacks room.

    How much room there was when it did not suffice is remembered with the request. There is more only where a node has
    changed since, and no more than what such nodes have now.
    """
    index, r, size = world.index, wide(world.groups[g].request), wide(world.groups[g].size)
    known = _known_total(world, r, size, FULL)
    if known != _UNKNOWN:
        return known < size
    request, end, mask = world.requests[r], index.log_end[LOG_END], index.log.size - 1
    if request.counted_at >= 0 and index.log_end[FREED] > request.counted_at:
        if end - request.counted_at > min(_FEW, index.log.size):
            request.counted_at = -1
        else:
            for k in range(request.counted_at, end):
                request.room += room(world, r, wide(index.log[k & mask]))
            request.counted_at = end
    if request.counted_at >= 0 and request.room < size:
        return True
    found = room_up_to(index, world.machines, world.requests, r, size, FULL)
    if found < size:
        request.room, request.counted_at = found, end
    return found < size


@inlined
def enough_free(world: World, s: int) -> bool:
    """Return whether as much is free over all nodes as a job of shape s asks for; places are not looked for."""
    machines, shape, cpu, memory = world.machines, world.queue.shapes[s], 0, 0
    for g in range(shape.first_group, shape.first_group + shape.groups):
        r, size = wide(world.groups[g].request), world.groups[g].size
        request = world.requests[r]
        cpu += size * request.cpu
        memory += size * request.memory
        if request.gpu_count > 0:
            milli = 0
            for m in range(machines.free.size - FREE_MODELS):
                if world.index.allowed[r, m]:
                    milli += machines.free[FREE_MODELS + m]
            if milli < size * request.gpu_count * request.gpu_milli:
                return False
    return machines.free[0] >= cpu and machines.free[1] >= memory
