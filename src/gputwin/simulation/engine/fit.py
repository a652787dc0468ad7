"""How many instances fit on a node, as it is and with one constraint lifted; and which devices can take one."""

from __future__ import annotations

from gputwin.simulation.engine.compiled import compiled

from gputwin.simulation.engine.state import WHOLE, Nodes, Requests

MANY = 1 << 20
"""Where nothing limits: more instances than any gang has."""


@compiled
def device_fits(nodes: Nodes, requests: Requests, r: int, n: int, d: int) -> bool:
    """Return whether device d of node n has the share and memory one instance of r asks of each of its devices."""
    return bool(
        nodes.gpu_free[n, d] >= requests.gpu_milli[r] and nodes.gpu_memory_free[n, d] >= requests.gpu_memory[r]
    )


@compiled
def gpu_room(nodes: Nodes, requests: Requests, r: int, n: int) -> int:
    """Return how many instances of r the GPUs of node n can take, whatever its other resources."""
    count = requests.gpu_count[r]
    if count == 0:
        return MANY
    if not requests.allowed[r, nodes.model[n]]:
        return 0
    milli = requests.gpu_milli[r]
    memory = requests.gpu_memory[r]
    if milli == WHOLE and memory == 0:
        return int(nodes.gpus_whole[n] // count)
    if nodes.gpu_total_free[n] < milli * count:
        return 0
    slots = 0
    for d in range(nodes.gpu_count[n]):
        slots += device_room(nodes, milli, memory, n, d)
    if count == 1:
        return slots
    # k instances need k·count slots, at most k of them on one device.
    k = slots // count
    while k > 0:
        usable = 0
        for d in range(nodes.gpu_count[n]):
            usable += min(k, device_room(nodes, milli, memory, n, d))
        if usable >= k * count:
            break
        k -= 1
    return k


@compiled
def device_room(nodes: Nodes, milli: int, memory: int, n: int, d: int) -> int:
    """Return how many shares of `milli` and `memory` device d of node n can still give."""
    room = nodes.gpu_free[n, d] // milli
    if memory > 0:
        room = min(room, nodes.gpu_memory_free[n, d] // memory)
    return int(room)


@compiled
def base_room(nodes: Nodes, requests: Requests, r: int, n: int) -> int:
    """Return how many instances of r the CPU, memory and disk of node n can take."""
    room = MANY
    if requests.cpu[r] > 0:
        room = min(room, nodes.cpu_free[n] // requests.cpu[r])
    if requests.memory[r] > 0:
        room = min(room, nodes.memory_free[n] // requests.memory[r])
    if requests.disk[r] > 0:
        room = min(room, nodes.disk_free[n] // requests.disk[r])
    return max(room, 0)


@compiled
def rdma_room(nodes: Nodes, requests: Requests, r: int, n: int) -> int:
    """Return how many instances of r the network cards of node n can take."""
    return max(int(nodes.rdma_free[n] // requests.rdma[r]), 0) if requests.rdma[r] > 0 else MANY


@compiled
def limit_room(nodes: Nodes, requests: Requests, r: int, n: int) -> int:
    """Return how many more instances of r's application the per-node limit allows on node n."""
    if requests.max_per_node[r] < 0:
        return MANY
    return max(int(requests.max_per_node[r] - nodes.application_count[n, requests.application[r]]), 0)


@compiled
def room(nodes: Nodes, requests: Requests, r: int, n: int) -> int:
    """Return how many instances of r fit on node n now."""
    fits = gpu_room(nodes, requests, r, n)
    if fits > 0:
        fits = min(fits, base_room(nodes, requests, r, n))
    if fits > 0:
        fits = min(fits, rdma_room(nodes, requests, r, n), limit_room(nodes, requests, r, n))
    return fits
