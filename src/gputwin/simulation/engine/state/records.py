"""The engine's state: one record array per kind of thing. These are what a user's policy is given.

A record array keeps what belongs to one thing together, and a compiled function that is handed a few of them compiles
far faster than one handed every column apart.

Indices: n node, d device on a node, r request (one kind of instance), g task group of a job shape, s job shape, j job,
i slot (the place of one instance of one job).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputwin.core.machine_code import config
from gputwin.simulation.engine.compiled import compiled, inlined

Records = NDArray[Any]
Ints = NDArray[np.int64]
SmallInts = NDArray[np.int32]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

wide: Any = int if config.DISABLE_JIT else np.int64
"""Makes a 32-bit field of a record the integer compiled code counts with, and a constant no more than an integer.

Without it, Numba compiles what it is handed to anew for 32 bits, and for each constant.
"""

WHOLE = 1000
PLENTY = 1 << 40
"""Stands for 'not modelled' capacity: larger than any sum of requests."""

NODE = np.dtype(
    [
        ("cpu_free", np.int64),
        ("memory_free", np.int64),
        ("disk_free", np.int64),
        ("rdma_free", np.int64),
        ("gpu_free", np.int64),  # milli-GPU free over all devices
        ("gpus_whole", np.int64),  # devices entirely free
        ("gpu_count", np.int64),
        ("cpu", np.int64),
        ("memory", np.int64),
        ("disk", np.int64),
        ("rdma", np.int64),
        ("model", np.int64),
        ("rack", np.int64),
        ("domain", np.int64),
        ("first_planned", np.int64),  # an instance planned here, start of a list; -1: none
        ("first_slot", np.int64),  # an instance that runs here, start of a list; -1: none (kept for backfilling only)
        ("state", np.int64),  # UP, DRAINING, DOWN, BOOTING or OFF
        ("fragmentation", np.float64),
    ],
    align=True,
)
UP, DRAINING, DOWN, BOOTING, OFF = range(5)
"""States of a node: takes jobs; takes no more; failed or in maintenance; starts; a node of a pool that is not started."""

DEVICE = np.dtype([("free", np.int64), ("memory_free", np.int64)], align=True)

REQUEST = np.dtype(
    [
        ("cpu", np.int64),
        ("memory", np.int64),
        ("disk", np.int64),
        ("rdma", np.int64),
        ("gpu_count", np.int64),
        ("gpu_milli", np.int64),  # of each device
        ("gpu_memory", np.int64),  # MiB of each device
        ("max_per_node", np.int64),  # -1: no limit
        ("application", np.int64),  # column of the residents table; -1: none
        # Used by rules of sharing only:
        ("kind", np.int64),  # type of job, row of the table of pairs
        ("demand", np.int64),  # milli of each device that it would use alone
        ("held", np.int64),  # MiB of each device that it fills, where that does not have to fit
        ("starts", np.int64),  # bit set of the memory slices at which its MIG instance may begin; 0: not MIG
        # Kept by the index:
        ("slot", np.int64),
        ("seen", np.int64),  # end of the log up to which its scores are right; -1: they are not kept
        ("used", np.int64),  # end of the log when it was last asked for
        ("fitting", np.int64),  # nodes that fit it, when last counted
        ("best", np.int64),  # the node last found best
        ("top", np.float64),  # its score then
        ("room", np.int64),  # at most so many instances fit on all nodes together
        ("counted_at", np.int64),  # end of the log when that was counted; -1: not known
    ],
    align=True,
)

JOB = np.dtype(
    [
        ("submit", np.float64),
        ("duration", np.float64),  # s; what it will really take
        ("predicted", np.float64),  # s; what the scheduler believes
        # What its end touches lies together, in one line of the cache:
        ("start", np.float64),
        ("end", np.float64),
        ("believed_end", np.float64),  # when the scheduler thinks it ends, once it runs
        ("first_slot", np.int64),
        ("shape", np.int32),
        ("outcome", np.int32),
        ("running_at", np.int32),
        ("tenant", np.int32),
        ("priority", np.float64),
        ("deadline", np.float64),
        ("gpu_milli", np.float64),  # of the whole gang
        ("attained", np.float64),  # s it has run so far
        ("done", np.float64),  # work done so far, s at full speed
        ("planned", np.float64),  # when it will start, where it has a reservation of its own
        ("key", np.float64),
        ("least", np.float64),  # in the queue
        ("left", np.int32),
        ("right", np.int32),  # in the queue
    ],
    align=True,
)

SHAPE = np.dtype(
    [
        ("first_group", np.int32),
        ("groups", np.int32),
        ("instances", np.int32),
        ("root", np.int32),
        ("waiting", np.int32),
        ("listed_at", np.int32),  # in the queue
        ("cause", np.int32),
        ("never_fits", np.int32),  # -1: not tried yet
        ("reach", np.int32),  # what may overtake in the present pass
        ("fits", np.int32),  # whether it did at `checked`, an end of the log; -1: not known
        ("smaller", np.int32),  # the same on half as many instances, the next size a job may have; -1: none
        ("larger", np.int32),  # the next larger size; -1: none
        ("joined", np.int32),  # NEW: began to wait at this instant; LEFT: and left; KNOWN: it has totals; else 0
        ("open_at", np.int32),  # in the totals's list of those with room; -1: it waits for room, or nobody waits
        ("first", np.int32),  # the waiting job that goes first; -1: none
        ("watched", np.int32),  # the group whose lack of room keeps it from starting; -1: not known
        ("held_back", np.int32),  # 1: its tenant may not hold more; such a class is not asked
        ("arrived", np.int32),  # 1: a job came since the last pass, and others of the shape waited already
        ("tried", np.int64),  # the last pass that looked at it
        ("gathered", np.int64),  # the last pass that found room for it
        ("checked", np.int64),
        ("since", np.float64),
        ("turn", np.float64),  # its tenant's, the lowest goes first; not a number: tenants take no turns
    ],
    align=True,
)

GROUP = np.dtype([("request", np.int32), ("size", np.int32)], align=True)

SLOT = np.dtype(
    [
        ("devices", np.int64),  # bit set
        ("node", np.int32),
        ("request", np.int32),
    ],
    align=True,
)

LINK = np.dtype(
    [
        ("end", np.float64),  # believed
        ("job", np.int32),
        ("next", np.int32),
        ("previous", np.int32),
        ("gpu_milli", np.int32),
    ],
    align=True,
)
"""One per slot where backfilling needs to know who runs on a node; a node's list is in order of (end, slot)."""

