"""How many instances each resource of a node can take, and which devices can take one."""

from __future__ import annotations

from gputwin.simulation.engine.compiled import compiled, inlined
from gputwin.simulation.engine.state.records import APPLICATIONS, WHOLE, Flags, Machines, Records

MANY = 1 << 20
"""Where nothing limits: more instances than any gang has."""


@inlined
def times(free: int, asked: int) -> int:
    """Return how often `asked` is in what is free; mostly never or once, and division is slow."""
    if free < asked:
        return 0
    return 1 if free < asked + asked else free // asked


@inlined
def device_fits(machines: Machines, requests: Records, r: int, n: int, d: int) -> bool:
    """Return whether device d of node n has the share and memory one instance of r asks of each of its devices."""
    device = machines.gpus[n, d]
    if requests[r].starts != 0:
        return mig_room(machines, requests, r, n, d) > 0
    return device.free >= requests[r].gpu_milli and device.memory_free >= requests[r].gpu_memory


@inlined
def device_room(machines: Machines, milli: int, memory: int, n: int, d: int) -> int:
    """Return how many shares of `milli` and `memory` device d of node n can still give."""
    room = times(machines.gpus[n, d].free, milli)
    if memory > 0:
        room = min(room, times(machines.gpus[n, d].memory_free, memory))
    return room


@compiled
def mig_room(machines: Machines, requests: Records, r: int, n: int, d: int) -> int:
    """Return how many MIG instances of r device d of node n can still take; its free memory is the set of free slices.

    Places where instances of one profile may begin do not overlap, so each that is free takes one.
    """
    request, device, places = requests[r], machines.gpus[n, d], 0
    for start in range(8):
        slices = request.gpu_memory << start
        places += request.starts >> start & 1 and device.memory_free & slices == slices
    return min(places, device.free // request.gpu_milli)


@inlined
def gpu_room(machines: Machines, requests: Records, allowed: Flags, r: int, n: int) -> int:
    """Return how many instances of r the GPUs of node n can take, whatever its other resources."""
    if requests[r].gpu_count > 0 and not allowed[r, machines.nodes[n].model]:
        return 0
    return room_of_gpus(machines, requests, r, n)


@inlined
def room_of_gpus(machines: Machines, requests: Records, r: int, n: int) -> int:
    """Return the same, whatever the model of its GPUs."""
    node, request = machines.nodes[n], requests[r]
    count, milli, memory = request.gpu_count, request.gpu_milli, request.gpu_memory
    if count == 0:
        return MANY
    if node.gpu_free < milli * count:
        return 0
    if milli == WHOLE and memory == 0:
        return times(node.gpus_whole, count)
    if request.starts != 0:
        places = 0
        for d in range(node.gpu_count):
            places += mig_room(machines, requests, r, n, d)
        return places // count
    slots = 0
    for d in range(node.gpu_count):
        slots += device_room(machines, milli, memory, n, d)
    if count == 1:
        return slots
    # k instances need k·count slots, at most k of them on one device.
    k = slots // count
    while k > 0:
        usable = 0
        for d in range(node.gpu_count):
            usable += min(k, device_room(machines, milli, memory, n, d))
        if usable >= k * count:
            break
        k -= 1
    return k


@inlined
def base_room(machines: Machines, requests: Records, r: int, n: int) -> int:
    """Return how many instances of r the CPU, memory and disk of node n can take."""
    node, request = machines.nodes[n], requests[r]
    # A node that takes no jobs has less than no CPU.
    room = MANY if node.cpu_free >= 0 else 0
    if request.cpu > 0:
        room = min(room, times(node.cpu_free, request.cpu))
    if request.memory > 0:
        room = min(room, times(node.memory_free, request.memory))
    if request.disk > 0:
        room = min(room, times(node.disk_free, request.disk))
    return max(room, 0)


@inlined
def rdma_room(machines: Machines, requests: Records, r: int, n: int) -> int:
    """Return how many instances of r the network cards of node n can take."""
    return max(machines.nodes[n].rdma_free // requests[r].rdma, 0) if requests[r].rdma > 0 else MANY


@inlined
def limit_room(machines: Machines, requests: Records, r: int, n: int) -> int:
    """Return how many more instances of r's application the per-node limit allows on node n."""
    request, most = requests[r], requests[r].max_per_node
    if most < 0:
        return MANY
    if machines.caps.shape[1] > 0:
        most = min(most, machines.caps[n, request.application - APPLICATIONS])
    return max(most - machines.residents[n, request.application], 0)
