"""Pending events: a binary heap by (time, kind, sequence), so that ties always break alike."""

from __future__ import annotations

from gputwin.autoscaling.serving.compiled import compiled
from gputwin.autoscaling.serving.world import Events


@compiled
def _earlier(e: Events, i: int, j: int) -> bool:
    if e.time[i] != e.time[j]:
        return e.time[i] < e.time[j]
    if e.kind[i] != e.kind[j]:
        return e.kind[i] < e.kind[j]
    return e.sequence[i] < e.sequence[j]


@compiled
def _swap(e: Events, i: int, j: int) -> None:
    e.time[i], e.time[j] = e.time[j], e.time[i]
    e.kind[i], e.kind[j] = e.kind[j], e.kind[i]
    e.sequence[i], e.sequence[j] = e.sequence[j], e.sequence[i]
    e.row[i], e.row[j] = e.row[j], e.row[i]
    e.request[i], e.request[j] = e.request[j], e.request[i]


@compiled
def push(e: Events, time: float, kind: int, row: int, request: int) -> None:
    """Add an event."""
    i = e.size[0]
    e.size[0] = i + 1
    e.time[i], e.kind[i], e.sequence[i], e.row[i], e.request[i] = time, kind, e.pushed[0], row, request
    e.pushed[0] += 1
    while i > 0:
        parent = (i - 1) // 2
        if not _earlier(e, i, parent):
            break
        _swap(e, i, parent)
        i = parent


@compiled
def pop(e: Events) -> None:
    """Move the next event behind the heap's end, at index `size`, where it can still be read."""
    last = e.size[0] - 1
    e.size[0] = last
    _swap(e, 0, last)
    i = 0
    while True:
        child = 2 * i + 1
        if child >= last:
            break
        if child + 1 < last and _earlier(e, child + 1, child):
            child += 1
        if not _earlier(e, child, i):
            break
        _swap(e, i, child)
        i = child
