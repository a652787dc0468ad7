"""Waiting jobs of each shape in order of (key, job): a treap that also knows the shortest job below each branch.

Seidel and Aragon, "Randomized Search Trees", 1996; priorities are a hash of the job's number, so the same jobs make the
same tree. The least predicted duration kept in each subtree answers EASY's question (who is next in order and short
enough) in O(log queue) instead of a scan.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from gputwin.simulation.engine.compiled import compiled

from gputwin.simulation.engine.state import Floats, Ints, SmallInts


class Queue(NamedTuple):
    """Treap links and keys per job; root and length per shape."""

    left: SmallInts
    right: SmallInts
    least: Floats
    key: Floats
    root: SmallInts
    length: SmallInts
    waiting: Ints  # [1] jobs in all queues
    listed: SmallInts  # shapes with waiting jobs, in no order
    listed_at: SmallInts  # [s] position in `listed`, -1 where none waits
    listed_count: Ints  # [1]


def make_queue(jobs: int, shapes: int) -> Queue:
    """Return empty queues."""
    return Queue(
        left=np.full(jobs, -1, np.int32),
        right=np.full(jobs, -1, np.int32),
        least=np.zeros(jobs),
        key=np.zeros(jobs),
        root=np.full(shapes, -1, np.int32),
        length=np.zeros(shapes, np.int32),
        waiting=np.zeros(1, np.int64),
        listed=np.zeros(shapes, np.int32),
        listed_at=np.full(shapes, -1, np.int32),
        listed_count=np.zeros(1, np.int64),
    )


@compiled
def _weight(j: int) -> int:
    return (j * 2654435761) & 0xFFFFFFFF ^ (j * 40503 & 0xFFFF)


@compiled
def before(queue: Queue, a: int, b: int) -> bool:
    """Return whether job a goes before job b."""
    return bool(queue.key[a] < queue.key[b] or (queue.key[a] == queue.key[b] and a < b))


@compiled
def _pull(queue: Queue, predicted: Floats, t: int) -> None:
    least = predicted[t]
    if queue.left[t] >= 0:
        least = min(least, queue.least[queue.left[t]])
    if queue.right[t] >= 0:
        least = min(least, queue.least[queue.right[t]])
    queue.least[t] = least


@compiled
def _pair(a: int, b: int) -> tuple[int, int]:
    return a, b


@compiled
def _split(queue: Queue, predicted: Floats, t: int, j: int) -> tuple[int, int]:
    if t < 0:
        return _pair(-1, -1)
    if before(queue, t, j):
        a, b = _split(queue, predicted, queue.right[t], j)
        queue.right[t] = a
        _pull(queue, predicted, t)
        return _pair(t, b)
    a, b = _split(queue, predicted, queue.left[t], j)
    queue.left[t] = b
    _pull(queue, predicted, t)
    return _pair(a, t)


@compiled
def _merge(queue: Queue, predicted: Floats, a: int, b: int) -> int:
    if a < 0:
        return b
    if b < 0:
        return a
    if _weight(a) > _weight(b):
        queue.right[a] = _merge(queue, predicted, queue.right[a], b)
        _pull(queue, predicted, a)
        return a
    queue.left[b] = _merge(queue, predicted, a, queue.left[b])
    _pull(queue, predicted, b)
    return b


@compiled
def _insert(queue: Queue, predicted: Floats, t: int, j: int) -> int:
    if t < 0:
        _pull(queue, predicted, j)
        return j
    if _weight(j) > _weight(t):
        a, b = _split(queue, predicted, t, j)
        queue.left[j], queue.right[j] = a, b
        _pull(queue, predicted, j)
        return j
    if before(queue, j, t):
        queue.left[t] = _insert(queue, predicted, queue.left[t], j)
    else:
        queue.right[t] = _insert(queue, predicted, queue.right[t], j)
    _pull(queue, predicted, t)
    return t


@compiled
def _remove(queue: Queue, predicted: Floats, t: int, j: int) -> int:
    if t == j:
        return _merge(queue, predicted, queue.left[j], queue.right[j])
    if before(queue, j, t):
        queue.left[t] = _remove(queue, predicted, queue.left[t], j)
    else:
        queue.right[t] = _remove(queue, predicted, queue.right[t], j)
    _pull(queue, predicted, t)
    return t


@compiled
def push(queue: Queue, predicted: Floats, s: int, j: int, key: float) -> None:
    """Put job j of shape s into the queue."""
    queue.key[j] = key
    queue.left[j] = queue.right[j] = -1
    queue.root[s] = _insert(queue, predicted, queue.root[s], j)
    queue.length[s] += 1
    queue.waiting[0] += 1
    if queue.length[s] == 1:
        queue.listed_at[s] = queue.listed_count[0]
        queue.listed[queue.listed_count[0]] = s
        queue.listed_count[0] += 1


@compiled
def remove(queue: Queue, predicted: Floats, s: int, j: int) -> None:
    """Take job j of shape s out of the queue."""
    queue.root[s] = _remove(queue, predicted, queue.root[s], j)
    queue.length[s] -= 1
    queue.waiting[0] -= 1
    if queue.length[s] == 0:
        last = queue.listed[queue.listed_count[0] - 1]
        at = queue.listed_at[s]
        queue.listed[at] = last
        queue.listed_at[last] = at
        queue.listed_at[s] = -1
        queue.listed_count[0] -= 1


@compiled
def first(queue: Queue, s: int) -> int:
    """Return the job of shape s that goes first; -1 for none."""
    t = queue.root[s]
    if t < 0:
        return -1
    while queue.left[t] >= 0:
        t = queue.left[t]
    return int(t)


@compiled
def first_short(queue: Queue, predicted: Floats, s: int, most: float) -> int:
    """Return the first job of shape s whose predicted duration is at most `most`; -1 for none."""
    t = queue.root[s]
    if t < 0 or queue.least[t] > most:
        return -1
    while True:
        left = queue.left[t]
        if left >= 0 and queue.least[left] <= most:
            t = left
        elif predicted[t] <= most:
            return int(t)
        else:
            t = queue.right[t]


@compiled
def first_of_all(queue: Queue) -> int:
    """Return the waiting job that goes before all others; -1 for none."""
    best = -1
    for k in range(queue.listed_count[0]):
        j = first(queue, queue.listed[k])
        if best < 0 or before(queue, j, best):
            best = j
    return best
