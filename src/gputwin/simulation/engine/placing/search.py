"""Finding a place for a gang of several roles by going back, where placing role by role got stuck.

Instances are taken role by role, the hardest role first. A choice for an instance is a node and a set of its devices.
Choices are in order of node, then of device set (as a binary number); whole GPUs are always the first free ones. The
gang gets the first complete assignment in that order. Choices that are alike are tried once, and a branch is left as
soon as the rest of a role, or a role to come, has no room left by itself. The search gives up after `MOST_TRIALS` trial
placements of one instance.
"""

from __future__ import annotations

from gputwin.simulation.engine.compiled import compiled
from gputwin.simulation.engine.fit.index import FREED, FULL, move
from gputwin.simulation.engine.fit.questions import next_fit, room, total
from gputwin.simulation.engine.fit.room import device_fits, limit_room
from gputwin.simulation.engine.state.records import WHOLE, Machines, Records, wide
from gputwin.simulation.engine.world import World

MOST_TRIALS = 5000
_ANY = wide(-1)
"""Before the first device set of a node."""
_NONE = wide(-2)
"""No further device set on the node."""


@compiled
def place_by_search(world: World, j: int) -> bool:
    """Give every instance of job j its node and devices, or change nothing and return False."""
    job, slots = world.queue.jobs[j], world.slots
    shape = world.queue.shapes[job.shape]
    begin, freed = job.first_slot, world.index.log_end[FREED]
    end, last = begin + shape.instances, shape.first_group + shape.groups
    if not _roles_have_room(world, wide(shape.first_group), wide(last)):
        return False
    # Group g holds the slots from `role` on; slot i looks for a choice from (n, chosen) on.
    g, role, i, n, chosen, alike_to, trials = wide(shape.first_group), begin, begin, wide(0), _ANY, wide(-1), 0
    while True:
        r, size = wide(world.groups[g].request), wide(world.groups[g].size)
        n, chosen = _next_choice(world, wide(job.shape), r, n, chosen, alike_to, role + size - i)
        if n >= 0 and trials < MOST_TRIALS:
            trials += 1
            move(world.index, world.machines, world.requests, r, n, chosen, wide(1))
            slots[i].node, slots[i].devices, slots[i].request = n, chosen, r
            i, alike_to = i + 1, wide(-1)
            if i == end:
                return True
            if i < role + size:
                # Instances of a role are alike: none goes to a choice before that of the one before it.
                chosen = chosen - 1 if world.requests[r].gpu_count > 0 else _ANY
                continue
            if _roles_have_room(world, g + 1, wide(last)):
                g, role, n, chosen = g + 1, i, wide(0), _ANY
                continue
        elif i == begin or trials >= MOST_TRIALS:
            _take_back(world, begin, i)
            # All is as it was: what did not fit still does not.
            world.index.log_end[FREED] = freed
            return False
        elif i == role:
            g -= 1
            role -= world.groups[g].size
        i -= 1
        n, chosen = wide(slots[i].node), slots[i].devices
        _take_back(world, i, i + 1)
        alike_to = n


@compiled
def _take_back(world: World, begin: int, end: int) -> None:
    for i in range(begin, end):
        slot = world.slots[i]
        move(world.index, world.machines, world.requests, wide(slot.request), wide(slot.node), slot.devices, wide(-1))
        slot.node = -1


@compiled
def _roles_have_room(world: World, first: int, last: int) -> bool:
    """Return whether each of the groups first..last has room, taken alone."""
    for g in range(first, last):
        group = world.groups[g]
        if total(world, wide(group.request), wide(group.size), FULL) < wide(group.size):
            return False
    return True


