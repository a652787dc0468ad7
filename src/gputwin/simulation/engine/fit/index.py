"""Which nodes fit a request, found without looking at every node.

Over the nodes lies one binary tree for all requests: each branch knows the most free GPUs, largest free share of one GPU,
CPU and memory of any node below it, and which GPU models are there. A branch that has too little of one of them is
passed over whole, so that the next node that fits is found in a few steps; whether it really fits is asked of the node.

Every change to a node is written to a log. Whoever remembers something about all nodes (a shape that did not fit, the
scores of a request) looks only at the nodes logged since. What is only tried is not logged (`trials/journal.py`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gputwin.simulation.engine.compiled import compiled, inlined
from gputwin.simulation.engine.fit.room import base_room, gpu_room, limit_room, rdma_room
from gputwin.simulation.engine.state.records import (
    WHOLE,
    Flags,
    Floats,
    Ints,
    Machines,
    Records,
    SmallInts,
    change,
    models_of,
    wide,
)
from gputwin.simulation.engine.trials.journal import OPEN, Journal, keep, make_journal, note_step

BRANCH = np.dtype(
    [
        ("whole", np.int32),  # most GPUs entirely free on one node
        ("share", np.int32),  # most milli-GPU free on one device
        ("models", np.int64),  # bit set
        ("memory", np.int64),
        ("cpu", np.int64),
    ],
    align=True,
)
"""Not in the order of a node's CPU and memory: LLVM would copy both at once, which waits until both have been written."""

RANKED = np.dtype([("value", np.float64), ("node", np.int64)], align=True)

FULL, NO_LIMIT, NO_NETWORK, GPU_ONLY = (wide(k) for k in range(4))
"""What of a request counts: all of it; not the per-node limit; nor the network; its GPUs alone."""


class Index(NamedTuple):
    """The tree over nodes, the log of changes, and what `scores.py` remembers of each request with a slot."""

    branches: Records  # [2·leaves] BRANCH, the root at 1
    log: SmallInts  # ring of changed nodes
    log_end: Ints  # [2]: end of the log, and its end when something was last freed
    allowed: Flags  # [r, model]
    models: Ints  # [r]: the same as a bit set
    scores: Floats  # [slot, n]; -inf where it does not fit
    winners: SmallInts  # [slot, 2·leaves]: the best node of each branch, -1 where none fits
    dear: Ints  # [2]: 1 where a score costs far more than a step in a tree; 1 where it is not to be kept
    ranking: Records  # [n] RANKED, scratch: the best nodes for a gang
    journal: Journal  # of trials


LOG_END, FREED = 0, 1
NO_SLOT, FIRST_FITS = -1, -2
"""Instead of a slot: scores are not to be remembered; all nodes score alike."""