TYPICAL = np.dtype(
    [
        ("cpu", np.int64),
        ("milli", np.int64),
        ("count", np.int64),
        ("models", np.int64),  # bit set of those it may run on
        ("share", np.float64),
    ],
    align=True,
)


def models_of(allowed: Flags) -> Ints:
    """Return each request's allowed models as a bit set."""
    bits: Ints = (allowed.astype(np.int64) << np.arange(allowed.shape[1])).sum(axis=1)
    return bits


class Sharing(NamedTuple):
    """What rules of sharing are given: who runs beside whom, and how much that costs."""

    numbers: Floats  # the rule's parameters, in the sequence it declares them
    pairs: Floats  # [GPU model, kind, kind of the neighbour]: slowdown by a neighbour that asks for a whole GPU, less 1
    memory: Ints  # [n] MiB of each device of the node; 0: not known
    slots: Records  # World.slots
    links: Records  # World.links


class Knobs(NamedTuple):
    """What policies are given besides the state."""

    numbers: Floats  # CPU and GPU (milli) of the largest node
    order: Floats  # the order's parameters, in the sequence it declares them
    placement: Floats  # the placement's
    preemption: Floats  # the preemption rule's
    typical: Records
    random: NDArray[np.uint64]
    ratings: Floats  # [j] what does not change of a job's priority; empty: the order does not ask for it
    shares: (
        Floats  # [t] the fair-share factor of each tenant when priorities were last worked out; empty: not asked for
    )
    sharing: Sharing


LARGEST_CPU, LARGEST_GPU = 0, 1
"""Positions in Knobs.numbers."""


@inlined
def draw(knobs: Knobs) -> float:
    """Return a uniform number in [0, 1), the same on every machine."""
    return uniform(knobs.random, 0)


@inlined
def uniform(states: NDArray[np.uint64], i: int) -> float:
    """Return a uniform number in [0, 1) from the i-th generator (xorshift64*, Vigna 2016)."""
    x = states[i]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    states[i] = x
    return float((x * np.uint64(2685821657736338717)) >> np.uint64(11)) / 9007199254740992.0


class Machines(NamedTuple):
    """The cluster: nodes, their devices, how many instances of what live on each node, and sums over all."""

    nodes: Records  # [n] NODE
    gpus: Records  # [n, d] DEVICE
    residents: SmallInts  # [n, k]: instances by GPU class (0 a share, c = c whole devices), then by application
    free: Ints  # CPU, memory, disk, RDMA free over all nodes, then milli-GPU per model
    caps: SmallInts  # [n, application]: most instances that others planned there can bear; no columns: not needed


APPLICATIONS = 64
"""Where applications begin in Machines.residents; GPU classes come before."""
FREE_MODELS = 4
"""Where GPU models begin in Machines.free."""


START = 56
"""Bits of a set of devices from here on: the memory slice at which a MIG instance begins; 0 without MIG."""


@inlined
def gpu_class(requests: Records, r: int) -> int:
    """Return 0 for a share of one GPU, else the number of devices."""
    return 0 if requests[r].gpu_milli < WHOLE else requests[r].gpu_count


@compiled
def change(machines: Machines, requests: Records, r: int, n: int, devices: int, sign: int) -> None:
    """Take (sign 1) or give back (sign -1) what one instance of request r holds on node n, `devices` among it."""
    node, request, free = machines.nodes[n], requests[r], machines.free
    node.cpu_free -= sign * request.cpu
    node.memory_free -= sign * request.memory
    node.disk_free -= sign * request.disk
    node.rdma_free -= sign * request.rdma
    free[0] -= sign * request.cpu
    free[1] -= sign * request.memory
    free[2] -= sign * request.disk
    free[3] -= sign * request.rdma
    if request.application >= 0:
        machines.residents[n, request.application] += sign
    if request.gpu_count == 0:
        return
    milli = request.gpu_milli
    for d in range(node.gpu_count):
        if devices >> d & 1:
            device = machines.gpus[n, d]
            was = device.free
            now = was - sign * milli
            device.free = now
            # A MIG instance takes the bits of its slices.
            device.memory_free -= sign * (request.gpu_memory << (devices >> START))
            node.gpus_whole += (now == WHOLE) - (was == WHOLE)
    total = sign * milli * request.gpu_count
    node.gpu_free -= total
    free[FREE_MODELS + node.model] -= total
    machines.residents[n, gpu_class(requests, r)] += sign
