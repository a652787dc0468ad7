"""What keeps a job of a shape from starting now: the cause that its waiting is charged to."""

from __future__ import annotations

from gputwin.simulation.engine.attribution.causes import (
    CPU_MEMORY,
    FRAGMENTATION,
    GPU,
    GPU_MODEL,
    MAX_PER_NODE,
    OUTAGE,
    RDMA,
    STARTUP,
)
from gputwin.simulation.engine.compiled import compiled, inlined
from gputwin.simulation.engine.fit.index import FULL, GPU_ONLY, LOG_END, NO_LIMIT, NO_NETWORK
from gputwin.simulation.engine.fit.questions import total
from gputwin.simulation.engine.fit.totals import KNOWN
from gputwin.simulation.engine.state.outages import BOOTS, OUT, hidden_room
from gputwin.simulation.engine.state.records import FREE_MODELS, wide
from gputwin.simulation.engine.world import World


@compiled
def reason(world: World, s: int) -> int:
    """Return what keeps a job of shape s from starting now."""
    booting = world.outages.count[BOOTS]
    if booting > 0 and _would_fit(world, s, True):
        return wide(STARTUP)
    if world.outages.count[OUT] > booting and _would_fit(world, s, False):
        return wide(OUTAGE)
    alone = world.queue.shapes[s].joined == KNOWN and needs_no_totals(world, s)
    return _cause_of(world, s, alone)


@compiled
def _would_fit(world: World, s: int, booting: bool) -> bool:
    """Return whether shape s lacks room now, and each of its groups would have it if no node were out.

    `booting`: if those that boot were up.
    """
    shape, lacks = world.queue.shapes[s], False
    for g in range(shape.first_group, shape.first_group + shape.groups):
        r, size = wide(world.groups[g].request), wide(world.groups[g].size)
        if total(world, r, size, FULL) < size:
            lacks = True
            hidden = hidden_room(world.outages, world.machines, world.requests, world.index.allowed, r, booting)
            visible = size - hidden
            if visible > 0 and total(world, r, visible, FULL) < visible:
                return False
    return lacks


@inlined
def needs_no_totals(world: World, s: int) -> bool:
    """Return whether shape s has no entries: nobody asks whether it has room, since it has none while it waits."""
    shape = world.queue.shapes[s]
    if world.settings[0].totals != 0 or shape.groups > 1:
        return False
    request = world.requests[world.groups[shape.first_group].request]
    return request.max_per_node < 0 and request.rdma == 0


@compiled
def _cause_of(world: World, s: int, lacks_room: bool) -> int:
    """Return what keeps a job of shape s from starting now; `lacks_room`: it has one group, known to have no room."""
    index, free, shape = world.index, world.machines.free, world.queue.shapes[s]
    # A shape of one group that is known not to fit need not be asked again.
    asked_before = shape.groups == 1 and shape.fits == 0 and shape.checked == index.log_end[LOG_END]
    alone = lacks_room or asked_before
    for g in range(shape.first_group, shape.first_group + shape.groups):
        r, size = wide(world.groups[g].request), wide(world.groups[g].size)
        request = world.requests[r]
        if not alone and total(world, r, size, FULL) >= size:
            continue
        if request.gpu_count > 0:
            needed = size * request.gpu_count * request.gpu_milli
            allowed, everywhere = 0, 0
            for m in range(free.size - FREE_MODELS):
                everywhere += free[FREE_MODELS + m]
                if index.allowed[r, m]:
                    allowed += free[FREE_MODELS + m]
            if allowed < needed:
                return GPU_MODEL if everywhere >= needed else GPU
            if total(world, r, size, GPU_ONLY) < size:
                return FRAGMENTATION
        if request.max_per_node >= 0 and total(world, r, size, NO_LIMIT) >= size:
            return MAX_PER_NODE
        if request.rdma > 0 and total(world, r, size, NO_NETWORK) >= size:
            return RDMA
        enough = free[0] >= size * request.cpu and free[1] >= size * request.memory and free[2] >= size * request.disk
        return FRAGMENTATION if request.gpu_count == 0 and enough else CPU_MEMORY
    # Each group would fit alone: together they get in each other's way.
    return FRAGMENTATION
