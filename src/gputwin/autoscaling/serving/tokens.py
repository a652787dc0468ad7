"""The event loop of LLM serving: continuous batching, one engine step at a time.

A step gives one token to each decoding sequence and fills the rest of the token budget with prompts, in order, a long
prompt in chunks (Yu et al., "Orca", OSDI'22; Agrawal et al., "Sarathi-Serve", OSDI'24; the order is that of vLLM's first
scheduler with chunked prefill). A prompt's first token comes at the end of the step that completes it. Where the cache of
keys and values is full, the latest sequence gives way and its tokens are computed again later (Kwon et al., "vLLM",
SOSP'23).

An arrival is routed to the replica with the fewest requests that has a free sequence; when none has, it waits in the
shared queue.
"""

from __future__ import annotations

import numpy as np

from gputwin.autoscaling.serving.arrivals import complete, drop, give_up, is_arrival, move_clock, next_time, wait
from gputwin.autoscaling.serving.compiled import compiled, entry
from gputwin.autoscaling.serving.events import pop, push
from gputwin.autoscaling.serving.queue import put_first, put_last, take_out
from gputwin.autoscaling.serving.replicas import become_ready, set_target, stop
from gputwin.autoscaling.serving.world import (
    BOOTING,
    CENTRAL,
    DRAINING,
    EXPIRY,
    N_ARRIVED,
    N_EVENTS,
    N_FREE_SLOTS,
    N_PREEMPTED,
    N_ROWS,
    N_RUNNING,
    N_WAITING,
    NOBODY,
    READY,
    RUNNING,
    STEP,
    T_NOW,
    UP,
    WAITING,
    World,
)

_NEVER = np.iinfo(np.int64).max


@compiled
def _to_fill(w: World, j: int) -> int:
    """Return the tokens to compute before request `j` can decode: its prompt, and what it made before it gave way."""
    return w.requests.input_tokens[j] + w.requests.produced[j]


@compiled
def _route(w: World) -> None:
    """Hand the shared queue's head to the replicas while one has a free sequence."""
    p = w.replicas
    while w.counters[N_FREE_SLOTS] > 0 and w.queues.head[CENTRAL] != NOBODY:
        chosen, least = NOBODY, w.limits.slots
        for row in range(w.counters[N_ROWS]):
            if p.state[row] == UP and p.busy[row] + p.routed[row] < least:
                chosen, least = row, p.busy[row] + p.routed[row]
        j = w.queues.head[CENTRAL]
        take_out(w.queues, CENTRAL, j)
        put_last(w.queues, chosen + 1, j)
        w.requests.row[j] = chosen
        p.routed[chosen] += 1
        w.counters[N_FREE_SLOTS] -= 1
        if w.batches.is_stepping[chosen] == 0:
            _begin_step(w, chosen)


@compiled
def _stop_decoding(w: World, row: int, j: int) -> None:
    """Free the cache of a decoding request, and note how many tokens it has made."""
    b, r = w.batches, w.requests
    left = r.ends_at_step[j] - b.steps[row]
    r.produced[j] = r.output_tokens[j] - left
    b.context[row] -= r.input_tokens[j] + r.produced[j]
    b.decoding[row] -= 1
    r.ends_at_step[j] = _NEVER


@compiled
def _put_back(w: World, row: int) -> None:
    """Take the latest sequence out of the batch, to be first in line again; its tokens are computed anew then."""
    r, p = w.requests, w.replicas
    j = w.batches.members[row, p.busy[row] - 1]
    if r.computed[j] < _to_fill(w, j):
        w.batches.filling[row] -= _to_fill(w, j)
    else:
        _stop_decoding(w, row, j)
    r.computed[j], r.status[j] = 0, WAITING
    put_first(w.queues, row + 1, j)
    p.busy[row] -= 1
    p.routed[row] += 1
    w.counters[N_RUNNING] -= 1
    w.counters[N_WAITING] += 1
    w.counters[N_PREEMPTED] += 1


@compiled
def _admit(w: World, row: int, j: int) -> None:
    r, p = w.requests, w.replicas
    take_out(w.queues, row + 1, j)
    p.routed[row] -= 1
    w.batches.members[row, p.busy[row]] = j
    w.batches.filling[row] += _to_fill(w, j)
    p.busy[row] += 1
    if r.start[j] < 0.0:
        r.start[j] = w.clocks[T_NOW]
    r.status[j] = RUNNING
    w.counters[N_WAITING] -= 1
    w.counters[N_RUNNING] += 1


@compiled
def _fill(w: World, row: int, j: int, budget: int) -> float:
    """Compute up to `budget` more tokens of the prompt of `j`; return pairs of tokens attended to."""
    r = w.requests
    chunk = min(budget, _to_fill(w, j) - r.computed[j])
    pairs = chunk * (r.computed[j] + 0.5 * chunk)
    r.computed[j] += chunk
    w.batches.planned_prefill[row] += chunk
    return pairs


