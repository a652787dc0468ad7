"""Replicas come and go: launched, ready after the boot delay, drained before they stop."""

from __future__ import annotations

from gputwin.autoscaling.serving.compiled import compiled
from gputwin.autoscaling.serving.events import push
from gputwin.autoscaling.serving.world import (
    BOOTING,
    DRAINING,
    N_FREE_SLOTS,
    N_LAUNCHED,
    N_LOGGED,
    N_PAID,
    N_REFUSED,
    N_ROWS,
    N_UP,
    NOBODY,
    OFF,
    READY,
    T_NOW,
    UP,
    Floats,
    Integers,
    Replicas,
    World,
)


@compiled
def _wanted(p: Replicas, counters: Integers) -> int:
    """Return how many replicas are up or booting."""
    count = 0
    for row in range(counters[N_ROWS]):
        if p.state[row] == UP or p.state[row] == BOOTING:
            count += 1
    return count


@compiled
def launch(w: World, is_instant: bool) -> None:
    """Start one replica; it is ready after the next boot delay, or now. Refused where every row is taken."""
    p, now = w.replicas, w.clocks[T_NOW]
    row = 0
    while row < p.state.size and p.state[row] != OFF:
        row += 1
    if row == p.state.size:
        w.counters[N_REFUSED] += 1
        return
    w.counters[N_ROWS] = max(w.counters[N_ROWS], row + 1)
    delay = 0.0 if is_instant else p.boot[w.counters[N_LAUNCHED] % p.boot.size]
    w.counters[N_LAUNCHED] += 1
    w.counters[N_PAID] += 1
    p.state[row], p.number[row] = BOOTING, w.counters[N_LAUNCHED]
    p.launched[row], p.ready[row], p.drained[row] = now, now + delay, -1.0
    p.busy[row], p.routed[row], p.busy_seconds[row], p.last_used[row], p.served[row] = 0, 0, 0.0, now, 0
    p.model[row], p.adapter[row] = NOBODY, NOBODY
    # The event carries the launch's number: a replica stopped while booting leaves a stale event behind.
    push(w.events, now + delay, READY, row, w.counters[N_LAUNCHED])


@compiled
def stop(p: Replicas, counters: Integers, clocks: Floats, row: int) -> None:
    """End a replica that works on nothing, and write its life to the log."""
    at = counters[N_LOGGED]
    counters[N_LOGGED] = at + 1
    p.log[at, 0], p.log[at, 1], p.log[at, 2] = p.launched[row], p.ready[row], p.drained[row]
    p.log[at, 3], p.log[at, 4], p.log[at, 5] = clocks[T_NOW], p.busy_seconds[row], p.served[row]
    p.state[row] = OFF
    counters[N_PAID] -= 1


@compiled
def _victim(p: Replicas, counters: Integers) -> int:
    """Return who goes first: one still booting (the latest), else the one with the least work (the latest)."""
    chosen = NOBODY
    for row in range(counters[N_ROWS]):
        if p.state[row] != UP and p.state[row] != BOOTING:
            continue
        if chosen == NOBODY:
            chosen = row
            continue
        boots, best_boots = p.state[row] == BOOTING, p.state[chosen] == BOOTING
        work, least = p.busy[row] + p.routed[row], p.busy[chosen] + p.routed[chosen]
        if boots != best_boots:
            better = boots
        elif work != least:
            better = work < least
        else:
            better = p.launched[row] >= p.launched[chosen]
        if better:
            chosen = row
    return chosen


@compiled
def retire(w: World) -> None:
    """Stop one replica: at once while it boots or has nothing to do, else when its last request is done."""
    p, row = w.replicas, _victim(w.replicas, w.counters)
    if row == NOBODY:
        return
    p.drained[row] = w.clocks[T_NOW]
    if p.state[row] == UP:
        w.counters[N_UP] -= 1
        w.counters[N_FREE_SLOTS] -= w.limits.slots - p.busy[row] - p.routed[row]
    if p.busy[row] + p.routed[row] == 0:
        stop(w.replicas, w.counters, w.clocks, row)
    else:
        p.state[row] = DRAINING


@compiled
def become_ready(p: Replicas, counters: Integers, slots: int, row: int) -> None:
    """Let a replica that has booted take requests."""
    p.state[row] = UP
    counters[N_UP] += 1
    counters[N_FREE_SLOTS] += slots


@compiled
def set_target(w: World, target: int, is_instant: bool) -> None:
    """Launch or retire until `target` replicas are up or booting."""
    have = _wanted(w.replicas, w.counters)
    for _ in range(target - have):
        launch(w, is_instant)
    for _ in range(have - target):
        retire(w)
