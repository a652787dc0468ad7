"""The engine's state as NamedTuples of arrays: what compiled functions, a user's policy among them, are given.

Indices: n node, d device on a node, r request (one kind of instance), g task group of a job shape, s job shape, j job,
i instance slot (the place of one instance of one job in the placement arrays).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from gputwin.simulation.engine.compiled import compiled
from numpy.typing import NDArray

Ints = NDArray[np.int64]
SmallInts = NDArray[np.int32]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

WHOLE = 1000
PLENTY = 1 << 40
"""Stands for 'not modelled' capacity: larger than any sum of requests."""


class Nodes(NamedTuple):
    """What each node has free now, and what it is."""

    cpu_free: Ints
    memory_free: Ints
    disk_free: Ints
    rdma_free: Ints
    gpu_free: SmallInts  # [n, d] milli-GPU free on each device
    gpu_memory_free: Ints  # [n, d] MiB
    gpus_whole: SmallInts  # devices entirely free
    gpu_total_free: Ints  # milli-GPU free over all devices
    application_count: SmallInts  # [n, a] instances of applications that have a per-node limit
    class_count: SmallInts  # [n, class] instances by GPU class: 0 fractional, c = c whole devices
    gpu_count: SmallInts
    cpu: Ints
    memory: Ints
    disk: Ints
    rdma: Ints
    gpu_memory: Ints
    model: SmallInts
    rack: SmallInts
    domain: SmallInts
    model_free: Ints  # [m] milli-GPU free over all nodes of a model
    total_free: Ints  # CPU, memory, disk, RDMA free over all nodes


class Requests(NamedTuple):
    """What one instance of each kind asks for."""

    cpu: Ints
    memory: Ints
    disk: Ints
    rdma: Ints
    gpu_count: SmallInts
    gpu_milli: SmallInts  # of each device
    gpu_memory: Ints  # MiB of each device
    allowed: Flags  # [r, m]
    max_per_node: SmallInts  # -1: no limit
    application: SmallInts  # column of Nodes.application_count; -1: none


class Jobs(NamedTuple):
    """The workload: one entry per job, in order of submission."""

    submit: Floats
    duration: Floats  # s; what it will really take
    predicted: Floats  # s; what the scheduler believes
    priority: Floats
    deadline: Floats
    gpu_milli: Floats  # of the whole gang
    tenant: SmallInts
    shape: SmallInts
    first_slot: Ints  # its first instance slot
    attained: Floats  # s of service so far


class Shapes(NamedTuple):
    """Job shapes: the task groups that must start together. Groups of shape s are first[s]..first[s+1]."""

    first: SmallInts
    request: SmallInts
    size: SmallInts


class Knobs(NamedTuple):
    """What policies are given besides the state: their numbers, the typical workload, and random state."""

    numbers: Floats  # the order's parameters, then the placement's
    offset: Ints  # [1] where the placement's begin
    largest: Floats  # CPU (milli) and GPU (milli) of the largest node
    typical_cpu: Ints
    typical_milli: SmallInts
    typical_count: SmallInts
    typical_share: Floats
    random: NDArray[np.uint64]


@compiled
def draw(knobs: Knobs) -> float:
    """Return a uniform number in [0, 1) (xorshift64*, Vigna 2016), the same on every machine."""
    x = knobs.random[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    knobs.random[0] = x
    return float((x * np.uint64(2685821657736338717)) >> np.uint64(11)) / 9007199254740992.0


@compiled
def gpu_class(requests: Requests, r: int) -> int:
    """Return 0 for a share of one GPU, else the number of devices."""
    return 0 if requests.gpu_milli[r] < WHOLE else int(requests.gpu_count[r])


@compiled
def take(nodes: Nodes, requests: Requests, r: int, n: int, devices: int) -> None:
    """Give one instance of request r the bit set `devices` of node n, and all else it asks for."""
    _change(nodes, requests, r, n, devices, 1)


@compiled
def give_back(nodes: Nodes, requests: Requests, r: int, n: int, devices: int) -> None:
    """Undo `take`."""
    _change(nodes, requests, r, n, devices, -1)


@compiled
def _change(nodes: Nodes, requests: Requests, r: int, n: int, devices: int, sign: int) -> None:
    nodes.cpu_free[n] -= sign * requests.cpu[r]
    nodes.memory_free[n] -= sign * requests.memory[r]
    nodes.disk_free[n] -= sign * requests.disk[r]
    nodes.rdma_free[n] -= sign * requests.rdma[r]
    nodes.total_free[0] -= sign * requests.cpu[r]
    nodes.total_free[1] -= sign * requests.memory[r]
    nodes.total_free[2] -= sign * requests.disk[r]
    nodes.total_free[3] -= sign * requests.rdma[r]
    a = requests.application[r]
    if a >= 0:
        nodes.application_count[n, a] += sign
    if requests.gpu_count[r] == 0:
        return
    milli = requests.gpu_milli[r]
    for d in range(nodes.gpu_count[n]):
        if devices >> d & 1:
            was = nodes.gpu_free[n, d]
            now = was - sign * milli
            nodes.gpu_free[n, d] = now
            nodes.gpu_memory_free[n, d] -= sign * requests.gpu_memory[r]
            nodes.gpus_whole[n] += (now == WHOLE) - (was == WHOLE)
    total = sign * milli * requests.gpu_count[r]
    nodes.gpu_total_free[n] -= total
    nodes.model_free[nodes.model[n]] -= total
    nodes.class_count[n, gpu_class(requests, r)] += sign
