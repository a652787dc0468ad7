"""What both loops do with a request outside a replica: arrive, be turned away, give up; and the clock."""

from __future__ import annotations

import numpy as np

from gputwin.autoscaling.serving.compiled import compiled
from gputwin.autoscaling.serving.events import push
from gputwin.autoscaling.serving.queue import put_last, take_out
from gputwin.autoscaling.serving.world import (
    ABANDONED,
    CENTRAL,
    DROPPED,
    EXPIRY,
    N_ABANDONED,
    N_ARRIVED,
    N_DROPPED,
    N_FREE_SLOTS,
    N_PAID,
    N_RUNNING,
    N_SERVED,
    N_UP,
    N_WAITING,
    NOBODY,
    SERVED,
    T_NOW,
    T_PAID,
    T_READY,
    T_RUNNING,
    T_WAITING,
    UP,
    WAITING,
    Floats,
    Integers,
    Replicas,
    Requests,
    World,
)


@compiled
def move_clock(counters: Integers, clocks: Floats, time: float) -> None:
    """Advance to `time`, adding what stood still since to the integrals."""
    elapsed = time - clocks[T_NOW]
    clocks[T_WAITING] += elapsed * counters[N_WAITING]
    clocks[T_RUNNING] += elapsed * counters[N_RUNNING]
    clocks[T_READY] += elapsed * counters[N_UP]
    clocks[T_PAID] += elapsed * counters[N_PAID]
    clocks[T_NOW] = time


@compiled
def next_time(w: World) -> float:
    """Return when the next event or arrival is, infinite for none."""
    time = w.events.time[0] if w.events.size[0] > 0 else np.inf
    j = w.counters[N_ARRIVED]
    if j < w.requests.arrival.size:
        time = min(time, w.requests.arrival[j])
    return time


@compiled
def is_arrival(w: World) -> bool:
    """Return whether an arrival comes before every event; at one instant events go first."""
    j = w.counters[N_ARRIVED]
    if j >= w.requests.arrival.size:
        return False
    return w.events.size[0] == 0 or w.requests.arrival[j] < w.events.time[0]


@compiled
def drop(w: World, j: int) -> None:
    """Turn request `j` away."""
    w.requests.status[j] = DROPPED
    w.requests.finish[j] = w.clocks[T_NOW]
    w.counters[N_DROPPED] += 1


@compiled
def wait(w: World, j: int) -> None:
    """Put an arrival into the shared queue, or turn it away where the queue is full."""
    if w.counters[N_FREE_SLOTS] <= 0 and w.counters[N_WAITING] >= w.limits.queue_limit:
        drop(w, j)
        return
    w.requests.status[j] = WAITING
    w.requests.row[j] = NOBODY
    w.counters[N_WAITING] += 1
    put_last(w.queues, CENTRAL, j)
    if w.requests.patience[j] < np.inf:
        push(w.events, w.clocks[T_NOW] + w.requests.patience[j], EXPIRY, NOBODY, j)


@compiled
def give_up(w: World, j: int) -> None:
    """Let a request whose patience ends leave, unless it is being served or was."""
    if w.requests.status[j] != WAITING or w.requests.first_token[j] >= 0.0:
        return
    row = w.requests.row[j]
    take_out(w.queues, CENTRAL if row == NOBODY else row + 1, j)
    if row != NOBODY:
        w.replicas.routed[row] -= 1
        if w.replicas.state[row] == UP:
            w.counters[N_FREE_SLOTS] += 1
    w.requests.status[j] = ABANDONED
    w.requests.finish[j] = w.clocks[T_NOW]
    w.counters[N_WAITING] -= 1
    w.counters[N_ABANDONED] += 1


@compiled
def complete(r: Requests, p: Replicas, counters: Integers, clocks: Floats, j: int, row: int) -> None:
    """Note that request `j` is served."""
    r.status[j] = SERVED
    r.finish[j] = clocks[T_NOW]
    r.completed[counters[N_SERVED]] = j
    counters[N_SERVED] += 1
    counters[N_RUNNING] -= 1
    p.served[row] += 1
