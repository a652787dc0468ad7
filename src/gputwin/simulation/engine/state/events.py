"""The event list: a heap of four branches of (time, kind, number), so that ties break the same way in every run.

Kinds are in the order in which events of one instant are handled. An event is valid only if it still agrees with its
job or node when its time comes, so nothing is ever taken out of the heap.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gputwin.simulation.engine.compiled import compiled, inlined
from gputwin.simulation.engine.interpreted import wrapped
from gputwin.simulation.engine.state.records import Ints, Records, wide

FINISH = wide(0)  # number: job
NODE_DOWN = wide(1)  # number: node
NODE_UP = wide(2)  # number: node
CORRECT = wide(3)  # number: job whose predicted end has passed
STARVE = wide(4)  # number: job that has waited its maximum
DRAIN = wide(5)  # number: node that takes no more jobs
CROSS = wide(6)  # number: running job whose rank changes
PROMOTE = wide(7)  # number: job that has waited so long that its service is forgotten
BOOT = wide(8)  # number: node of a pool that is started
YIELD = wide(9)  # number: running job that a plan stops
ROUND = wide(10)  # a plan says who starts now
RELAX = wide(11)  # number: waiting job that may take another form
_KIND_SHIFT = 40

EVENT = np.dtype([("time", np.float64), ("code", np.int64)], align=True)


class Events(NamedTuple):
    """The heap: times, and codes that hold kind and number."""

    heap: Records
    count: Ints  # type: ignore[assignment]  # [1]


def make_events(capacity: int) -> Events:
    """Return an empty heap that can hold `capacity` events."""
    return Events(np.zeros(capacity + 1, EVENT), np.zeros(1, np.int64))


def compacted(events: Events, jobs: Records, room: int) -> Events:
    """Return the same without events that no longer agree with their job, with room for as many again as `room`."""
    heap = events.heap[: events.count[0]]
    kind, number = heap["code"] >> _KIND_SHIFT, heap["code"] & ((1 << _KIND_SHIFT) - 1)
    stale = np.zeros(heap.size, np.bool_)
    for of_job, time in ((FINISH, "end"), (CORRECT, "believed_end")):
        rows = np.flatnonzero(kind == of_job)
        stale[rows] = jobs[time][number[rows]] != heap["time"][rows]
    kept = heap[~stale]
    kept = kept[np.lexsort((kept["code"], kept["time"]))]
    # Sorted, it is a heap.
    fresh = make_events(max(2 * (kept.size + room), events.heap.size))
    fresh.heap[: kept.size] = kept
    fresh.count[0] = kept.size
    return fresh


@compiled
def schedule(events: Events, time: float, kind: int, number: int) -> None:
    """Add an event."""
    code = (kind << _KIND_SHIFT) | number
    heap = events.heap
    k = events.count[0]
    events.count[0] += 1
    while k > 0:
        parent = (k - 1) >> 2
        if heap[parent].time < time or (heap[parent].time == time and heap[parent].code < code):
            break
        heap[k].time, heap[k].code = heap[parent].time, heap[parent].code
        k = parent
    heap[k].time, heap[k].code = time, code


def schedule_from_outside(events: Events, time: float, kind: int, number: int) -> None:
    """Add an event while the loop is not running; the heap must have room."""
    plain = getattr(schedule, "py_func", schedule)
    plain(wrapped(events), time, kind, number)


@inlined
def next_time(events: Events) -> float:
    """Return the time of the earliest event; infinity for none."""
    return events.heap[0].time if events.count[0] > 0 else np.inf


@inlined
def next_to_finish(events: Events) -> int:
    """Return the job of the earliest event, if that is its end; -1 otherwise."""
    code = events.heap[0].code
    return code if events.count[0] > 0 and code >> _KIND_SHIFT == FINISH else wide(-1)


@compiled
def pop(events: Events) -> tuple[int, int]:
    """Remove the earliest event and return its kind and number."""
    heap = events.heap
    code = heap[0].code
    last = events.count[0] - 1
    events.count[0] = last
    if last > 0:
        time, moved = heap[last].time, heap[last].code
        k = 0
        while True:
            child = 4 * k + 1
            if child >= last:
                break
            for other in range(child + 1, min(child + 4, last)):
                a, b = heap[child], heap[other]
                if b.time < a.time or (b.time == a.time and b.code < a.code):
                    child = other
            if time < heap[child].time or (time == heap[child].time and moved < heap[child].code):
                break
            heap[k].time, heap[k].code = heap[child].time, heap[child].code
            k = child
        heap[k].time, heap[k].code = time, moved
    return code >> _KIND_SHIFT, code & ((1 << _KIND_SHIFT) - 1)
