"""Scores of all nodes for a request, kept in a tournament tree: the winner of all matches is the best node.

Kept scores follow the log: only nodes that changed since are asked again. A trial is not in the log, so the scores of the
nodes it has changed are put in for as long as it is open, and written down in the journal (`trials/journal.py`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gputwin.simulation.engine.compiled import compiled, inlined
from gputwin.simulation.engine.fit.index import FULL, LOG_END, Index, room_on
from gputwin.simulation.engine.state.records import Knobs, Machines, Records, wide
from gputwin.simulation.engine.trials.journal import BEGUN, NODES, SCORES, STEP


@compiled
def build(index: Index, slot: int) -> None:
    """Play all matches."""
    leaves = index.winners.shape[1] // 2
    for n in range(index.scores.shape[1]):
        index.winners[slot, leaves + n] = n if index.scores[slot, n] > -np.inf else -1
    for k in range(leaves - 1, 0, -1):
        index.winners[slot, k] = _winner(index, slot, k)


@compiled
def follow(index: Index, machines: Machines, requests: Records, r: int, knobs: Knobs, ask: Any) -> None:
    """Ask the nodes that changed, and play their matches again."""
    request = requests[r]
    slot, mask = request.slot, index.log.size - 1
    for k in range(request.seen, index.log_end[LOG_END]):
        n = index.log[k & mask]
        was, now = index.scores[slot, n], -np.inf
        if room_on(machines, requests, index.allowed, r, n, FULL) > 0:
            now = ask(index, machines, requests, r, n, knobs)
        if now != was:
            request.fitting += wide(now > -np.inf) - wide(was > -np.inf)
            put_score(index, slot, n, now)


@inlined
def put_score(index: Index, slot: int, n: int, value: float) -> None:
    """Let node n have this score, and play its matches again."""
    leaves = index.winners.shape[1] // 2
    index.scores[slot, n] = value
    index.winners[slot, leaves + n] = n if value > -np.inf else -1
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


@inlined
def can_follow_trial(index: Index, requests: Records, r: int) -> bool:
    """Return whether the kept scores of r are those before the open trial, and what it changes can be written down."""
    journal, request = index.journal, requests[r]
    if request.slot < 0 or request.seen != index.log_end[LOG_END]:
        return False
    return journal.state[SCORES] + journal.state[NODES] <= journal.scores.size


@compiled
def follow_trial(index: Index, machines: Machines, requests: Records, r: int, knobs: Knobs, ask: Any) -> None:
    """Ask the nodes that the open trial has changed since its kept scores last followed it."""
    journal, slot = index.journal, requests[r].slot
    state = journal.state
    since = max(journal.followed[slot], state[BEGUN])
    journal.followed[slot] = state[STEP]
    for k in range(state[NODES]):
        n = wide(journal.nodes[k])
        if journal.changed_at[n] <= since:
            continue
        was, now = index.scores[slot, n], -np.inf
        if room_on(machines, requests, index.allowed, r, n, FULL) > 0:
            now = ask(index, machines, requests, r, n, knobs)
        if now != was:
            old = journal.scores[state[SCORES]]
            old.value, old.slot, old.node = was, slot, n
            state[SCORES] += 1
            put_score(index, slot, n, now)
