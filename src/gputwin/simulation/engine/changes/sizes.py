"""Jobs that run on fewer instances than they ask for: shrunk to let others in, grown again when nobody waits.

A size is a shape: `smaller` and `larger` link the sizes a job may have, each half of the next. A job keeps its first
instances when it shrinks. Trying is not doing: sizes are changed on trial (`trials/journal.py`) and put back before any
job is resized.
"""

from __future__ import annotations

from typing import Any

from gputwin.simulation.engine.compiled import compiled, inlined
from gputwin.simulation.engine.fit.index import move
from gputwin.simulation.engine.lifecycle import resize
from gputwin.simulation.engine.placing.place import add_instances, all_fit
from gputwin.simulation.engine.queue.jobs import WAITING
from gputwin.simulation.engine.state.lives import SHRUNK
from gputwin.simulation.engine.state.records import UP, wide
from gputwin.simulation.engine.trials.undo import begin_for, undo
from gputwin.simulation.engine.world import RUNS, World


@compiled
def shrink_for(world: World, j: int, now: float, score: Any, devices: Any) -> bool:
    """Shrink running jobs so that job j fits; False, and no change, if it cannot.

    The one with most instances goes first, among equals the one that started last, then the first submitted. Of the
    steps that were not needed, those tried last are taken back first.
    """
    jobs, steps = world.queue.jobs, world.lives.victims
    begin_for(world, wide(jobs[j].shape), score)
    count, fitting = 0, False
    while not fitting and count + 1 < steps.size:
        v = _largest(world)
        if v < 0:
            break
        count += 1
        steps[count] = v
        _try_size(world, v, wide(world.queue.shapes[jobs[v].shape].smaller), -1)
        fitting = all_fit(world, j, score, devices)
    for k in range(count, 0, -1):
        v = wide(steps[k])
        _try_size(world, v, wide(world.queue.shapes[jobs[v].shape].larger), 1)
        if fitting and not all_fit(world, j, score, devices):
            _try_size(world, v, wide(world.queue.shapes[jobs[v].shape].smaller), -1)
        else:
            steps[k] = -1
    # What stays shrunk goes back first, then is resized for good.
    for k in range(count, 0, -1):
        if steps[k] >= 0:
            jobs[steps[k]].shape = world.queue.shapes[jobs[steps[k]].shape].larger
    undo(world.index, world.machines)
    if not fitting:
        return False
    for k in range(1, count + 1):
        v = wide(steps[k])
        if v >= 0:
            target = wide(world.queue.shapes[jobs[v].shape].smaller)
            for later in range(k + 1, count + 1):
                if steps[later] == v:
                    target = wide(world.queue.shapes[target].smaller)
                    steps[later] = -1
            resize(world, v, target, now)
    return True


@compiled
def _largest(world: World) -> int:
    """Return the running job that shrinks next; -1 for none."""
    jobs, shapes, best = world.queue.jobs, world.queue.shapes, wide(-1)
    for k in range(world.counters[0].running):
        v = wide(world.running[k])
        if shapes[jobs[v].shape].smaller < 0:
            continue
        if best < 0 or _shrinks_before(world, v, best):
            best = v
    return best


@inlined
def _shrinks_before(world: World, a: int, b: int) -> bool:
    jobs, shapes = world.queue.jobs, world.queue.shapes
    size_a, size_b = shapes[jobs[a].shape].instances, shapes[jobs[b].shape].instances
    if size_a != size_b:
        return size_a > size_b
    if jobs[a].start != jobs[b].start:
        return jobs[a].start > jobs[b].start
    return a < b


@inlined
def _try_size(world: World, v: int, target: int, sign: int) -> None:
    """Let job v have the size of shape `target` on trial: free (sign -1) or take again (1) what is between."""
    job = world.queue.jobs[v]
    now, then = world.queue.shapes[job.shape].instances, world.queue.shapes[target].instances
    for i in range(job.first_slot + min(now, then), job.first_slot + max(now, then)):
        slot = world.slots[i]
        n = wide(slot.node)
        if world.machines.nodes[n].state == UP:
            move(world.index, world.machines, world.requests, wide(slot.request), n, slot.devices, wide(sign))
    job.shape = target


@compiled
def grow_back(world: World, now: float, score: Any, devices: Any) -> None:
    """Let jobs that were shrunk grow, in order of submission, each as far as there is room, if nobody waits."""
    if world.queue.counts[WAITING] > 0:
        return
    done = wide(-1)
    while world.lives.counts[SHRUNK] > 0:
        j = wide(-1)
        for k in range(world.counters[0].running):
            v = wide(world.running[k])
            shrunk = world.queue.jobs[v].outcome == RUNS and world.queue.shapes[world.queue.jobs[v].shape].larger >= 0
            if shrunk and v > done and (j < 0 or v < j):
                j = v
        if j < 0:
            return
        done = j
        while _grow(world, j, now, score, devices):
            pass


@compiled
def _grow(world: World, j: int, now: float, score: Any, devices: Any) -> bool:
    """Let job j have its next larger size, if there is room."""
    job, shapes = world.queue.jobs[j], world.queue.shapes
    larger = wide(shapes[job.shape].larger)
    if larger < 0 or shapes[job.shape].instances >= shapes[world.lives.records[j].full_shape].instances:
        return False
    return change_size(world, j, larger, now, score, devices)


@compiled
def change_size(world: World, j: int, target: int, now: float, score: Any, devices: Any) -> bool:
    """Let the running job j have the size of shape `target`; False, and no change, if there is no room for more."""
    job, shapes = world.queue.jobs[j], world.queue.shapes
    r = wide(world.groups[shapes[job.shape].first_group].request)
    begin, end = job.first_slot + shapes[job.shape].instances, job.first_slot + shapes[target].instances
    if end > begin and not add_instances(world, r, begin, end, score, devices):
        return False
    resize(world, j, target, now)
    return True