def make_index(
    machines: Machines,
    requests: Records,
    allowed: Flags,
    popularity: Ints,
    *,
    dear: bool,
    fresh: bool,
    memory_bytes: int = 1 << 28,
) -> Index:
    """Return the index of these machines; the most popular requests have slots, within `memory_bytes`.

    `dear`: a score costs far more than a step in a tree. `fresh`: scores differ each time they are asked for.
    """
    nodes = machines.nodes.size
    leaves = 1 << max(nodes - 1, 1).bit_length()
    slots = int(min(requests.size, max(1, memory_bytes // (8 * nodes + 8 * leaves))))
    requests["slot"] = NO_SLOT
    if not fresh:
        requests["slot"][np.argsort(-popularity, kind="stable")[:slots]] = np.arange(slots)
    requests["seen"] = requests["best"] = requests["counted_at"] = -1
    index = Index(
        branches=np.zeros(2 * leaves, BRANCH),
        log=np.zeros(1 << max(nodes, 2).bit_length(), np.int32),
        log_end=np.zeros(2, np.int64),
        allowed=allowed,
        models=models_of(allowed),
        scores=np.full((slots, nodes), -np.inf),
        winners=np.full((slots, 2 * leaves), -1, np.int32),
        dear=np.array([dear, fresh], np.int64),
        ranking=np.zeros(nodes, RANKED),
        journal=make_journal(machines, slots),
    )
    _grow(index.branches, machines, leaves)
    return index


def _grow(branches: Records, machines: Machines, leaves: int) -> None:
    """Fill the tree; places without a node have less than nothing."""
    for name in ("whole", "share", "cpu", "memory"):
        branches[name] = -1
    nodes, leaf = machines.nodes, branches[leaves : leaves + machines.nodes.size]
    leaf["whole"], leaf["cpu"], leaf["memory"] = nodes["gpus_whole"], nodes["cpu_free"], nodes["memory_free"]
    leaf["share"] = machines.gpus["free"].max(axis=1)
    leaf["models"] = 1 << nodes["model"]
    level = leaves
    while level > 1:
        below, above = branches[level : 2 * level], branches[level // 2 : level]
        for name in ("whole", "share", "cpu", "memory"):
            above[name] = np.maximum(below[name][::2], below[name][1::2])
        above["models"] = below["models"][::2] | below["models"][1::2]
        level //= 2


@compiled
def touch(index: Index, machines: Machines, n: int, freed: bool) -> None:
    """Note that node n changed; `freed`: something that did not fit before may fit now. A trial is not logged."""
    if index.journal.state[OPEN] != 0:
        note_step(index.journal, n)
    else:
        end = index.log_end[LOG_END]
        index.log[end & (index.log.size - 1)] = n
        index.log_end[LOG_END] = end + 1
        if freed:
            index.log_end[FREED] = end + 1
    update_branches(index, machines, n)


@compiled
def move(index: Index, machines: Machines, requests: Records, r: int, n: int, devices: int, sign: int) -> None:
    """Take (sign 1) or give back (sign -1) what one instance of r holds on node n, and note that the node changed."""
    if index.journal.state[OPEN] != 0:
        keep(index.journal, machines, n)
    change(machines, requests, r, n, devices, sign)
    touch(index, machines, n, sign < 0)


@inlined
def update_branches(index: Index, machines: Machines, n: int) -> None:
    """Bring the tree up to date with node n."""
    node, branches = machines.nodes[n], index.branches
    share = 0
    for d in range(node.gpu_count):
        share = max(share, machines.gpus[n, d].free)
    k = branches.size // 2 + n
    branch = branches[k]
    branch.whole, branch.share, branch.cpu, branch.memory = node.gpus_whole, share, node.cpu_free, node.memory_free
    k >>= 1
    while k > 0:
        a, b, branch = branches[2 * k], branches[2 * k + 1], branches[k]
        whole, share = max(a.whole, b.whole), max(a.share, b.share)
        cpu, memory = max(a.cpu, b.cpu), max(a.memory, b.memory)
        if branch.whole == whole and branch.share == share and branch.cpu == cpu and branch.memory == memory:
            return
        branch.whole, branch.share, branch.cpu, branch.memory = whole, share, cpu, memory
        k >>= 1


@compiled
def room_on(machines: Machines, requests: Records, allowed: Flags, r: int, n: int, relaxed: int) -> int:
    """Return how many instances of r fit on node n, counting what `relaxed` says."""
    room = gpu_room(machines, requests, allowed, r, n)
    if relaxed < GPU_ONLY and room > 0:
        room = min(room, base_room(machines, requests, r, n))
        if relaxed < NO_NETWORK:
            room = min(room, rdma_room(machines, requests, r, n))
            if relaxed < NO_LIMIT:
                room = min(room, limit_room(machines, requests, r, n))
    return room


@compiled
def next_fit(index: Index, machines: Machines, requests: Records, r: int, start: int, relaxed: int) -> int:
    """Return the first node from `start` on that fits an instance of r; -1 for none."""
    request, branches = requests[r], index.branches
    leaves = branches.size // 2
    whole = share = 0
    models = -1
    if request.gpu_count > 0:
        models = index.models[r]
        share = request.gpu_milli
        whole = request.gpu_count if request.gpu_milli == WHOLE else 0
    asks_base = relaxed < GPU_ONLY
    k = leaves + start if start > 0 else 1
    while True:
        branch = branches[k]
        enough = branch.share >= share and branch.whole >= whole and branch.models & models != 0
        if enough and (not asks_base or (branch.cpu >= request.cpu and branch.memory >= request.memory)):
            if k < leaves:
                k *= 2
                continue
            if room_on(machines, requests, index.allowed, r, k - leaves, relaxed) > 0:
                return k - leaves
        while k & 1:
            k >>= 1
        if k == 0:
            return -1
        k += 1


@compiled
def room_up_to(index: Index, machines: Machines, requests: Records, r: int, size: int, relaxed: int) -> int:
    """Return how many instances of r fit on all nodes together; no more are counted once there are `size`."""
    n, room = -1, 0
    while room < size:
        n = next_fit(index, machines, requests, r, n + 1, relaxed) if n + 1 < machines.nodes.size else -1
        if n < 0:
            break
        room += room_on(machines, requests, index.allowed, r, n, relaxed)
    return room