@compiled
def _next_choice(world: World, s: int, r: int, n: int, chosen: int, alike_to: int, left: int) -> tuple[int, int]:
    """Return the first node and devices after (n, chosen) for an instance of r of shape s; node -1 for none.

    `left` instances must have room from that node on. A node like `alike_to`, which was tried in vain, is passed over.
    """
    machines, requests = world.machines, world.requests
    if room(world, r, n) > 0:
        devices = _next_devices(machines, requests, r, n, chosen)
        if devices != _NONE and _has_room_from(world, r, n, left):
            return n, devices
    while n + 1 < machines.nodes.size:
        n = next_fit(world, r, n + 1)
        if n < 0 or not _has_room_from(world, r, n, left):
            break
        if alike_to >= 0 and _alike(world, s, n, alike_to):
            continue
        return n, _next_devices(machines, requests, r, n, _ANY)
    return wide(-1), _ANY


@compiled
def _has_room_from(world: World, r: int, n: int, size: int) -> bool:
    """Return whether `size` instances of r fit on node n and those after it."""
    found = 0
    while n >= 0:
        found += room(world, r, n)
        if found >= size:
            return True
        if n + 1 >= world.machines.nodes.size:
            return False
        n = next_fit(world, r, n + 1)
    return False


@compiled
def _alike(world: World, s: int, a: int, b: int) -> bool:
    """Return whether to the roles of shape s nodes a and b are the same."""
    machines, shape = world.machines, world.queue.shapes[s]
    one, other = machines.nodes[a], machines.nodes[b]
    same = one.cpu_free == other.cpu_free and one.memory_free == other.memory_free
    same = same and one.disk_free == other.disk_free and one.rdma_free == other.rdma_free
    if not (same and one.model == other.model and one.gpu_count == other.gpu_count):
        return False
    for d in range(one.gpu_count):
        x, y = machines.gpus[a, d], machines.gpus[b, d]
        if x.free != y.free or x.memory_free != y.memory_free:
            return False
    for g in range(shape.first_group, shape.first_group + shape.groups):
        r = wide(world.groups[g].request)
        if limit_room(machines, world.requests, r, a) != limit_room(machines, world.requests, r, b):
            return False
    return True


@compiled
def _next_devices(machines: Machines, requests: Records, r: int, n: int, chosen: int) -> int:
    """Return the first device set after `chosen` that an instance of r can take on node n; `_NONE` for none."""
    count = requests[r].gpu_count
    if count == 0:
        return wide(0) if chosen == _ANY else _NONE
    if requests[r].gpu_milli == WHOLE:
        # Free devices are all alike: the first ones, whatever was taken before.
        devices = 0
        for d in range(machines.nodes[n].gpu_count):
            if count > 0 and device_fits(machines, requests, r, n, d):
                devices |= 1 << d
                count -= 1
        return wide(devices) if count == 0 and devices > chosen else _NONE
    fitting = 0
    for d in range(machines.nodes[n].gpu_count):
        fitting |= device_fits(machines, requests, r, n, d) << d
    devices = _next_subset(chosen, count)
    while devices >> machines.nodes[n].gpu_count == 0:
        if devices & fitting == devices and _first_of_alike(machines, n, devices, fitting):
            return devices
        devices = _next_subset(devices, count)
    return _NONE


@compiled
def _next_subset(chosen: int, count: int) -> int:
    """Return the least number above `chosen` with `count` binary ones."""
    devices = chosen + 1
    while True:
        ones, rest = 0, devices
        while rest:
            rest &= rest - 1
            ones += 1
        if ones == count:
            return devices
        # Too many ones: clear from the lowest on by carrying; too few: fill the lowest zero.
        devices += (devices & -devices) if ones > count else 1


@compiled
def _first_of_alike(machines: Machines, n: int, devices: int, fitting: int) -> bool:
    """Return whether no device of the set could be exchanged for an earlier one with as much free."""
    for d in range(machines.nodes[n].gpu_count):
        if devices >> d & 1:
            for earlier in range(d):
                one, other = machines.gpus[n, earlier], machines.gpus[n, d]
                free = fitting >> earlier & 1 and not devices >> earlier & 1
                if free and one.free == other.free and one.memory_free == other.memory_free:
                    return False
    return True
