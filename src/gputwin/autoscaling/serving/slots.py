"""The event loop of a general service: G/G/c with replicas that come and go, one shared queue in order of arrival.

A replica serves `slots` requests at once. Where requests name a base model or adapters, a free replica that holds them
is preferred, and another spends the load times first.
"""

from __future__ import annotations

import numpy as np

from gputwin.autoscaling.serving.arrivals import complete, give_up, is_arrival, move_clock, next_time, wait
from gputwin.autoscaling.serving.compiled import compiled, entry
from gputwin.autoscaling.serving.events import pop, push
from gputwin.autoscaling.serving.queue import take_out
from gputwin.autoscaling.serving.replicas import become_ready, set_target, stop
from gputwin.autoscaling.serving.world import (
    BOOTING,
    CENTRAL,
    COMPLETION,
    DRAINING,
    EXPIRY,
    N_ARRIVED,
    N_EVENTS,
    N_FREE_SLOTS,
    N_LOADS,
    N_ROWS,
    N_RUNNING,
    N_WAITING,
    NOBODY,
    READY,
    RUNNING,
    T_NOW,
    UP,
    World,
)


@compiled
def _choose(w: World, j: int) -> int:
    """Return the replica to serve request `j`: the one that holds most of what it needs, has least to do, rests longest."""
    p, chosen = w.replicas, NOBODY
    model, adapter = w.requests.model[j], w.requests.adapter[j]
    best_match, best_busy, best_used = -1, 0, 0.0
    for row in range(w.counters[N_ROWS]):
        if p.state[row] != UP or p.busy[row] >= w.limits.slots:
            continue
        match = 0
        if model == NOBODY or p.model[row] == model:
            match = 2 if adapter == NOBODY or p.adapter[row] == adapter else 1
        if match != best_match:
            better = match > best_match
        elif p.busy[row] != best_busy:
            better = p.busy[row] < best_busy
        else:
            better = p.last_used[row] < best_used
        if better:
            chosen, best_match, best_busy, best_used = row, match, p.busy[row], p.last_used[row]
    return chosen


@compiled
def _start(w: World, j: int, row: int) -> None:
    r, p, now = w.requests, w.replicas, w.clocks[T_NOW]
    time = r.service[j]
    if r.model[j] != NOBODY and p.model[row] != r.model[j]:
        time += r.model_load[j]
        w.counters[N_LOADS] += 1
        p.model[row], p.adapter[row] = r.model[j], NOBODY
    if r.adapter[j] != NOBODY and p.adapter[row] != r.adapter[j]:
        time += r.adapter_load[j]
        p.adapter[row] = r.adapter[j]
    r.status[j], r.start[j], r.row[j] = RUNNING, now, row
    p.busy[row] += 1
    p.busy_seconds[row] += time
    w.counters[N_RUNNING] += 1
    w.counters[N_FREE_SLOTS] -= 1
    push(w.events, now + time, COMPLETION, row, j)


@compiled
def _serve_waiting(w: World) -> None:
    while w.counters[N_FREE_SLOTS] > 0 and w.queues.head[CENTRAL] != NOBODY:
        j = w.queues.head[CENTRAL]
        take_out(w.queues, CENTRAL, j)
        w.counters[N_WAITING] -= 1
        _start(w, j, _choose(w, j))


@compiled
def _end(w: World, j: int, row: int) -> None:
    p = w.replicas
    complete(w.requests, w.replicas, w.counters, w.clocks, j, row)
    p.busy[row] -= 1
    p.last_used[row] = w.clocks[T_NOW]
    if p.state[row] == DRAINING:
        if p.busy[row] == 0:
            stop(w.replicas, w.counters, w.clocks, row)
        return
    w.counters[N_FREE_SLOTS] += 1


@compiled
def _arrive(w: World) -> None:
    j = w.counters[N_ARRIVED]
    w.counters[N_ARRIVED] += 1
    if w.counters[N_FREE_SLOTS] > 0:
        _start(w, j, _choose(w, j))
    else:
        wait(w, j)


@compiled
def _happen(w: World) -> None:
    pop(w.events)
    e = w.events
    at = e.size[0]
    kind, row, j = e.kind[at], e.row[at], e.request[at]
    if kind == COMPLETION:
        _end(w, j, row)
    elif kind == READY:
        if w.replicas.state[row] == BOOTING and w.replicas.number[row] == j:
            become_ready(w.replicas, w.counters, w.limits.slots, row)
    elif kind == EXPIRY:
        give_up(w, j)
    _serve_waiting(w)


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
