"""The best node for a request under a placement's score.

Two ways, whichever costs less now: ask every node that fits, or keep the scores of all nodes in a tournament tree and
ask only nodes that changed since. Scores are kept of a request that comes so often that few nodes change in between, and
always where a score is dear.

A gang of k instances takes at most the k best nodes, since placing an instance changes the score of its node alone. So
all nodes are asked once, and the best are kept in a heap.

Most of the time goes into asking many nodes. So the loop over them is compiled together with the policy's score, once for
each placement (`asking`); whoever wants a score, or the best of all nodes, calls that one function.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import FunctionType
from typing import Any

import numpy as np

from gputwin.core.machine_code import config
from gputwin.simulation.engine.compiled import compiled, inlined
from gputwin.simulation.engine.fit.index import FIRST_FITS, FULL, LOG_END, Index, next_fit, room_on
from gputwin.simulation.engine.placing.tournament import build, can_follow_trial, follow, follow_trial
from gputwin.simulation.engine.state.records import WHOLE, Knobs, Machines, Records, wide
from gputwin.simulation.engine.trials.journal import NODES, OPEN

_CHANGES_PER_SCAN = 24
"""Following one change costs about as much as scanning this many nodes."""
_BLOCK = 8
"""Nodes passed over at once in a scan."""
_LOWEST = -1e308


@compiled
def best_node(index: Index, machines: Machines, requests: Records, r: int, knobs: Knobs, ask: Any) -> int:
    """Return the fitting node with the highest score, the lowest index among equals; -1 for none."""
    request = requests[r]
    if request.slot == FIRST_FITS:
        return next_fit(index, machines, requests, r, wide(0), FULL)
    if index.journal.state[OPEN] != 0:
        return _best_on_trial(index, machines, requests, r, knobs, ask)
    end = index.log_end[LOG_END]
    since, request.used = end - request.used, end
    if request.seen >= 0 and _follows(index, end - request.seen, request.fitting):
        follow(index, machines, requests, r, knobs, ask)
        request.seen = end
        return index.winners[request.slot, 1]
    if request.slot >= 0 and since == 1 and _still_best(index, machines, requests, r, knobs, ask):
        return request.best
    ask(index, machines, requests, r, wide(-1), knobs)
    best = wide(request.best)
    request.seen = -1
    if request.slot >= 0 and (index.dear[0] != 0 or _follows(index, since, request.fitting)):
        # Asked for again so soon that keeping the scores would have paid.
        build(index, request.slot)
        request.seen = end
    return best


@compiled
def _best_on_trial(index: Index, machines: Machines, requests: Records, r: int, knobs: Knobs, ask: Any) -> int:
    """Return the same while a trial is open: kept scores follow it until it is undone, or all nodes are asked."""
    changed = index.journal.state[NODES]
    if can_follow_trial(index, requests, r) and _follows(index, changed, requests[r].fitting):
        follow_trial(index, machines, requests, r, knobs, ask)
        return index.winners[requests[r].slot, 1]
    # Asked for the two best, since the scores of all are noted when the best alone is asked for.
    return wide(index.ranking[0].node) if ask(index, machines, requests, r, wide(-2), knobs) > 0.0 else wide(-1)


@compiled
def ready_scores(index: Index, machines: Machines, requests: Records, r: int, knobs: Knobs, ask: Any) -> None:
    """Bring kept scores of r up to date before a trial, where that pays."""
    request = requests[r]
    if request.slot < 0 or request.seen == index.log_end[LOG_END]:
        return
    kept = request.seen >= 0 and _follows(index, index.log_end[LOG_END] - request.seen, request.fitting)
    if kept or index.dear[0] != 0:
        best_node(index, machines, requests, r, knobs, ask)


@inlined
def _still_best(index: Index, machines: Machines, requests: Records, r: int, knobs: Knobs, ask: Any) -> bool:
    """Return whether the node last found best, the only one that has changed since, is best again.

    So it is where its score has not fallen, since those of all others are what they were.
    """
    request, end = requests[r], index.log_end[LOG_END]
    n = request.best
    if n < 0 or index.log[(end - 1) & (index.log.size - 1)] != n:
        return False
    if room_on(machines, requests, index.allowed, r, n, FULL) <= 0:
        return False
    value = ask(index, machines, requests, r, n, knobs)
    if value < request.top:
        return False
    request.top = value
    return True


@inlined
def _follows(index: Index, changes: int, fitting: int) -> bool:
    """Return whether following so many changes costs less than scanning all nodes."""
    if index.dear[0] != 0:
        # Never more than the log holds.
        return changes <= fitting
    return changes * _CHANGES_PER_SCAN <= index.scores.shape[1]


def _policy(machines: Machines, requests: Records, r: int, n: int, knobs: Knobs) -> float:
    """Stand for the policy's score."""
    raise NotImplementedError


def _ask(index: Index, machines: Machines, requests: Records, r: int, n: int, knobs: Knobs) -> float:
    """Return the policy's score of node n that fits; where n is minus a number of instances, look for nodes for them."""
    if n >= 0:
        return _finite(_policy(machines, requests, r, n, knobs))
    return _all(index, machines, requests, r, -n, knobs)


@inlined
def _finite(value: float) -> float:
    """Return a finite number whatever a policy says."""
    return value if value > _LOWEST else _LOWEST


@cache
def asking(score: Callable[..., float]) -> Callable[..., float]:
    """Return `_ask` for this policy, with its score compiled into the loop over all nodes."""
    policy = score if config.DISABLE_JIT else inlined(score)
    everywhere = _copied(_all, score, {"_policy": policy})
    return _copied(_ask, score, {"_policy": policy, "_all": everywhere if config.DISABLE_JIT else compiled(everywhere)})


