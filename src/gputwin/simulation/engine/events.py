"""The event list: a binary heap of (time, kind, number), so that ties break the same way in every run.

Kinds are in the order in which events of one instant are handled. Faults, resizing, preemption and scaling bring their own
kinds; the loop hands each to its handler.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from gputwin.simulation.engine.compiled import compiled

from gputwin.simulation.engine.state import Floats, Ints

FINISH = 0  # number: job
NODE_DOWN = 1  # number: node
NODE_UP = 2  # number: node
CORRECT = 3  # number: job whose predicted end has passed
STARVE = 4  # number: job that has waited its maximum
BEGIN = 5  # number: job whose reservation begins
TICK = 6
_KIND_SHIFT = 40


class Events(NamedTuple):
    """The heap: times, and codes that hold kind and number."""

    time: Floats
    code: Ints
    count: Ints  # [1]


def make_events(capacity: int) -> Events:
    """Return an empty heap that can hold `capacity` events."""
    return Events(np.zeros(capacity + 1), np.zeros(capacity + 1, np.int64), np.zeros(1, np.int64))


@compiled
def _earlier(events: Events, a: int, b: int) -> bool:
    return bool(
        events.time[a] < events.time[b] or (events.time[a] == events.time[b] and events.code[a] < events.code[b])
    )


@compiled
def schedule(events: Events, time: float, kind: int, number: int) -> None:
    """Add an event."""
    code = (kind << _KIND_SHIFT) | number
    k = events.count[0]
    events.count[0] += 1
    while k > 0:
        parent = (k - 1) >> 1
        if events.time[parent] < time or (events.time[parent] == time and events.code[parent] < code):
            break
        events.time[k], events.code[k] = events.time[parent], events.code[parent]
        k = parent
    events.time[k], events.code[k] = time, code


@compiled
def next_time(events: Events) -> float:
    """Return the time of the earliest event; infinity for none."""
    return float(events.time[0]) if events.count[0] > 0 else np.inf


@compiled
def pop(events: Events) -> tuple[int, int]:
    """Remove the earliest event and return its kind and number."""
    code = events.code[0]
    last = events.count[0] - 1
    events.count[0] = last
    if last > 0:
        time, moved = events.time[last], events.code[last]
        k = 0
        while True:
            child = 2 * k + 1
            if child >= last:
                break
            if child + 1 < last and _earlier(events, child + 1, child):
                child += 1
            if time < events.time[child] or (time == events.time[child] and moved < events.code[child]):
                break
            events.time[k], events.code[k] = events.time[child], events.code[child]
            k = child
        events.time[k], events.code[k] = time, moved
    return code >> _KIND_SHIFT, code & ((1 << _KIND_SHIFT) - 1)