@compiled
def _begin_step(w: World, row: int) -> None:
    """Plan the next step of a replica's engine, if there is anything to do."""
    b, p, limits = w.batches, w.replicas, w.limits
    while p.busy[row] > 1 and b.context[row] + b.filling[row] + b.decoding[row] > limits.cache_tokens:
        _put_back(w, row)
    b.planned_prefill[row] = 0
    budget, pairs = limits.batched_tokens - b.decoding[row], 0.0
    if p.busy[row] > b.decoding[row]:
        # At most one prompt is under way: it took all of the budget that was left.
        pairs += _fill(w, row, b.members[row, p.busy[row] - 1], budget)
    while budget > b.planned_prefill[row] and p.busy[row] < limits.slots:
        j = w.queues.head[row + 1]
        if j == NOBODY or b.context[row] + b.filling[row] + b.decoding[row] + _to_fill(w, j) > limits.cache_tokens:
            break
        _admit(w, row, j)
        pairs += _fill(w, row, j, budget - b.planned_prefill[row])
    if b.decoding[row] == 0 and b.planned_prefill[row] == 0:
        b.is_stepping[row] = 0
        return
    time = limits.step_seconds + limits.prefill_seconds * b.planned_prefill[row] + limits.attention_seconds * pairs
    time += limits.decode_seconds * b.decoding[row] + limits.context_seconds * b.context[row]
    b.is_stepping[row] = 1
    p.busy_seconds[row] += time
    push(w.events, w.clocks[T_NOW] + time, STEP, row, NOBODY)


@compiled
def _leave(w: World, row: int, j: int) -> None:
    complete(w.requests, w.replicas, w.counters, w.clocks, j, row)
    if w.replicas.state[row] == UP:
        w.counters[N_FREE_SLOTS] += 1


@compiled
def _end_step(w: World, row: int) -> None:
    """Hand out the tokens of a step: decoding sequences got one each, completed prompts their first."""
    b, r, p = w.batches, w.requests, w.replicas
    b.steps[row] += 1
    b.context[row] += b.decoding[row]
    if b.steps[row] < b.next_end[row] and b.planned_prefill[row] == 0:
        return
    kept, b.next_end[row] = 0, _NEVER
    for i in range(p.busy[row]):
        j = b.members[row, i]
        if r.ends_at_step[j] == _NEVER and r.computed[j] == _to_fill(w, j):
            # The step completed its prompt, and made one token more.
            b.filling[row] -= r.computed[j]
            b.decoding[row] += 1
            b.context[row] += r.computed[j] + 1
            r.ends_at_step[j] = b.steps[row] + r.output_tokens[j] - r.produced[j] - 1
            if r.first_token[j] < 0.0:
                r.first_token[j] = w.clocks[T_NOW]
        if r.ends_at_step[j] <= b.steps[row]:
            b.decoding[row] -= 1
            b.context[row] -= r.input_tokens[j] + r.output_tokens[j]
            _leave(w, row, j)
            continue
        b.next_end[row] = min(b.next_end[row], r.ends_at_step[j])
        b.members[row, kept] = j
        kept += 1
    p.busy[row] = kept


@compiled
def _step(w: World, row: int) -> None:
    _end_step(w, row)
    # New requests are routed before the next step is planned, so that it can take them in.
    _route(w)
    _begin_step(w, row)
    w.replicas.last_used[row] = w.clocks[T_NOW]
    if w.replicas.state[row] == DRAINING and w.replicas.busy[row] + w.replicas.routed[row] == 0:
        stop(w.replicas, w.counters, w.clocks, row)


@compiled
def _arrive(w: World) -> None:
    j = w.counters[N_ARRIVED]
    w.counters[N_ARRIVED] += 1
    if w.requests.input_tokens[j] + w.requests.output_tokens[j] > w.limits.cache_tokens:
        drop(w, j)
        return
    wait(w, j)
    _route(w)


@compiled
def _happen(w: World) -> None:
    pop(w.events)
    e = w.events
    at = e.size[0]
    kind, row, j = e.kind[at], e.row[at], e.request[at]
    if kind == STEP:
        _step(w, row)
    elif kind == READY:
        if w.replicas.state[row] == BOOTING and w.replicas.number[row] == j:
            become_ready(w.replicas, w.counters, w.limits.slots, row)
            _route(w)
    elif kind == EXPIRY:
        give_up(w, j)
        _route(w)


@entry
def advance(w: World, until: float) -> None:
    """Let everything happen up to and including the time `until`."""
    time = next_time(w)
    while time <= until and time < np.inf:
        move_clock(w.counters, w.clocks, time)
        w.counters[N_EVENTS] += 1
        if is_arrival(w):
            _arrive(w)
        else:
            _happen(w)
        time = next_time(w)
    if w.clocks[T_NOW] < until < np.inf:
        move_clock(w.counters, w.clocks, until)


@entry
def scale(w: World, target: int, is_instant: bool) -> None:
    """Set how many replicas should be there, from now on; those begun with `is_instant` are ready at once."""
    set_target(w, target, is_instant)
