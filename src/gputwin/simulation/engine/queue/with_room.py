"""Who has room: found by the totals that have passed a threshold since the last pass, without asking who has none.

At the end of a pass nobody waits who has room, but those whose groups get in each other's way. So at the next one only
shapes can start of which a total has reached what a group asks for (`fit/thresholds.py`).
"""

from __future__ import annotations

from gputwin.simulation.engine.attribution.waiting import count_changes
from gputwin.simulation.engine.compiled import compiled, inlined
from gputwin.simulation.engine.fit.index import LOG_END
from gputwin.simulation.engine.fit.questions import blocked_by
from gputwin.simulation.engine.fit.totals import KNOWN, NEW_SHAPES, OPEN_SHAPES, PASSED, list_reached
from gputwin.simulation.engine.queue.jobs import first
from gputwin.simulation.engine.queue.shape_tree import ANYTHING
from gputwin.simulation.engine.queue.startable import start_gathering, wait_for
from gputwin.simulation.engine.queue.steps import add_step, is_on_top
from gputwin.simulation.engine.state.records import wide
from gputwin.simulation.engine.world import World


@compiled
def gather_with_room(world: World) -> None:
    """Begin a pass: collect the shapes each group of which has room, in the order of their jobs.

    While the pass lasts, room only becomes less, so that nobody else can join them.
    """
    totals, counters = world.totals, world.counters[0]
    counters.passes += 1
    start_gathering(world)
    count_changes(world)
    for k in range(list_reached(totals, world.requests, world.queue.candidates)):
        _gather(world, wide(world.queue.candidates[k]), True)
    if counters.held_back != 0 or totals.state[PASSED] != world.index.log_end[LOG_END]:
        for k in range(totals.state[OPEN_SHAPES]):
            _gather(world, wide(totals.lists[OPEN_SHAPES, k]), True)
    counters.held_back = 0
    for k in range(totals.state[NEW_SHAPES]):
        _gather(world, wide(totals.lists[NEW_SHAPES, k]), False)


@inlined
def _gather(world: World, s: int, known: bool) -> None:
    """Add shape s to those gathered, if it waits and has room; `known`: only if its room is counted."""
    shape = world.queue.shapes[s]
    if shape.waiting == 0 or shape.gathered == world.counters[0].passes or (known and shape.joined != KNOWN):
        return
    if _first_with_room(world, s) >= 0:
        shape.gathered = world.counters[0].passes
        j = first(world.queue, s)
        add_step(world.queue.tree, world.queue.jobs[j].key, j, s)


@compiled
def next_with_room(world: World) -> int:
    """Return the job that goes first of those gathered that have room now; -1 for none."""
    tree = world.queue.tree
    while tree.gathered[0] > 0:
        j = _first_with_room(world, wide(tree.steps[0].shape))
        if is_on_top(world, j):
            return j
    return wide(-1)


@compiled
def _first_with_room(world: World, s: int) -> int:
    """Return the first job of shape s, unless it has no room or was tried in vain in this pass; then -1."""
    shape = world.queue.shapes[s]
    if shape.waiting == 0 or shape.tried == world.counters[0].passes:
        return wide(-1)
    g = blocked_by(world, s)
    if g == ANYTHING:
        return first(world.queue, s)
    shape.tried = world.counters[0].passes
    wait_for(world, s, g)
    return wide(-1)
