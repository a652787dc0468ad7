"""Nodes that come and go: up, draining (takes no more jobs), down, booting, off (of a pool, not started).

What is free on a node that is not up is hidden: the node then has less than no CPU and no free GPU, so that nothing fits
there and no other part of the engine needs to know.

Times to failure and repair are drawn node by node from a stream of its own, so that two runs with the same seed see the
same failures whatever their schedulers do.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputwin.simulation.engine.compiled import compiled, inlined
from gputwin.simulation.engine.fit.room import MANY
from gputwin.simulation.engine.state.records import (
    BOOTING,
    DOWN,
    FREE_MODELS,
    OFF,
    UP,
    WHOLE,
    Flags,
    Floats,
    Ints,
    Machines,
    Records,
    SmallInts,
    wide,
)

NODE_CHANGE = np.dtype([("time", np.float64), ("node", np.int32), ("state", np.int32)], align=True)
NEVER, WEIBULL, LOGNORMAL, FIXED = range(4)
"""Laws of a time: never; shape and scale; mean and deviation of its logarithm; always the same."""


LOGGED, OUT, ASKED, BOOTS = range(4)
"""Positions in Outages.count: changes logged; nodes draining, down or booting; how many were last asked; nodes booting."""


class Outages(NamedTuple):
    """What is hidden on each node, the log of nodes that changed state, and the laws of failure and repair."""

    hidden: Ints  # [n, CPU, memory, disk, RDMA, then each device's share, then each one's memory]
    log: Records  # NODE_CHANGE
    count: Ints  # type: ignore[assignment]  # see LOGGED below
    out: SmallInts  # nodes that are draining, down or booting, in no order
    pooled: Flags  # [n] whether the node belongs to a pool: it is started and stopped from outside
    due: Floats  # [n] of a pool: when its next change comes, the only time at which an event agrees with it
    random: NDArray[np.uint64]  # [n]
    laws: Floats  # [2, 3]: of failure and of repair: law, and its two numbers


def make_outages(machines: Machines, seeds: NDArray[np.uint64], laws: Floats, *, kept: bool) -> Outages:
    """Return the outages of nodes that are all up."""
    nodes, devices = machines.nodes.size, machines.gpus.shape[1]
    return Outages(
        np.zeros((nodes if kept else 1, 4 + 2 * devices), np.int64),
        np.zeros(8 * nodes + 1024 if kept else 1, NODE_CHANGE),
        np.zeros(4, np.int64),
        np.zeros(nodes if kept else 1, np.int32),
        np.zeros(nodes if kept else 1, np.bool_),
        np.full(nodes if kept else 1, np.inf),
        seeds if kept else seeds[:1],
        laws,
    )


CHANGES_AT_ONCE = 4
"""A node changes its state at most so often at one instant: goes down, is started, boots in no time, drains."""


@compiled
def has_room_for_changes(outages: Outages, nodes: int) -> bool:
    """Return whether the log has room for what one instant can bring."""
    return outages.count[LOGGED] + CHANGES_AT_ONCE * nodes < outages.log.size


def grown(outages: Outages, nodes: int) -> Outages:
    """Return the same with room for what one instant can bring."""
    if outages.count[LOGGED] + CHANGES_AT_ONCE * nodes < outages.log.size:
        return outages
    log = np.zeros(2 * outages.log.size + CHANGES_AT_ONCE * nodes, NODE_CHANGE)
    log[: outages.log.size] = outages.log
    return outages._replace(log=log)


@inlined
def _uniform(outages: Outages, n: int) -> float:
    """Return the node's next uniform number in (0, 1] (xorshift64*, Vigna 2016)."""
    x = outages.random[n]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    outages.random[n] = x
    return 1.0 - float((x * np.uint64(2685821657736338717)) >> np.uint64(11)) / 9007199254740992.0


@compiled
def draw_seconds(outages: Outages, n: int, which: int) -> float:
    """Return the next time to failure (`which` 0) or to repair (1) of node n, s."""
    law, a, b = outages.laws[which, 0], outages.laws[which, 1], outages.laws[which, 2]
    if law == WEIBULL:
        drawn = -np.log(_uniform(outages, n))
        # Of shape 1 it is exponential, and a power takes long.
        return b * drawn if a == 1.0 else b * drawn ** (1.0 / a)
    if law == LOGNORMAL:
        radius = np.sqrt(-2.0 * np.log(_uniform(outages, n)))
        return np.exp(a + b * radius * np.cos(2.0 * np.pi * _uniform(outages, n)))
    return a if law == FIXED else np.inf


@compiled
def set_state(outages: Outages, machines: Machines, capacity: Ints, n: int, state: int, now: float) -> None:
    """Let node n be in `state` from now on; what is free on it is hidden, or shown again when it is up."""
    node, was = machines.nodes[n], machines.nodes[n].state
    if was == state:
        return
    entry = outages.log[outages.count[LOGGED]]
    entry.time, entry.node, entry.state = now, n, state
    outages.count[LOGGED] += 1
    outages.count[BOOTS] += (state == BOOTING) - (was == BOOTING)
    node.state = state
    was_out, is_out = was not in (UP, OFF), state not in (UP, OFF)
    if is_out and not was_out:
        outages.out[outages.count[OUT]] = n
        outages.count[OUT] += 1
    elif was_out and not is_out:
        outages.count[OUT] -= 1
        at = 0
        while outages.out[at] != n:
            at += 1
        outages.out[at] = outages.out[outages.count[OUT]]
    if was == UP:
        hide(outages, machines, capacity, n, True)
    elif state == UP:
        _show(outages, machines, capacity, n)


