"""What EASY's reservation keeps from others: jobs believed to end after it begins may not use what it will need.

Of each reserved node that is what the reservation takes beyond what ends there before it begins. It is worked out once
and stays right until a job starts or ends on the node. It is hidden while such a job is placed: on all reserved nodes, or
only on those it would otherwise go to.
"""

from __future__ import annotations

from gputwin.simulation.engine.compiled import compiled, inlined
from gputwin.simulation.engine.fit.index import touch
from gputwin.simulation.engine.fit.questions import next_fit, room
from gputwin.simulation.engine.state.records import APPLICATIONS, WHOLE, Floats, wide
from gputwin.simulation.engine.trials.journal import keep
from gputwin.simulation.engine.world import HIDDEN, NOTHING, SHOWN, STALE, World

APPLICATION, SHARES, FIELDS = 4, 5, 6
"""Withheld: CPU, memory, disk, RDMA, whether an instance counts as living there, the sum of shares; then each device's
share, and each one's memory."""


@compiled
def settle_rows(world: World) -> None:
    """Let each reserved node have the row of its first instance, to be worked out when needed."""
    for k in range(world.counters[0].reserved):
        n = world.reserved[k].node
        if world.rows[n] < 0:
            world.rows[n] = k
        world.masks[k] = STALE if world.rows[n] == k else NOTHING


@compiled
def refresh(world: World) -> None:
    """Work out what the reservation will need on each of its nodes beyond what ends there before it begins.

    World.withheld has one row per reserved instance; the row of a node's first instance carries all of that node. It
    stays right until a job starts or ends there.
    """
    for k in range(world.counters[0].reserved):
        if world.masks[k] == STALE:
            _work_out(world, k)


@compiled
def _work_out(world: World, first: int) -> None:
    n, row, living = wide(world.reserved[first].node), world.withheld[first], False
    row[:] = 0.0
    for k in range(first, world.counters[0].reserved):
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
    world.masks[first] = SHOWN if living else NOTHING
    for f in range(row.size):
        row[f] = max(row[f], 0.0)
        if row[f] > 0.0:
            world.masks[first] = SHOWN
    for d in range(world.machines.nodes[n].gpu_count):
        row[SHARES] += row[FIELDS + d]


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
def apply_mask(world: World, k: int, sign: int) -> None:
    """Hide (sign 1) or show again (sign -1) what row k withholds of its node; the index does not know of it."""
    n = wide(world.reserved[k].node)
    _hide_amounts(world, world.withheld[k], n, sign)
    if world.machines.residents.shape[1] == APPLICATIONS:
        return
    for i in range(k, world.counters[0].reserved):
        spot = world.reserved[i]
        if world.withheld[i, APPLICATION] > 0.0 and spot.node == n:
            world.machines.residents[n, world.requests[spot.request].application] += sign


@compiled
def withhold(world: World) -> None:
    """Hide on all reserved nodes what the reservation will need there; a trial is open."""
    for k in range(world.counters[0].reserved):
        if world.masks[k] == SHOWN:
            withhold_row(world, k)


@compiled
def withhold_row(world: World, k: int) -> None:
    """Hide what row k withholds; a trial is open."""
    n = wide(world.reserved[k].node)
    keep(world.index.journal, world.machines, n)
    apply_mask(world, k, 1)
    world.masks[k] = HIDDEN
    touch(world.index, world.machines, n, False)


@compiled
def show_again(world: World) -> None:
    """Note that nothing is hidden any more: the trial in which it was ends."""
    for k in range(world.counters[0].reserved):
        if world.masks[k] == HIDDEN:
            world.masks[k] = SHOWN


@compiled
def lacks_beside(world: World, s: int) -> int:
    """Return a group of shape s that, taken alone, lacks room beside what the reservation will need; -1 for none.

    Nothing is hidden.
    """
    shape, count = world.queue.shapes[s], world.machines.nodes.size
    for g in range(shape.first_group, shape.first_group + shape.groups):
        r, n, found = wide(world.groups[g].request), -1, 0
        while found < world.groups[g].size:
            n = next_fit(world, r, n + 1) if n + 1 < count else -1
            if n < 0:
                return wide(g)
            k = wide(world.rows[n])
            masked = k >= 0 and world.masks[k] == SHOWN
            if masked and _too_little_left(world, r, n, k):
                continue
            if masked:
                apply_mask(world, k, 1)
            found += max(room(world, r, n), 0)
            if masked:
                apply_mask(world, k, -1)
    return wide(-1)


@inlined
def _too_little_left(world: World, r: int, n: int, k: int) -> bool:
    """Return whether row k leaves too little of node n for an instance of r; asked first, since hiding is slow."""
    request, node, row = world.requests[r], world.machines.nodes[n], world.withheld[k]
    short = node.cpu_free - row[0] < request.cpu or node.memory_free - row[1] < request.memory
    return short or node.gpu_free - row[SHARES] < request.gpu_count * request.gpu_milli


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
def _hide_amounts(world: World, row: Floats, n: int, sign: int) -> None:
    """Hide (sign 1) or show again (sign -1) the amounts of a row on node n."""
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
