"""Who may start in a pass, one step per shape: a heap in the order of their jobs."""

from __future__ import annotations

from gputwin.simulation.engine.compiled import compiled, inlined
from gputwin.simulation.engine.queue.shape_tree import ShapeTree
from gputwin.simulation.engine.state.records import Ints, Records, wide
from gputwin.simulation.engine.world import World


@inlined
def add_step(tree: ShapeTree, key: float, job: int, shape: int) -> None:
    """Add a step to the heap."""
    steps, i = tree.steps, tree.gathered[0]
    tree.gathered[0] = i + 1
    while i > 0:
        above = steps[(i - 1) >> 1]
        if above.key < key or (above.key == key and above.job < job):
            break
        step = steps[i]
        step.key, step.job, step.shape = above.key, above.job, above.shape
        i = (i - 1) >> 1
    step = steps[i]
    step.key, step.job, step.shape = key, job, shape


@compiled
def _drop(steps: Records, gathered: Ints) -> None:
    """Take out the first step."""
    gathered[0] -= 1
    last = steps[gathered[0]]
    steps[0].key, steps[0].job, steps[0].shape = last.key, last.job, last.shape
    _sink(steps, gathered[0])


@compiled
def _sink(steps: Records, size: int) -> None:
    """Bring the first step to where it belongs."""
    i, key, job, shape = 0, steps[0].key, steps[0].job, steps[0].shape
    while 2 * i + 1 < size:
        c = 2 * i + 1
        if c + 1 < size and _earlier(steps, c + 1, c):
            c += 1
        below = steps[c]
        if key < below.key or (key == below.key and job < below.job):
            break
        steps[i].key, steps[i].job, steps[i].shape = below.key, below.job, below.shape
        i = c
    steps[i].key, steps[i].job, steps[i].shape = key, job, shape


@inlined
def _earlier(steps: Records, a: int, b: int) -> bool:
    return steps[a].key < steps[b].key or (steps[a].key == steps[b].key and steps[a].job < steps[b].job)


@inlined
def is_on_top(world: World, j: int) -> bool:
    """Let the first step be job j of the same shape, in its order, or drop it; return whether j is first."""
    tree, jobs = world.queue.tree, world.queue.jobs
    if j < 0:
        _drop(tree.steps, tree.gathered)
        return False
    if tree.steps[0].job == j:
        return True
    tree.steps[0].key, tree.steps[0].job = jobs[j].key, j
    _sink(tree.steps, tree.gathered[0])
    return wide(tree.steps[0].job) == j