def _copied(function: Any, score: Callable[..., float], names: dict[str, Any]) -> Any:
    """Return a copy of the function for which the names stand for something else; its name says for which policy."""
    copy = FunctionType(function.__code__, {**function.__globals__, **names}, function.__name__)
    copy.__qualname__ = f"{function.__qualname__}_{score.__module__}_{score.__qualname__}"
    copy.__module__ = function.__module__
    return copy


def _all(index: Index, machines: Machines, requests: Records, r: int, most: int, knobs: Knobs) -> float:
    """Find the best of all nodes that fit; where the request has a slot, their scores are noted there.

    With `most` above 1, keep so many of the best in index.ranking, the best on top. Returns how many are kept.
    """
    request, branches, count = requests[r], index.branches, machines.nodes.size
    slot, leaves = request.slot, branches.size // 2
    whole = share = 0
    models = -1
    if request.gpu_count > 0:
        models, share = index.models[r], request.gpu_milli
        whole = request.gpu_count if request.gpu_milli == WHOLE else 0
    # The tree's leaf holds all there is to know of a node, unless the request asks for more than the tree knows.
    more = request.disk > 0 or request.rdma > 0 or request.max_per_node >= 0 or request.gpu_memory > 0
    more = more or (request.gpu_count > 1 and whole == 0)
    best, top, fitting, ranking, kept = -1, -np.inf, 0, index.ranking, 0
    notes = slot >= 0 and most == 1
    if notes:
        index.scores[slot, :] = -np.inf
    step = min(_BLOCK, leaves)
    for block in range(leaves // step):
        begin = block * step
        if begin >= count:
            break
        above = branches[(leaves + begin) // step]
        if above.share < share or above.whole < whole or above.models & models == 0:
            continue
        if above.cpu < request.cpu or above.memory < request.memory:
            continue
        for n in range(begin, min(begin + step, count)):
            leaf = branches[leaves + n]
            if leaf.share < share or leaf.whole < whole or leaf.models & models == 0:
                continue
            if leaf.cpu < request.cpu or leaf.memory < request.memory:
                continue
            if more and room_on(machines, requests, index.allowed, r, n, FULL) <= 0:
                continue
            fitting += 1
            value = _finite(_policy(machines, requests, r, wide(n), knobs))
            if most == 1:
                if notes:
                    index.scores[slot, n] = value
                if best < 0 or value > top:
                    best, top = n, value
            elif kept < most:
                # While it grows, the worst is on top: a later node counts as worse among equals.
                ranking[kept].value, ranking[kept].node = value, n
                kept += 1
                _rise(ranking, kept - 1)
            elif value > ranking[0].value:
                ranking[0].value, ranking[0].node = value, n
                _sink(ranking, wide(0), kept, True)
    if most == 1:
        request.fitting, request.best, request.top = fitting, best, top
    else:
        for k in range(kept // 2 - 1, -1, -1):
            _sink(ranking, wide(k), kept, False)
    return float(kept)


@inlined
def ranks(index: Index, requests: Records, r: int) -> bool:
    """Return whether the nodes for a gang are found by asking all nodes once."""
    request = requests[r]
    if request.slot == FIRST_FITS or index.dear[0] != 0 or index.dear[1] != 0:
        return False
    if index.journal.state[OPEN] != 0:
        return not (
            can_follow_trial(index, requests, r) and _follows(index, index.journal.state[NODES], request.fitting)
        )
    return not (request.seen >= 0 and _follows(index, index.log_end[LOG_END] - request.seen, request.fitting))


@inlined
def rank_nodes(index: Index, machines: Machines, requests: Records, r: int, size: int, knobs: Knobs, ask: Any) -> int:
    """Keep the best nodes for a gang of `size` in index.ranking with the best on top; return their number."""
    if index.journal.state[OPEN] == 0:
        requests[r].used, requests[r].seen = index.log_end[LOG_END], -1
    return int(ask(index, machines, requests, r, -size, knobs))


@compiled
def rank_again(index: Index, machines: Machines, requests: Records, r: int, count: int, knobs: Knobs, ask: Any) -> int:
    """Score the first node of the ranking anew, which has got an instance, or drop it; return how many are left."""
    ranking = index.ranking
    n = wide(ranking[0].node)
    if room_on(machines, requests, index.allowed, r, n, FULL) > 0:
        ranking[0].value = ask(index, machines, requests, r, n, knobs)
    else:
        count -= 1
        ranking[0].value, ranking[0].node = ranking[count].value, ranking[count].node
    _sink(ranking, wide(0), count, False)
    return count


@inlined
def _better(a: Any, b: Any) -> bool:
    return a.value > b.value or (a.value == b.value and a.node < b.node)


@inlined
def _swap(ranking: Records, a: int, b: int) -> None:
    value, node = ranking[a].value, ranking[a].node
    ranking[a].value, ranking[a].node = ranking[b].value, ranking[b].node
    ranking[b].value, ranking[b].node = value, node


@inlined
def _rise(ranking: Records, k: int) -> None:
    """Bring entry k up to where it belongs in a heap with the worst on top."""
    while k > 0 and _better(ranking[(k - 1) >> 1], ranking[k]):
        _swap(ranking, k, (k - 1) >> 1)
        k = (k - 1) >> 1


@compiled
def _sink(ranking: Records, k: int, count: int, worst: bool) -> None:
    """Bring entry k down to where it belongs in a heap with the best on top, or the worst."""
    while 2 * k + 1 < count:
        c = 2 * k + 1
        if c + 1 < count and _better(ranking[c + 1], ranking[c]) != worst:
            c += 1
        if _better(ranking[c], ranking[k]) == worst:
            return
        _swap(ranking, k, c)
        k = c
