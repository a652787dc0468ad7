"""Waiting jobs of each shape in order of (key, job): a treap that also knows the shortest job below each branch.

Where shapes are many, a tree over them (`shape_tree.py`) knows who goes first.

Seidel and Aragon, "Randomized Search Trees", 1996; priorities are a hash of the job's number, so the same jobs make the
same tree. The least predicted duration kept in each subtree answers EASY's question (who is next in order and short
enough) in O(log queue) instead of a scan.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gputwin.simulation.engine.compiled import compiled, inlined
from gputwin.simulation.engine.queue.shape_tree import ShapeTree, update_leaf
from gputwin.simulation.engine.state.records import Ints, Records, SmallInts, wide


class Queue(NamedTuple):
    """Jobs and shapes carry the links; `listed` are the shapes with waiting jobs, in no order."""

    jobs: Records
    shapes: Records
    listed: SmallInts
    candidates: SmallInts  # scratch: shapes that may start in the present pass, some more than once
    tree: ShapeTree  # without branches where no pass asks it
    counts: Ints  # waiting jobs, listed shapes, the job that goes before all others (-1: not known)


WAITING, LISTED, FIRST = 0, 1, 2


def make_queue(jobs: Records, shapes: Records, tree: ShapeTree) -> Queue:
    """Return empty queues."""
    shapes["root"] = -1
    shapes["listed_at"] = -1
    shapes["never_fits"] = -1
    shapes["first"] = -1
    shapes["fits"] = -1
    shapes["open_at"] = -1
    shapes["watched"] = -1
    shapes["turn"] = np.nan
    listed = np.zeros(shapes.size, np.int32)
    candidates = np.zeros(2 * shapes.size + int(shapes["groups"].sum()), np.int32)
    return Queue(jobs, shapes, listed, candidates, tree, np.array([0, 0, -1], np.int64))


@inlined
def _weight(j: int) -> int:
    x = (j + 1) * 0x9E3779B1 & 0xFFFFFFFF
    return (x ^ x >> 15) * 0x85EBCA6B & 0xFFFFFFFF


@inlined
def before(jobs: Records, a: int, b: int) -> bool:
    """Return whether job a goes before job b."""
    return jobs[a].key < jobs[b].key or (jobs[a].key == jobs[b].key and a < b)


@inlined
def _pull(jobs: Records, t: int) -> None:
    job = jobs[t]
    least = job.predicted
    if job.left >= 0:
        least = min(least, jobs[job.left].least)
    if job.right >= 0:
        least = min(least, jobs[job.right].least)
    job.least = least


@compiled
def _split(jobs: Records, t: int, j: int) -> tuple[int, int]:
    """Return the roots of what goes before job j and after it."""
    if t < 0:
        return wide(-1), wide(-1)
    if before(jobs, t, j):
        a, b = _split(jobs, wide(jobs[t].right), j)
        jobs[t].right = a
        _pull(jobs, t)
        return t, b
    a, b = _split(jobs, wide(jobs[t].left), j)
    jobs[t].left = b
    _pull(jobs, t)
    return a, t


@compiled
def _merge(jobs: Records, a: int, b: int) -> int:
    if a < 0:
        return b
    if b < 0:
        return a
    if _weight(a) > _weight(b):
        jobs[a].right = _merge(jobs, wide(jobs[a].right), b)
        _pull(jobs, a)
        return a
    jobs[b].left = _merge(jobs, a, wide(jobs[b].left))
    _pull(jobs, b)
    return b


@compiled
def _insert(jobs: Records, t: int, j: int) -> int:
    if t < 0:
        _pull(jobs, j)
        return j
    if _weight(j) > _weight(t):
        a, b = _split(jobs, t, j)
        jobs[j].left, jobs[j].right = a, b
        _pull(jobs, j)
        return j
    if before(jobs, j, t):
        jobs[t].left = _insert(jobs, wide(jobs[t].left), j)
    else:
        jobs[t].right = _insert(jobs, wide(jobs[t].right), j)
    _pull(jobs, t)
    return t


@compiled
def _remove(jobs: Records, t: int, j: int) -> int:
    if t == j:
        return _merge(jobs, wide(jobs[j].left), wide(jobs[j].right))
    if before(jobs, j, t):
        jobs[t].left = _remove(jobs, wide(jobs[t].left), j)
    else:
        jobs[t].right = _remove(jobs, wide(jobs[t].right), j)
    _pull(jobs, t)
    return t


@compiled
def insert(jobs: Records, root: int, j: int) -> int:
    """Put job j, whose key is set, into the tree below `root`, and return the new root."""
    jobs[j].left = jobs[j].right = -1
    return _insert(jobs, wide(root), j)


@compiled
def take_out(jobs: Records, root: int, j: int) -> int:
    """Take job j out of the tree below `root`, and return the new root."""
    return _remove(jobs, wide(root), j)


@compiled
def last(jobs: Records, root: int) -> int:
    """Return the job that goes last in the tree below `root`; -1 for none."""
    t = wide(root)
    while t >= 0 and jobs[t].right >= 0:
        t = wide(jobs[t].right)
    return t


@compiled
def previous(jobs: Records, root: int, j: int) -> int:
    """Return the job that goes right before job j in the tree below `root`; -1 for none."""
    t, found = wide(root), wide(-1)
    while t >= 0:
        if before(jobs, t, j):
            found = t
            t = wide(jobs[t].right)
        else:
            t = wide(jobs[t].left)
    return found


@compiled
def push(queue: Queue, s: int, j: int, key: float) -> None:
    """Put job j into the queue of shape s."""
    job, shape = queue.jobs[j], queue.shapes[s]
    job.key = key
    job.left = job.right = -1
    shape.root = _insert(queue.jobs, wide(shape.root), j)
    if shape.first < 0 or before(queue.jobs, j, shape.first):
        shape.first = j
    known = queue.counts[FIRST]
    if queue.counts[WAITING] == 0 or (known >= 0 and before(queue.jobs, j, known)):
        queue.counts[FIRST] = j
    shape.waiting += 1
    queue.counts[WAITING] += 1
    if shape.waiting == 1:
        shape.listed_at = queue.counts[LISTED]
        queue.listed[queue.counts[LISTED]] = s
        queue.counts[LISTED] += 1
    if queue.tree.branches.size > 0:
        update_leaf(queue.tree, queue.jobs, queue.shapes, s)


@compiled
def remove(queue: Queue, s: int, j: int) -> None:
    """Take job j out of the queue of shape s."""
    shape = queue.shapes[s]
    shape.root = _remove(queue.jobs, wide(shape.root), j)
    if shape.first == j:
        shape.first = first_below(queue.jobs, wide(shape.root))
    if queue.counts[FIRST] == j:
        queue.counts[FIRST] = -1
    shape.waiting -= 1
    queue.counts[WAITING] -= 1
    if shape.waiting == 0:
        queue.counts[LISTED] -= 1
        last = queue.listed[queue.counts[LISTED]]
        queue.listed[shape.listed_at] = last
        queue.shapes[last].listed_at = shape.listed_at
        shape.listed_at = -1
    if queue.tree.branches.size > 0:
        update_leaf(queue.tree, queue.jobs, queue.shapes, s)


@inlined
def first(queue: Queue, s: int) -> int:
    """Return the job of shape s that goes first; -1 for none."""
    return wide(queue.shapes[s].first)


@compiled
def first_below(jobs: Records, t: int) -> int:
    """Return the job that goes first in the tree below t; -1 for none."""
    while t >= 0 and jobs[t].left >= 0:
        t = wide(jobs[t].left)
    return t


@compiled
def first_short(queue: Queue, s: int, most: float) -> int:
    """Return the first job of shape s whose predicted duration is at most `most`; -1 for none."""
    jobs = queue.jobs
    t = wide(queue.shapes[s].root)
    if t < 0 or jobs[t].least > most:
        return wide(-1)
    while True:
        left = wide(jobs[t].left)
        if left >= 0 and jobs[left].least <= most:
            t = left
        elif jobs[t].predicted <= most:
            return t
        else:
            t = wide(jobs[t].right)


@compiled
def first_of_all(queue: Queue) -> int:
    """Return the waiting job that goes before all others; -1 for none."""
    best = queue.counts[FIRST]
    if best >= 0:
        return best
    if queue.tree.branches.size > 0:
        return wide(queue.tree.branches[1].job)
    for k in range(queue.counts[LISTED]):
        j = first(queue, queue.listed[k])
        if best < 0 or before(queue.jobs, j, best):
            best = j
    queue.counts[FIRST] = best
    return best


@compiled
def after(queue: Queue, j: int) -> int:
    """Return the waiting job that goes next after job j, of any shape; -1 for none."""
    best = wide(-1)
    for k in range(queue.counts[LISTED]):
        t = wide(queue.shapes[queue.listed[k]].root)
        found = wide(-1)
        while t >= 0:
            if before(queue.jobs, j, t):
                found = t
                t = wide(queue.jobs[t].left)
            else:
                t = wide(queue.jobs[t].right)
        if found >= 0 and (best < 0 or before(queue.jobs, found, best)):
            best = found
    return best