@compiled
def hide(outages: Outages, machines: Machines, capacity: Ints, n: int, first: bool) -> None:
    """Hide what is free on node n, all of it (`first`) or what has been freed since."""
    node, hidden = machines.nodes[n], outages.hidden[n]
    if first:
        hidden[:] = 0
    amount = node.cpu_free + (0 if first else 1)
    hidden[0] += amount
    node.cpu_free = -1
    _move(machines, capacity, 0, -amount)
    hidden[1] += node.memory_free
    _move(machines, capacity, 1, -node.memory_free)
    node.memory_free = 0
    hidden[2] += node.disk_free
    _move(machines, capacity, 2, -node.disk_free)
    node.disk_free = 0
    hidden[3] += node.rdma_free
    _move(machines, capacity, 3, -node.rdma_free)
    node.rdma_free = 0
    devices = machines.gpus.shape[1]
    for d in range(node.gpu_count):
        device = machines.gpus[n, d]
        hidden[4 + d] += device.free
        hidden[4 + devices + d] += device.memory_free
        device.free = device.memory_free = 0
    _move(machines, capacity, FREE_MODELS + node.model, -node.gpu_free)
    node.gpu_free = node.gpus_whole = 0


@compiled
def _show(outages: Outages, machines: Machines, capacity: Ints, n: int) -> None:
    node, hidden = machines.nodes[n], outages.hidden[n]
    node.cpu_free, node.memory_free, node.disk_free, node.rdma_free = hidden[0], hidden[1], hidden[2], hidden[3]
    for k in range(4):
        _move(machines, capacity, k, hidden[k])
    devices = machines.gpus.shape[1]
    for d in range(node.gpu_count):
        device = machines.gpus[n, d]
        device.free, device.memory_free = hidden[4 + d], hidden[4 + devices + d]
        node.gpu_free += device.free
        node.gpus_whole += device.free == WHOLE
    _move(machines, capacity, FREE_MODELS + node.model, node.gpu_free)


@inlined
def _move(machines: Machines, capacity: Ints, k: int, amount: int) -> None:
    """Change resource k of what is free and of what there is."""
    machines.free[k] += amount
    capacity[k] += amount


@compiled
def hidden_room(outages: Outages, machines: Machines, requests: Records, allowed: Flags, r: int, booting: bool) -> int:
    """Return how many instances of r would fit on the nodes that are out, beside what still runs there.

    `booting`: only on those that boot.
    """
    total = 0
    for k in range(outages.count[OUT]):
        n = wide(outages.out[k])
        if not booting or machines.nodes[n].state == BOOTING:
            total += _room_on_hidden(outages, machines, requests, allowed, r, n)
    return total


@compiled
def _room_on_hidden(outages: Outages, machines: Machines, requests: Records, allowed: Flags, r: int, n: int) -> int:
    request, hidden, node = requests[r], outages.hidden[n], machines.nodes[n]
    room = MANY
    if request.cpu > 0:
        room = min(room, hidden[0] // request.cpu)
    if request.memory > 0:
        room = min(room, hidden[1] // request.memory)
    if request.disk > 0:
        room = min(room, hidden[2] // request.disk)
    if request.rdma > 0:
        room = min(room, hidden[3] // request.rdma)
    if request.max_per_node >= 0:
        room = min(room, max(request.max_per_node - machines.residents[n, request.application], 0))
    if request.gpu_count == 0 or room == 0:
        return room
    if not allowed[r, node.model]:
        return 0
    devices, slots = machines.gpus.shape[1], 0
    for d in range(node.gpu_count):
        slots += _shares(hidden, request.gpu_milli, request.gpu_memory, d, devices)
    k = min(slots // request.gpu_count, room)
    while k > 0:
        # k instances need k·count slots, at most k of them on one device.
        usable = 0
        for d in range(node.gpu_count):
            usable += min(k, _shares(hidden, request.gpu_milli, request.gpu_memory, d, devices))
        if usable >= k * request.gpu_count:
            break
        k -= 1
    return k


@inlined
def _shares(hidden: Ints, milli: int, memory: int, d: int, devices: int) -> int:
    shares = hidden[4 + d] // milli
    return min(shares, hidden[4 + devices + d] // memory) if memory > 0 else shares


@inlined
def is_empty(machines: Machines, n: int) -> bool:
    """Return whether nothing runs on node n."""
    return machines.nodes[n].first_slot < 0


@inlined
def drained(outages: Outages, machines: Machines, capacity: Ints, n: int, now: float) -> None:
    """Let a draining node on which nothing runs any more be down; off, if it belongs to a pool."""
    if is_empty(machines, n):
        set_state(outages, machines, capacity, n, OFF if outages.pooled[n] else DOWN, now)
