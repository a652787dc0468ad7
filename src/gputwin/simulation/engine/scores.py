"""The best node for a request under a placement's score.

Two ways, whichever costs less now: ask every node that fits, or keep the scores of all nodes in a tournament tree and
ask only nodes that changed since. Scores are kept of a request that comes often while many nodes fit it, and always
where a score is dear.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gputwin.simulation.engine.compiled import compiled, inlined
from gputwin.simulation.engine.index import FIRST_FITS, FULL, LOG_END, Index, next_fit, room_on
from gputwin.simulation.engine.state import Knobs, Machines, Records, wide

_FEW = 32
"""With fewer nodes to ask, asking is cheaper than keeping."""
_OFTEN = 4
"""Changes between two uses, per node that fits, up to which a request comes often."""


_LOWEST = -1e308


@compiled
def best_node(index: Index, machines: Machines, requests: Records, r: int, knobs: Knobs, score: Any) -> int:
    """Return the fitting node with the highest score, the lowest index among equals; -1 for none."""
    request = requests[r]
    if request.slot == FIRST_FITS:
        return next_fit(index, machines, requests, r, wide(0), FULL)
    end = index.log_end[LOG_END]
    since, request.used = end - request.used, end
    if request.seen >= 0 and end - request.seen <= request.fitting:
        _follow(index, machines, requests, r, knobs, score)
        request.seen = end
        return index.winners[request.slot, 1]
    best = _ask_all(index, machines, requests, r, knobs, score)
    pays = request.fitting >= _FEW and since <= _OFTEN * request.fitting
    if request.slot >= 0 and (pays or index.dear[0] != 0):
        _build(index, request.slot)
        request.seen = end
    else:
        request.seen = -1
    return best


@inlined
def _score(machines: Machines, requests: Records, r: int, n: int, knobs: Knobs, score: Any) -> float:
    """Return the policy's score of a node that fits, a finite number whatever the policy says."""
    value = score(machines, requests, r, n, knobs)
    return value if value > _LOWEST else _LOWEST


@compiled
def _ask_all(index: Index, machines: Machines, requests: Records, r: int, knobs: Knobs, score: Any) -> int:
    """Return the best of all nodes that fit; where the request has a slot, their scores are noted there."""
    slot, count = requests[r].slot, machines.nodes.size
    best, top, fitting, n = -1, -np.inf, 0, -1
    if slot >= 0:
        index.scores[slot, :] = -np.inf
    while n + 1 < count:
        n = next_fit(index, machines, requests, r, n + 1, FULL)
        if n < 0:
            break
        fitting += 1
        value = _score(machines, requests, r, n, knobs, score)
        if slot >= 0:
            index.scores[slot, n] = value
        if best < 0 or value > top:
            best, top = n, value
    requests[r].fitting = fitting
    return best


@compiled
def _build(index: Index, slot: int) -> None:
    """Play all matches."""
    leaves = index.winners.shape[1] // 2
    for n in range(index.scores.shape[1]):
        index.winners[slot, leaves + n] = n if index.scores[slot, n] > -np.inf else -1
    for k in range(leaves - 1, 0, -1):
        index.winners[slot, k] = _winner(index, slot, k)


@compiled
def _follow(index: Index, machines: Machines, requests: Records, r: int, knobs: Knobs, score: Any) -> None:
    """Ask the nodes that changed, and play their matches again."""
    request = requests[r]
    slot, leaves, mask = request.slot, index.winners.shape[1] // 2, index.log.size - 1
    for k in range(request.seen, index.log_end[LOG_END]):
        n = index.log[k & mask]
        was, now = index.scores[slot, n], -np.inf
        if room_on(machines, requests, index.allowed, r, n, FULL) > 0:
            now = _score(machines, requests, r, n, knobs, score)
        if now != was:
            request.fitting += (now > -np.inf) - (was > -np.inf)
            index.scores[slot, n] = now
            index.winners[slot, leaves + n] = n if now > -np.inf else -1
            _climb(index, slot, (leaves + n) >> 1, n)


@inlined
def _climb(index: Index, slot: int, k: int, n: int) -> None:
    """Play the matches above node n again, as far up as it can matter."""
    while k > 0:
        was = index.winners[slot, k]
        now = _winner(index, slot, k)
        index.winners[slot, k] = now
        if now == was and now != n:
            return
        k >>= 1


@inlined
def _winner(index: Index, slot: int, k: int) -> int:
    left, right = index.winners[slot, 2 * k], index.winners[slot, 2 * k + 1]
    if right < 0 or (left >= 0 and index.scores[slot, left] >= index.scores[slot, right]):
        return left
    return right
