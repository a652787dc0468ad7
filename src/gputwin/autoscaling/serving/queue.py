"""Waiting requests: linked lists, one shared and one per replica, from which any request can leave at once."""

from __future__ import annotations

from gputwin.autoscaling.serving.compiled import compiled
from gputwin.autoscaling.serving.world import NOBODY, Queues


@compiled
def put_last(q: Queues, queue: int, j: int) -> None:
    """Add request `j` behind all others."""
    q.before[j], q.after[j] = q.tail[queue], NOBODY
    if q.tail[queue] == NOBODY:
        q.head[queue] = j
    else:
        q.after[q.tail[queue]] = j
    q.tail[queue] = j


@compiled
def put_first(q: Queues, queue: int, j: int) -> None:
    """Add request `j` before all others."""
    q.before[j], q.after[j] = NOBODY, q.head[queue]
    if q.head[queue] == NOBODY:
        q.tail[queue] = j
    else:
        q.before[q.head[queue]] = j
    q.head[queue] = j


@compiled
def take_out(q: Queues, queue: int, j: int) -> None:
    """Remove request `j`, wherever it stands."""
    before, after = q.before[j], q.after[j]
    if before == NOBODY:
        q.head[queue] = after
    else:
        q.after[before] = after
    if after == NOBODY:
        q.tail[queue] = before
    else:
        q.before[after] = before
