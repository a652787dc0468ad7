"""Who may start now: the first job in order that a changed node makes room for.

At the end of a pass nobody waits who could have started. So at the next one only nodes changed since can help, and only
shapes that have room there for the group they wait for (`shape_tree.py`). These are gathered once and then asked in order.
"""

from __future__ import annotations

from typing import Any

from gputwin.simulation.engine.compiled import compiled, inlined
from gputwin.simulation.engine.fit.index import FREED, FULL, LOG_END, room_on, room_up_to
from gputwin.simulation.engine.fit.kinds import open_kind, open_kinds
from gputwin.simulation.engine.fit.room import room_of_gpus
from gputwin.simulation.engine.fit.rows import total_in
from gputwin.simulation.engine.fit.totals import CAUGHT_UP, KNOWN, PASSED, FitTotals, total_of
from gputwin.simulation.engine.queue.jobs import first, first_short
from gputwin.simulation.engine.queue.shape_tree import ANYTHING, watch
from gputwin.simulation.engine.queue.steps import add_step, is_on_top
from gputwin.simulation.engine.reservations.mask import FIELDS, SHARES, lacks_beside
from gputwin.simulation.engine.state.records import WHOLE, wide
from gputwin.simulation.engine.world import SHOWN, World

_FEW = 32
"""With more changes, counting anew is cheaper."""
CLOSED, SHORT_ONLY, OPEN, UNDECIDED = 0, 1, 2, 3
"""Who of a shape may start beside a reservation: nobody, jobs that end before it begins, anybody; or it has room, and
which of these holds is worked out when its turn comes. Mostly somebody before it takes that room, so that it is not."""


@compiled
def list_touched(world: World, everywhere: bool) -> int:
    """List the nodes changed since the last pass, or all, and return their number."""
    index, tree = world.index, world.queue.tree
    world.counters[0].passes += 1
    since, end, size = world.totals.state[PASSED], index.log_end[LOG_END], index.log.size
    if everywhere or end - since > size:
        for n in range(tree.touched.size):
            tree.touched[n] = n
        return tree.touched.size
    count = 0
    for k in range(since, end):
        n = wide(index.log[k & (size - 1)])
        if tree.touched_in[n] != world.counters[0].passes:
            tree.touched_in[n] = world.counters[0].passes
            tree.touched[count] = n
            count += 1
    return count


@compiled
def _bound_rooms(world: World, count: int) -> None:
    """Work out how many instances of each kind of GPUs have room at most: as last counted, more on `count` touched nodes."""
    kinds, machines, tree = world.totals.kinds, world.machines, world.queue.tree
    for a in range(open_kinds(kinds)):
        k = open_kind(kinds, a)
        tree.rooms[k] = kinds.records[k].total
    for i in range(count):
        n = wide(tree.touched[i])
        m, changed = machines.nodes[n].model, False
        for d in range(machines.nodes[n].gpu_count):
            device, was = machines.gpus[n, d], world.totals.gpus[n, d]
            changed = changed or device.free != was.free or device.memory_free != was.memory_free
        if not changed:
            continue
        for a in range(kinds.counts[m]):
            k = wide(kinds.listed[m, a])
            ask = wide(kinds.records[k].ask)
            room = room_of_gpus(machines, world.requests, wide(kinds.asks[ask].request), n)
            tree.rooms[k] += max(room - wide(kinds.rooms[n, ask]), 0)


@compiled
def lacking(world: World, s: int) -> int:
    """Return a group of shape s that lacks room, taken alone; ANYTHING where each has room."""
    shape = world.queue.shapes[s]
    if shape.watched >= 0 and _lacks(world, wide(shape.watched)):
        return wide(shape.watched)
    for g in range(shape.first_group, shape.first_group + shape.groups):
        if g != shape.watched and _lacks(world, wide(g)):
            return wide(g)
    return ANYTHING


