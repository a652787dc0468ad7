"""Which node is best for a request, kept up to date by looking only at nodes that changed.

Every change to a node is written to a log. Each request keeps, per node, how many of its instances fit and the policy's
score, and over the scores a tournament tree; before it is asked, it re-scores just the nodes logged since it was last
asked. A placement therefore costs a few evaluations and O(log nodes), not a scan of the cluster.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from gputwin.simulation.engine.compiled import compiled

from gputwin.simulation.engine.fit import base_room, gpu_room, limit_room, rdma_room
from gputwin.simulation.engine.state import Floats, Ints, Knobs, Nodes, Requests, SmallInts

ALL, GPU_ONLY, NO_LIMIT, NO_LIMIT_NO_RDMA = 0, 1, 2, 3
VARIANTS = 4


class Index(NamedTuple):
    """Cached rooms, scores and tournament trees. Requests beyond the memory allowed have slot -1 and are scanned."""

    slot: SmallInts  # [r]
    rooms: SmallInts  # [slot, n, variant]
    score: Floats  # [slot, n]
    tree: SmallInts  # [slot, 2·leaves]
    total: Ints  # [r, variant]
    seen: Ints  # [r] log position up to which r is up to date; -1: never
    log: SmallInts  # ring of changed nodes
    log_end: Ints  # [1]


def make_index(nodes: int, requests: int, popularity: Ints, memory_bytes: int = 1 << 28) -> Index:
    """Return an empty index that caches the most popular requests within `memory_bytes`."""
    leaves = 1 << max(nodes - 1, 1).bit_length()
    slots = int(min(requests, max(1, memory_bytes // (nodes * (4 * VARIANTS + 8) + 8 * leaves))))
    slot = np.full(requests, -1, np.int32)
    slot[np.argsort(-popularity, kind="stable")[:slots]] = np.arange(slots, dtype=np.int32)
    return Index(
        slot=slot,
        rooms=np.zeros((slots, nodes, VARIANTS), np.int32),
        score=np.full((slots, nodes), -np.inf),
        tree=np.full((slots, 2 * leaves), -1, np.int32),
        total=np.zeros((requests, VARIANTS), np.int64),
        seen=np.full(requests, -1, np.int64),
        log=np.zeros(1 << max(nodes, 2).bit_length(), np.int32),
        log_end=np.zeros(1, np.int64),
    )


@compiled
def touch(index: Index, n: int) -> None:
    """Note that node n changed."""
    index.log[index.log_end[0] & (index.log.size - 1)] = n
    index.log_end[0] += 1


@compiled
def refresh(index: Index, nodes: Nodes, requests: Requests, r: int, knobs: Knobs, score: Any) -> None:
    """Bring request r up to date with all changes."""
    end = index.log_end[0]
    seen = index.seen[r]
    if seen == end:
        return
    index.seen[r] = end
    if index.slot[r] < 0:
        _recount(index, nodes, requests, r)
    elif seen < 0 or end - seen > nodes.cpu.size:
        _rebuild(index, nodes, requests, r, knobs, score)
    else:
        mask = index.log.size - 1
        for k in range(seen, end):
            _update(index, nodes, requests, r, index.log[k & mask], knobs, score)


@compiled
def best_node(index: Index, nodes: Nodes, requests: Requests, r: int, knobs: Knobs, score: Any) -> int:
    """Return the fitting node with the highest score, the lowest index among equals; -1 for none."""
    slot = index.slot[r]
    if slot >= 0:
        return int(index.tree[slot, 1])
    best, top = -1, -np.inf
    for n in range(nodes.cpu.size):
        if _rooms(nodes, requests, r, n)[0] > 0:
            value = score(nodes, requests, r, n, knobs)
            if best < 0 or value > top:
                best, top = n, value
    return best


@compiled
def node_room(index: Index, nodes: Nodes, requests: Requests, r: int, n: int) -> int:
    """Return how many instances of the up-to-date request r fit on node n."""
    slot = index.slot[r]
    return int(index.rooms[slot, n, ALL]) if slot >= 0 else int(_rooms(nodes, requests, r, n)[0])


@compiled
def _rooms(nodes: Nodes, requests: Requests, r: int, n: int) -> tuple[int, int, int, int]:
    gpu = gpu_room(nodes, requests, r, n)
    if gpu == 0:
        return 0, 0, 0, 0
    base = min(gpu, base_room(nodes, requests, r, n))
    rdma = min(base, rdma_room(nodes, requests, r, n))
    return min(rdma, limit_room(nodes, requests, r, n)), gpu, rdma, base


@compiled
def _recount(index: Index, nodes: Nodes, requests: Requests, r: int) -> None:
    index.total[r, :] = 0
    for n in range(nodes.cpu.size):
        rooms = _rooms(nodes, requests, r, n)
        for v in range(VARIANTS):
            index.total[r, v] += rooms[v]


@compiled
def _rebuild(index: Index, nodes: Nodes, requests: Requests, r: int, knobs: Knobs, score: Any) -> None:
    slot = index.slot[r]
    leaves = index.tree.shape[1] // 2
    index.total[r, :] = 0
    for n in range(nodes.cpu.size):
        rooms = _rooms(nodes, requests, r, n)
        for v in range(VARIANTS):
            index.rooms[slot, n, v] = rooms[v]
            index.total[r, v] += rooms[v]
        fits = rooms[0] > 0
        index.score[slot, n] = score(nodes, requests, r, n, knobs) if fits else -np.inf
        index.tree[slot, leaves + n] = n if fits else -1
    for k in range(leaves - 1, 0, -1):
        index.tree[slot, k] = _winner(index.score, slot, index.tree[slot, 2 * k], index.tree[slot, 2 * k + 1])


@compiled
def _winner(score: Floats, slot: int, left: int, right: int) -> int:
    if right < 0 or (left >= 0 and score[slot, left] >= score[slot, right]):
        return left
    return right


@compiled
def _update(index: Index, nodes: Nodes, requests: Requests, r: int, n: int, knobs: Knobs, score: Any) -> None:
    slot = index.slot[r]
    rooms = _rooms(nodes, requests, r, n)
    for v in range(VARIANTS):
        index.total[r, v] += rooms[v] - index.rooms[slot, n, v]
        index.rooms[slot, n, v] = rooms[v]
    value = score(nodes, requests, r, n, knobs) if rooms[0] > 0 else -np.inf
    was_in = index.tree[slot, index.tree.shape[1] // 2 + n] >= 0
    if value == index.score[slot, n] and was_in == (rooms[0] > 0):
        return
    index.score[slot, n] = value
    k = index.tree.shape[1] // 2 + n
    index.tree[slot, k] = n if rooms[0] > 0 else -1
    k >>= 1
    while k > 0:
        was = index.tree[slot, k]
        now = _winner(index.score, slot, index.tree[slot, 2 * k], index.tree[slot, 2 * k + 1])
        index.tree[slot, k] = now
        if now == was and now != n:
            # Another node still wins here: nothing above can change.
            return
        k >>= 1
