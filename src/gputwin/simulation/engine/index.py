"""Which node is best for a request, kept up to date by looking only at nodes that changed.

Every change to a node is written to a log. Each request keeps, per node, how many of its instances fit and the policy's
score, and over the scores a tournament tree; before it is asked, it re-scores just the nodes logged since it was last
asked. A placement therefore costs a few evaluations and O(log nodes), not a scan of the cluster.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gputwin.simulation.engine.compiled import compiled, inlined
from gputwin.simulation.engine.fit import rooms
from gputwin.simulation.engine.state import Flags, Ints, Knobs, Machines, Records, SmallInts

CELL = np.dtype(
    [
        ("score", np.float64),
        ("room", np.int32),
        ("room_gpu_only", np.int32),
        ("room_no_limit", np.int32),
        ("room_no_network", np.int32),
    ],
    align=True,
)


class Index(NamedTuple):
    """Cached rooms, scores and tournament trees. Requests beyond the memory allowed have slot -1 and are scanned."""

    cells: Records  # [slot, n] CELL
    tree: SmallInts  # [slot, 2·leaves]: the winning node of each branch, -1 where none fits
    log: SmallInts  # ring of changed nodes
    log_end: Ints  # [1]
    allowed: Flags  # [r, model]


def make_index(requests: Records, allowed: Flags, nodes: int, popularity: Ints, memory_bytes: int = 1 << 28) -> Index:
    """Return an empty index that caches the most popular requests within `memory_bytes`."""
    leaves = 1 << max(nodes - 1, 1).bit_length()
    slots = int(min(requests.size, max(1, memory_bytes // (nodes * CELL.itemsize + 8 * leaves))))
    requests["slot"] = -1
    requests["slot"][np.argsort(-popularity, kind="stable")[:slots]] = np.arange(slots)
    requests["seen"] = -1
    return Index(
        cells=np.zeros((slots, nodes), CELL),
        tree=np.full((slots, 2 * leaves), -1, np.int32),
        log=np.zeros(1 << max(nodes, 2).bit_length(), np.int32),
        log_end=np.zeros(1, np.int64),
        allowed=allowed,
    )


@inlined
def touch(index: Index, n: int) -> None:
    """Note that node n changed."""
    index.log[index.log_end[0] & (index.log.size - 1)] = n
    index.log_end[0] += 1


@compiled
def refresh(index: Index, machines: Machines, requests: Records, r: int, knobs: Knobs, score: Any) -> None:
    """Bring request r up to date with all changes."""
    end = index.log_end[0]
    request = requests[r]
    seen = request.seen
    if seen == end:
        return
    request.seen = end
    count = machines.nodes.size
    anew = request.slot < 0 or seen < 0 or end - seen > count
    if anew:
        request.room = request.room_gpu_only = request.room_no_limit = request.room_no_network = 0
        seen, end = 0, count
    mask = index.log.size - 1
    for k in range(seen, end):
        _update(index, machines, requests, r, k if anew else index.log[k & mask], anew, knobs, score)
    if anew and request.slot >= 0:
        for k in range(index.tree.shape[1] // 2 - 1, 0, -1):
            index.tree[request.slot, k] = _winner(index, request.slot, k)


@compiled
def _update(
    index: Index, machines: Machines, requests: Records, r: int, n: int, anew: bool, knobs: Knobs, score: Any
) -> None:
    """Look at node n again for request r; `anew`: nothing is known and the tree is built afterwards."""
    request = requests[r]
    room, gpu_only, no_limit, no_network = rooms(machines, requests, index.allowed, r, n)
    request.room += room
    request.room_gpu_only += gpu_only
    request.room_no_limit += no_limit
    request.room_no_network += no_network
    if request.slot < 0:
        return
    cell = index.cells[request.slot, n]
    if not anew:
        request.room -= cell.room
        request.room_gpu_only -= cell.room_gpu_only
        request.room_no_limit -= cell.room_no_limit
        request.room_no_network -= cell.room_no_network
    value = score(machines, requests, r, n, knobs) if room > 0 else -np.inf
    same = not anew and value == cell.score and (room > 0) == (cell.room > 0)
    cell.room, cell.room_gpu_only = room, gpu_only
    cell.room_no_limit, cell.room_no_network = no_limit, no_network
    cell.score = value
    leaf = index.tree.shape[1] // 2 + n
    index.tree[request.slot, leaf] = n if room > 0 else -1
    if not same and not anew:
        _climb(index, request.slot, leaf >> 1, n)


@inlined
def _climb(index: Index, slot: int, k: int, n: int) -> None:
    """Play the matches above node n again, as far up as it can matter."""
    while k > 0:
        was = index.tree[slot, k]
        now = _winner(index, slot, k)
        index.tree[slot, k] = now
        if now == was and now != n:
            return
        k >>= 1


@inlined
def _winner(index: Index, slot: int, k: int) -> int:
    left, right = index.tree[slot, 2 * k], index.tree[slot, 2 * k + 1]
    if right < 0 or (left >= 0 and index.cells[slot, left].score >= index.cells[slot, right].score):
        return left
    return right


@compiled
def best_node(index: Index, machines: Machines, requests: Records, r: int, knobs: Knobs, score: Any) -> int:
    """Return the fitting node with the highest score, the lowest index among equals; -1 for none."""
    slot = requests[r].slot
    if slot >= 0:
        return index.tree[slot, 1]
    best, top = -1, -np.inf
    for n in range(machines.nodes.size):
        if rooms(machines, requests, index.allowed, r, n)[0] > 0:
            value = score(machines, requests, r, n, knobs)
            if best < 0 or value > top:
                best, top = n, value
    return best


@compiled
def node_room(index: Index, machines: Machines, requests: Records, r: int, n: int) -> int:
    """Return how many instances of the up-to-date request r fit on node n."""
    slot = requests[r].slot
    return index.cells[slot, n].room if slot >= 0 else rooms(machines, requests, index.allowed, r, n)[0]