@compiled
def _lacks(world: World, g: int) -> bool:
    """Return whether group g, taken alone, lacks room.

    How much room there was when it did not suffice is remembered with the request. There is more only where a node has
    changed since, and no more than what such nodes have now.
    """
    index, r, size = world.index, wide(world.groups[g].request), wide(world.groups[g].size)
    entry = world.totals.entries[r]
    # Where one node covers all who wait, the total says no more than that.
    counted = entry.holders > 0 and (entry.covered_by < 0 or size <= entry.covered)
    if counted and world.totals.state[CAUGHT_UP] == index.log_end[LOG_END]:
        return total_of(world.totals, r) < size
    request, end, mask = world.requests[r], index.log_end[LOG_END], index.log.size - 1
    if request.counted_at >= 0 and index.log_end[FREED] > request.counted_at:
        if end - request.counted_at > min(_FEW, index.log.size):
            request.counted_at = -1
        else:
            for k in range(request.counted_at, end):
                n = wide(index.log[k & mask])
                request.room += room_on(world.machines, world.requests, index.allowed, r, n, FULL)
            request.counted_at = end
    if request.counted_at >= 0 and request.room < size:
        return True
    room = room_up_to(index, world.machines, world.requests, r, size, FULL)
    if room < size:
        request.room, request.counted_at = room, end
    return room < size


@inlined
def wait_for(world: World, s: int, g: int) -> None:
    """Let shape s wait for room for its group g, or for ANYTHING, where a tree is asked who goes first."""
    if world.queue.tree.branches.size > 0:
        watch(world.queue.tree, world.queue.jobs, world.queue.shapes, s, g)


@compiled
def has_all_room(world: World, s: int) -> bool:
    """Return whether each group of shape s has room; where not, it waits for one that has none, and is done in this pass."""
    g = lacking(world, s)
    if g == ANYTHING:
        return True
    world.queue.shapes[s].tried = world.counters[0].passes
    wait_for(world, s, g)
    return False


@inlined
def start_gathering(world: World) -> None:
    """Forget whom the last pass gathered."""
    world.queue.tree.gathered[0] = 0


@compiled
def gather(world: World, count: int, window: float, head: int) -> None:
    """Collect the shapes that may overtake thanks to one of the `count` touched nodes, in the order of their jobs.

    While a pass lasts, room only becomes less, so that nobody else can join them. A job may overtake that ends within
    `window`, or that leaves the reservation what it will need. `head`: the shape that has the reservation, and is not
    asked. The totals are up to date.
    """
    tree, branches, stack = world.queue.tree, world.queue.tree.branches, world.queue.tree.stack
    leaves = branches.size // 2
    measure_free(world, count, True)
    most, left = tree.most[0], tree.most[1]
    stack[0], top = 1, 1
    while top > 0:
        top -= 1
        k = wide(stack[top])
        branch = branches[k]
        if branch.job < 0 or not within(branch, most):
            continue
        if branch.least > window and not within(branch, left):
            continue
        if branch.kind >= 0 and branch.size > tree.rooms[branch.kind]:
            continue
        if k < leaves:
            stack[top], stack[top + 1] = 2 * k, 2 * k + 1
            top += 2
            continue
        if _total_is_short(world.totals, branch):
            continue
        s = wide(tree.shape_at[k - leaves])
        if s != head:
            gather_shape(world, s)


@inlined
def _total_is_short(totals: FitTotals, leaf: Any) -> bool:
    """Return whether the total of what a shape waits for, which is up to date, says that there is too little room."""
    if leaf.request < 0:
        return False
    i = wide(totals.entries[leaf.request].row)
    return i >= 0 and total_in(totals.rows, i) < leaf.size


@inlined
def gather_shape(world: World, s: int) -> None:
    """Add shape s to those gathered, if it has room and was not asked before in this pass."""
    shape = world.queue.shapes[s]
    if shape.waiting > 0 and shape.tried != world.counters[0].passes and has_all_room(world, s):
        shape.tried, shape.reach = world.counters[0].passes, UNDECIDED
        j = first(world.queue, s)
        add_step(world.queue.tree, world.queue.jobs[j].key, j, s)


