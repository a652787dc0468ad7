"""Who may start now: the first job in order that a changed node makes room for.

At the end of a pass nobody waits who could have started. So at the next one only nodes changed since can help, and only
shapes that have room there for the group they wait for (`shape_tree.py`). These are gathered once and then asked in order.
"""

from __future__ import annotations

from typing import Any

from gputwin.simulation.engine.compiled import compiled, inlined
from gputwin.simulation.engine.fit.index import LOG_END
from gputwin.simulation.engine.fit.kinds import open_kind, open_kinds
from gputwin.simulation.engine.fit.questions import blocked_by
from gputwin.simulation.engine.fit.room import room_of_gpus
from gputwin.simulation.engine.fit.totals import KNOWN, OPEN_SHAPES, PASSED, list_reached
from gputwin.simulation.engine.queue.jobs import first, first_short
from gputwin.simulation.engine.queue.shape_tree import ANYTHING, watch
from gputwin.simulation.engine.queue.steps import add_step, is_on_top
from gputwin.simulation.engine.reservations.mask import FIELDS, SHARES, lacks_beside
from gputwin.simulation.engine.state.records import WHOLE, wide
from gputwin.simulation.engine.world import SHOWN, World

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


@inlined
def wait_for(world: World, s: int, g: int) -> None:
    """Let shape s wait for room for its group g, or for ANYTHING, where a tree is asked who goes first."""
    if world.queue.tree.branches.size > 0:
        watch(world.queue.tree, world.queue.jobs, world.queue.shapes, s, g)


@compiled
def has_all_room(world: World, s: int) -> bool:
    """Return whether each group of shape s has room; where not, it waits for one that has none, and is done in this pass."""
    g = blocked_by(world, s)
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

    Only who has room can overtake: who had it at the end of the last pass, or whose total has reached what it asks for
    since. While a pass lasts, room only becomes less, so that nobody else can join them. A job may overtake that ends
    within `window`, or that leaves the reservation what it will need. `head`: the shape that has the reservation, and is
    not asked. The totals are up to date.
    """
    totals, tree = world.totals, world.queue.tree
    measure_free(world, count, True)
    most, left, leaves = tree.most[0], tree.most[1], tree.branches.size // 2
    for k in range(totals.state[OPEN_SHAPES]):
        s = wide(totals.lists[OPEN_SHAPES, k])
        leaf = tree.branches[leaves + wide(tree.leaf_of[s])]
        if s != head and within(leaf, most) and (leaf.least <= window or within(leaf, left)):
            gather_shape(world, s, False)
    for k in range(list_reached(totals, world.requests, world.queue.candidates)):
        s = wide(world.queue.candidates[k])
        if s != head:
            gather_shape(world, s, world.queue.shapes[s].groups == 1)


@inlined
def gather_shape(world: World, s: int, known: bool) -> None:
    """Add shape s to those gathered, if it has room and was not asked before in this pass; `known`: it has room."""
    shape, tree = world.queue.shapes[s], world.queue.tree
    if shape.waiting > 0 and shape.tried != world.counters[0].passes and (known or has_all_room(world, s)):
        shape.tried, shape.reach = world.counters[0].passes, UNDECIDED
        leaf = tree.branches[tree.branches.size // 2 + wide(tree.leaf_of[s])]
        add_step(tree, leaf.key, wide(leaf.job), s)


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
        g = blocked_by(world, s)
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

    `beside`: instead of the latter, the most of what a reservation leaves.
    """
    if not beside:
        _bound_rooms(world, count)
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
