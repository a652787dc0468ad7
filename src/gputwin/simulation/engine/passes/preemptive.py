"""Passes in which a job that does not fit may take the place of running jobs that rank behind it.

Running jobs are kept in order of rank, by the preemption rule. A job claims what is held by jobs of a rank above its claim.
They are taken back on trial, the highest rank first, until the job fits; then those that need not go are spared, the
lowest rank first. Only then are the others stopped and put back into the queue. If the job does not fit even so, nothing
is changed.
"""

from __future__ import annotations

from typing import Any

from gputwin.simulation.engine.attribution.causes import blame_head
from gputwin.simulation.engine.attribution.reasons import reason
from gputwin.simulation.engine.attribution.waiting import end_pass
from gputwin.simulation.engine.changes.sizes import shrink_for
from gputwin.simulation.engine.compiled import compiled, inlined
from gputwin.simulation.engine.fit.questions import blocked_by
from gputwin.simulation.engine.fit.totals import NOBODY
from gputwin.simulation.engine.lifecycle import start_waiting
from gputwin.simulation.engine.passes.benefit import has_waited, pays
from gputwin.simulation.engine.passes.kube import make_room_on_best_node
from gputwin.simulation.engine.passes.victims import free_on_trial, stop_needed
from gputwin.simulation.engine.placing.place import fits, place
from gputwin.simulation.engine.queue.jobs import LISTED, before, first, last, previous
from gputwin.simulation.engine.queue.shape_tree import ANYTHING
from gputwin.simulation.engine.state.lives import RUNNING_ROOT, seconds_left
from gputwin.simulation.engine.state.records import wide
from gputwin.simulation.engine.trials.undo import begin_for
from gputwin.simulation.engine.world import BY_BENEFIT, ON_BEST_NODE, World

_OUT, _IN = 0, 1
"""What a shape's `reach` says: whether it is among the candidates of the present pass."""


def strict_preemptive_pass(
    world: World, now: float, order: Any, promotion: Any, claim: Any, score: Any, devices: Any, turn: Any, gate: Any
) -> None:
    """Start jobs in order until one neither fits nor can make room; nobody overtakes it."""
    while True:
        j = first(world.queue, wide(0))
        if j < 0:
            return
        placed = fits(world, wide(world.queue.jobs[j].shape)) and place(world, j, score, devices)
        if not placed and make_room(world, j, now, order, promotion, claim, score, devices):
            placed = place(world, j, score, devices)
        if not placed:
            if world.settings[0].attributes != 0:
                blame_head(world.causes, j, reason(world, wide(world.queue.jobs[j].shape)), now)
            return
        start_waiting(world, j, now)


def greedy_preemptive_pass(
    world: World, now: float, order: Any, promotion: Any, claim: Any, score: Any, devices: Any, turn: Any, gate: Any
) -> None:
    """Start every job that fits or can make room, in order; others are passed over."""
    count = _candidates(world, now, claim)
    candidates, shapes, jobs = world.queue.candidates, world.queue.shapes, world.queue.jobs
    while count > 0:
        at, j = 0, first(world.queue, candidates[0])
        for k in range(1, count):
            other = first(world.queue, candidates[k])
            if before(jobs, other, j):
                at, j = k, other
        s = wide(candidates[at])
        placed = blocked_by(world, s) == ANYTHING and place(world, j, score, devices)
        if not placed and make_room(world, j, now, order, promotion, claim, score, devices):
            placed = place(world, j, score, devices)
            count = _add_candidates(world, count)
        if placed:
            start_waiting(world, j, now)
            if shapes[s].waiting > 0:
                continue
        # What does not fit now will not fit later in this pass either: it may claim whatever a later job may.
        count -= 1
        candidates[at] = candidates[count]
        shapes[s].reach = _OUT
        if not placed:
            shapes[s].tried = world.counters[0].passes
    end_pass(world, NOBODY, now)


@inlined
def _claim(world: World, j: int, now: float, claim: Any) -> float:
    """Return the claim of the waiting job j; while it is asked, `believed_end` is when it would end if it started now."""
    job = world.queue.jobs[j]
    work = max(job.predicted - job.done, 0.0)
    job.believed_end = now + seconds_left(world.lives, world.queue.jobs, j, work)
    return claim(world.queue.jobs, j, now, world.knobs)


@compiled
def _candidates(world: World, now: float, claim: Any) -> int:
    """Collect the shapes that have room or may claim some; return their number."""
    queue, count = world.queue, 0
    world.counters[0].passes += 1
    worst = last(queue.jobs, world.lives.counts[RUNNING_ROOT])
    for k in range(queue.counts[LISTED]):
        s = wide(queue.listed[k])
        shape = queue.shapes[s]
        may = world.settings[0].elastic != 0 or blocked_by(world, s) == ANYTHING
        if not may and worst >= 0:
            may = _claim(world, first(queue, s), now, claim) < queue.jobs[worst].key
        shape.reach = _IN if may else _OUT
        if may:
            queue.candidates[count] = s
            count += 1
    return count


@compiled
def _add_candidates(world: World, count: int) -> int:
    """Add the shapes that have room now though they had none, and those of whoever had to yield; return the number."""
    queue, victims = world.queue, world.lives.victims
    for k in range(victims[0] + queue.counts[LISTED]):
        yielded = k < victims[0]
        s = wide(queue.jobs[victims[k + 1]].shape if yielded else queue.listed[k - victims[0]])
        shape = queue.shapes[s]
        if shape.reach == _IN or shape.tried == world.counters[0].passes or shape.waiting == 0:
            continue
        if yielded or blocked_by(world, s) == ANYTHING:
            queue.candidates[count] = s
            shape.reach = _IN
            count += 1
    return count


@compiled
def make_room(
    world: World, j: int, now: float, order: Any, promotion: Any, claim: Any, score: Any, devices: Any
) -> bool:
    """Make room for job j; False, and no change, if it cannot be made.

    Running jobs are shrunk, where they can be; else those of a rank above the claim of job j are stopped.
    """
    if world.settings[0].elastic != 0:
        world.lives.victims[0] = 0
        if shrink_for(world, j, now, score, devices):
            return True
    if world.settings[0].victims == ON_BEST_NODE:
        return make_room_on_best_node(world, j, now, order, promotion, score, devices)
    if world.settings[0].victims == BY_BENEFIT and not has_waited(world, j, now):
        world.lives.victims[0] = 0
        return False
    jobs, root = world.queue.jobs, world.lives.counts[RUNNING_ROOT]
    limit = _claim(world, j, now, claim)
    begin_for(world, wide(world.queue.jobs[j].shape), score)
    count, fitting, node, is_indexed = wide(0), False, wide(-1), False
    v = last(jobs, root)
    while v >= 0 and jobs[v].key > limit and not fitting:
        if world.settings[0].victims != BY_BENEFIT or pays(world, j, v, now):
            count += 1
            fitting, node, is_indexed = free_on_trial(world, j, v, count, is_indexed, score, devices)
        v = previous(jobs, root, v)
    return stop_needed(world, j, count, fitting, node, is_indexed, now, order, promotion, score, devices)