@compiled
def next_beside(world: World, window: float) -> int:
    """Return the job that goes first of those gathered that may overtake; -1 for none."""
    tree, shapes = world.queue.tree, world.queue.shapes
    while tree.gathered[0] > 0:
        s = wide(tree.steps[0].shape)
        j = candidate(world, s, window) if shapes[s].waiting > 0 and still_has_room(world, s) else wide(-1)
        if is_on_top(world, j):
            return j
    return wide(-1)


@inlined
def still_has_room(world: World, s: int) -> bool:
    """Return whether each group of shape s has room after what has started in this pass; else it is closed for the pass."""
    shape = world.queue.shapes[s]
    if shape.joined == KNOWN and shape.reach != CLOSED:
        g = lacking(world, s)
        if g != ANYTHING:
            shape.reach = CLOSED
            wait_for(world, s, g)
    return shape.reach != CLOSED


@inlined
def within(branch: Any, most: Any) -> bool:
    """Return whether somebody below the branch may ask for no more than there is at most on one node."""
    enough = branch.cpu <= most.cpu and branch.memory <= most.memory and branch.share <= most.share
    return enough and branch.whole <= most.whole and branch.models & most.models != 0


@compiled
def measure_free(world: World, count: int, beside: bool) -> None:
    """Work out the most of each resource free on one of the touched nodes, and the room of each kind at most.

    `beside`: also the most of what a reservation leaves; the totals are up to date.
    """
    _bound_rooms(world, 0 if beside else count)
    tree, index = world.queue.tree, world.index
    for which in range(2):
        most = tree.most[which]
        most.cpu = most.memory = -1
        most.share = most.whole = -1
        most.models = 0
    most, left = tree.most[0], tree.most[1]
    for i in range(count):
        n = wide(tree.touched[i])
        node = index.branches[index.branches.size // 2 + n]
        most.cpu, most.memory = max(most.cpu, node.cpu), max(most.memory, node.memory)
        most.share, most.whole = max(most.share, node.share), max(most.whole, node.whole)
        most.models |= node.models
        if beside:
            cpu, memory, share, whole = node.cpu, node.memory, wide(node.share), wide(node.whole)
            row = wide(world.rows[n])
            if row >= 0 and world.masks[row] == SHOWN:
                cpu, memory, share, whole = _left_beside(world, n, row)
            left.cpu, left.memory = max(left.cpu, cpu), max(left.memory, memory)
            left.share, left.whole = max(left.share, share), max(left.whole, whole)
            left.models |= node.models


@compiled
def _left_beside(world: World, n: int, k: int) -> tuple[int, int, int, int]:
    """Return CPU, memory, the largest share of a device and whole devices that row k of the reservation leaves of node n."""
    node, row = world.machines.nodes[n], world.withheld[k]
    share = whole = 0
    if node.gpu_free > row[SHARES]:
        for d in range(node.gpu_count):
            free = world.machines.gpus[n, d].free - int(row[FIELDS + d])
            share = max(share, free)
            whole += free == WHOLE
    return node.cpu_free - int(row[0]), node.memory_free - int(row[1]), share, whole


@compiled
def candidate(world: World, s: int, window: float) -> int:
    """Return the job of shape s that goes first of those that may overtake; -1 for none."""
    shape, j = world.queue.shapes[s], first(world.queue, s)
    if shape.reach == UNDECIDED:
        if world.queue.jobs[j].predicted <= window:
            return j
        g = lacks_beside(world, s)
        shape.reach = OPEN if g == ANYTHING else SHORT_ONLY
        wait_for(world, s, g)
    if shape.reach == OPEN:
        return j
    return first_short(world.queue, s, window) if shape.reach == SHORT_ONLY else wide(-1)
