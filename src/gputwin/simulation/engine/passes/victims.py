"""Running jobs taken back on trial, one after the other, until a job fits; then those it can do without are spared.

Trying is not doing: what is freed on trial is taken again before anything is decided (`trials/journal.py`), and only the
jobs that must go are stopped and put back into the queue. `Lives.victims` holds their number, then the jobs.
"""

from __future__ import annotations

from typing import Any

from gputwin.simulation.engine.changes.handle import wait_again
from gputwin.simulation.engine.compiled import compiled, inlined
from gputwin.simulation.engine.fit.index import touch
from gputwin.simulation.engine.fit.questions import enough_free, room
from gputwin.simulation.engine.lifecycle import stop
from gputwin.simulation.engine.placing.place import all_fit
from gputwin.simulation.engine.state.lives import BY_PREEMPTION, EXIT, FOR
from gputwin.simulation.engine.state.records import UP, change, wide
from gputwin.simulation.engine.trials.journal import keep
from gputwin.simulation.engine.trials.undo import begin_for, undo
from gputwin.simulation.engine.world import World


@inlined
def _shift(world: World, j: int, sign: int, is_indexed: bool) -> None:
    """Free (sign -1) or take again (sign 1) what the running job j holds, on trial; `is_indexed`: the index is to know."""
    first_slot = world.queue.jobs[j].first_slot
    for i in range(first_slot, first_slot + world.queue.shapes[world.queue.jobs[j].shape].instances):
        slot = world.slots[i]
        n = wide(slot.node)
        if world.machines.nodes[n].state == UP:
            keep(world.index.journal, world.machines, n)
            change(world.machines, world.requests, wide(slot.request), n, slot.devices, wide(sign))
            if is_indexed:
                touch(world.index, world.machines, n, sign < 0)


@compiled
def _tell(world: World, j: int) -> None:
    """Let the index know of the nodes of job j, which was freed on trial."""
    first_slot = world.queue.jobs[j].first_slot
    for i in range(first_slot, first_slot + world.queue.shapes[world.queue.jobs[j].shape].instances):
        touch(world.index, world.machines, wide(world.slots[i].node), True)


@compiled
def _node_with_room(world: World, r: int, v: int) -> int:
    """Return a node of the freed job v on which an instance of r fits; -1 for none."""
    first_slot = world.queue.jobs[v].first_slot
    for i in range(first_slot, first_slot + world.queue.shapes[world.queue.jobs[v].shape].instances):
        n = wide(world.slots[i].node)
        if room(world, r, n) > 0:
            return n
    return wide(-1)


@compiled
def free_on_trial(
    world: World, j: int, v: int, count: int, is_indexed: bool, score: Any, devices: Any
) -> tuple[bool, int, bool]:
    """Free the running job v, as number `count`; return whether job j fits now, where (one instance), and `is_indexed`.

    `is_indexed`: the index knows of what was freed so far. A trial is open.
    """
    victims, s = world.lives.victims, wide(world.queue.jobs[j].shape)
    shape = world.queue.shapes[s]
    victims[count] = v
    _shift(world, v, -1, is_indexed)
    if shape.instances == 1:
        node = _node_with_room(world, wide(world.groups[shape.first_group].request), v)
        return node >= 0, node, is_indexed
    if not is_indexed and enough_free(world, s):
        # Before, there was too little in all: nobody looked for places.
        for k in range(1, count + 1):
            _tell(world, wide(victims[k]))
        is_indexed = True
    return is_indexed and all_fit(world, j, score, devices), wide(-1), is_indexed


@compiled
def stop_needed(
    world: World,
    j: int,
    count: int,
    fitting: bool,
    node: int,
    is_indexed: bool,
    now: float,
    order: Any,
    promotion: Any,
    score: Any,
    devices: Any,
) -> bool:
    """Take the `count` jobs freed on trial back, the last first, unless job j needs their room; stop the others.

    Returns whether job j fits then: where it did not, nothing is changed. The trial is over.
    """
    victims, shape = world.lives.victims, world.queue.shapes[world.queue.jobs[j].shape]
    r = wide(world.groups[shape.first_group].request)
    for k in range(count if fitting else 0, 0, -1):
        v = wide(victims[k])
        _shift(world, v, 1, is_indexed)
        if shape.instances == 1:
            still = room(world, r, node) > 0
        else:
            still = all_fit(world, j, score, devices)
        if not still:
            _shift(world, v, -1, is_indexed)
            victims[k] = -1 - v
    undo(world.index, world.machines)
    if not fitting:
        victims[0] = 0
        return False
    kept = 0
    for k in range(1, count + 1):
        if victims[k] < 0:
            v = wide(-1 - victims[k])
            kept += 1
            victims[kept] = v
    victims[0] = kept
    _stop_victims(world, j, now, order, promotion)
    return True


@compiled
def stop_all(
    world: World, j: int, count: int, now: float, order: Any, promotion: Any, score: Any, devices: Any
) -> bool:
    """Stop the first `count` victims if job j fits without them; False, and no change, if it does not."""
    victims = world.lives.victims
    begin_for(world, wide(world.queue.jobs[j].shape), score)
    for k in range(1, count + 1):
        _shift(world, wide(victims[k]), -1, True)
    fitting = all_fit(world, j, score, devices)
    undo(world.index, world.machines)
    victims[0] = count if fitting else 0
    if fitting:
        _stop_victims(world, j, now, order, promotion)
    return fitting


@compiled
def _stop_victims(world: World, j: int, now: float, order: Any, promotion: Any) -> None:
    """Stop the victims, who make room for job j, which waits until they have left."""
    lives = world.lives
    lives.counts[FOR] = j
    for k in range(1, lives.victims[0] + 1):
        v = wide(lives.victims[k])
        stop(world, v, now, wide(BY_PREEMPTION))
        wait_again(world, v, now, order, promotion)
    if lives.victims[0] > 0:
        lives.records[j].overhead += lives.costs[EXIT]
