"""How many jobs save a checkpoint at the same time: what the storage has to take.

Saves are worked out again from the segments of each job, by the rules by which the engine lets it work and save.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from gputwin.simulation.engine.state.lives import (
    BY_DRAIN,
    BY_PREEMPTION,
    BY_RATE,
    BY_RESIZE,
    INTERVAL,
    RESIZE,
    RESTART,
    SAVE,
    SAVE_LATER,
    SAVE_WHEN_DRAINED,
    SAVE_WHEN_PREEMPTED,
    SEGMENTS,
    stagger,
)
from gputwin.simulation.engine.state.records import Floats
from gputwin.simulation.run import Run


@dataclass
class _Life:
    """A job on its way: work done and safe, overhead that is left, and whether that is a save."""

    duration: float
    safe: float
    done: float = 0.0
    overhead: float = 0.0
    saving: bool = False


def writers_of(run: Run) -> dict[str, float] | None:
    """Return the most jobs that save at once, and the mean while any saves; None where saving takes no time."""
    costs = run.world.lives.costs
    if not (costs[SAVE] > 0 and costs[INTERVAL] < np.inf):
        return None
    begin, end = saves_of(run)
    if not begin.size:
        return {"peak": 0.0, "mean": 0.0, "saves": 0.0}
    times = np.concatenate([begin, end])
    # Of equal times, a save that ends makes room for one that begins.
    order = np.lexsort((np.repeat([1, 0], begin.size), times))
    count = np.cumsum(np.repeat([1, -1], begin.size)[order])
    spans = np.diff(times[order])
    busy = float(spans[count[:-1] > 0].sum())
    seconds = float((end - begin).sum())
    return {"peak": float(count.max()), "mean": seconds / busy if busy else 0.0, "saves": float(begin.size)}


def saves_of(run: Run) -> tuple[Floats, Floats]:
    """Return when each checkpoint at an interval began to be saved, and when that ended, s."""
    lives, jobs = run.world.lives, run.world.queue.jobs
    costs, segments = lives.costs, lives.segments[: lives.counts[SEGMENTS]]
    early = stagger(jobs.size) * costs[INTERVAL] if run.changes.checkpoints.is_staggered else np.zeros(jobs.size)
    found: list[tuple[float, float]] = []
    order = np.lexsort((segments["start"], segments["job"]))
    bounds = [*np.flatnonzero(np.diff(segments["job"][order], prepend=-1)).tolist(), order.size]
    for first, last in pairwise(bounds):
        j = int(segments["job"][order[first]])
        life = _Life(float(jobs["duration"][j]), -float(early[j]))
        for k in order[first:last]:
            _run(life, segments[k], costs, found)
            _stop(life, int(segments["why"][k]), costs)
    times = np.array(found, np.float64).reshape(-1, 2)
    return times[:, 0], times[:, 1]


def _run(life: _Life, segment: Any, costs: Floats, found: list[tuple[float, float]]) -> None:
    """Let the job run for a segment, and note its saves."""
    now, end, rate = float(segment["start"]), float(segment["end"]), float(segment["rate"])
    while now < end:
        if life.overhead > 0:
            spent = min(life.overhead, end - now)
            if life.saving:
                found.append((now, now + spent))
            life.overhead -= spent
            now += spent
            if life.overhead > 0:
                return
        if life.saving:
            life.saving, life.safe = False, life.done
        mark = life.safe + costs[INTERVAL]
        until = (mark - life.done) / rate
        if end - now < until or mark >= life.duration:
            life.done += (end - now) * rate
            return
        now, life.done = now + until, mark
        life.saving, life.overhead = True, float(costs[SAVE])


def _stop(life: _Life, why: int, costs: Floats) -> None:
    """Let the job stop, or go on otherwise."""
    if why == BY_RATE:
        return
    if why == BY_RESIZE:
        life.overhead = life.overhead or float(costs[RESIZE])
        return
    life.overhead, life.saving = float(costs[RESTART]), False
    preempted = why == BY_PREEMPTION and costs[SAVE_WHEN_PREEMPTED] != 0
    if preempted or (why == BY_DRAIN and costs[SAVE_WHEN_DRAINED] != 0):
        life.safe = life.done
        life.overhead += float(costs[SAVE_LATER] if preempted else costs[SAVE])
    life.done = max(life.safe, 0.0)
