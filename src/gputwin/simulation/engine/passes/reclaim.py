"""A pass with guarantees: who stays within its tenant's guarantee goes first, and takes back what others borrow.

1. A class is entitled if its tenant, with one more job of it, holds no more GPUs than it is guaranteed. Entitled classes go
   in order. One that lacks room takes running jobs of tenants that hold more than their guarantee: of the tenant that
   borrows most at that moment the job that started last, and so on, until it fits; those it can do without are spared.
2. Then all others the gate lets through go, as they do without guarantees: what nobody is entitled to is borrowed.

A job started in step 1 leaves its tenant within its guarantee, so that no job started there is taken back there.
"""

from __future__ import annotations

from typing import Any

from gputwin.simulation.engine.compiled import compiled
from gputwin.simulation.engine.fit.questions import blocked_by
from gputwin.simulation.engine.lifecycle import start_waiting
from gputwin.simulation.engine.passes.fair import fill
from gputwin.simulation.engine.passes.victims import free_on_trial, stop_needed
from gputwin.simulation.engine.placing.place import place
from gputwin.simulation.engine.queue.jobs import before, first
from gputwin.simulation.engine.queue.shape_tree import ANYTHING
from gputwin.simulation.engine.queue.startable import list_touched
from gputwin.simulation.engine.queue.turns import begin_turns, refresh_turns
from gputwin.simulation.engine.state.records import FREE_MODELS, wide
from gputwin.simulation.engine.state.tenants import GPU
from gputwin.simulation.engine.trials.undo import begin_for
from gputwin.simulation.engine.world import World


def reclaim_pass(
    world: World,
    now: float,
    order: Any,
    promotion: Any,
    claim: Any,
    score: Any,
    devices: Any,
    turn: Any,
    gate: Any,
) -> None:
    """Start entitled jobs, if need be in the place of jobs of tenants that borrow; then let others have what is left."""
    world.counters[0].passes += 1
    begin_turns(world, now, turn, gate)
    while True:
        s = _first_entitled(world)
        if s < 0:
            break
        j = first(world.queue, s)
        placed = blocked_by(world, s) == ANYTHING and place(world, j, score, devices)
        if not placed and _take_back(world, j, now, order, promotion, score, devices):
            placed = place(world, j, score, devices)
        if placed:
            start_waiting(world, j, now)
        else:
            # In this pass there will be no more to take back: holders only lose.
            world.queue.shapes[s].tried = world.counters[0].passes
        refresh_turns(world, now, turn, gate)
    fill(world, list_touched(world, False), now, score, devices, turn, gate)


@compiled
def _first_entitled(world: World) -> int:
    """Return the entitled class whose first job goes first of those not tried in this pass; -1 for none."""
    tenants, turns, queue = world.tenants, world.turns, world.queue
    best = wide(-1)
    for t in range(turns.waiting.size):
        left = tenants.guaranteed[t] - tenants.held[t, GPU]
        if turns.waiting[t] == 0 or left <= 0.0:
            continue
        for k in range(turns.first[t], turns.first[t + 1]):
            s = wide(turns.classes[k])
            shape = queue.shapes[s]
            if shape.waiting == 0 or shape.held_back != 0 or shape.tried == world.counters[0].passes:
                continue
            asked = tenants.demands[s, GPU]
            if 0.0 < asked <= left and (best < 0 or before(queue.jobs, first(queue, s), first(queue, best))):
                best = s
    return best


@compiled
def _take_back(world: World, j: int, now: float, order: Any, promotion: Any, score: Any, devices: Any) -> bool:
    """Make room for job j at the cost of tenants that borrow; False, and no change, if that is not enough."""
    tenants, turns, jobs = world.tenants, world.turns, world.queue.jobs
    mine, within_reach = wide(jobs[j].tenant), 0.0
    for m in range(FREE_MODELS, world.machines.free.size):
        within_reach += world.machines.free[m]
    for u in range(turns.waiting.size):
        turns.above[u] = tenants.held[u, GPU] - tenants.guaranteed[u] if u != mine else 0.0
        if turns.above[u] > 0.0:
            turns.next_victim[u] = turns.last_started[u]
            within_reach += tenants.held[u, GPU]
    if within_reach < tenants.demands[jobs[j].shape, GPU]:
        return False
    begin_for(world, wide(world.queue.jobs[j].shape), score)
    count, fitting, node, is_indexed = wide(0), False, wide(-1), False
    while not fitting:
        u = _largest_borrower(world)
        if u < 0:
            break
        v = wide(turns.next_victim[u])
        turns.next_victim[u] = turns.started_before[v]
        if _could_help(world, j, v):
            turns.above[u] -= tenants.demands[jobs[v].shape, GPU]
            count += 1
            fitting, node, is_indexed = free_on_trial(world, j, v, count, is_indexed, score, devices)
    return stop_needed(world, j, count, fitting, node, is_indexed, now, order, promotion, score, devices)


@compiled
def _largest_borrower(world: World) -> int:
    """Return the tenant that borrows most GPUs on trial and has jobs left to take; -1 for none."""
    turns, best, most = world.turns, wide(-1), 0.0
    for u in range(turns.waiting.size):
        if turns.above[u] > most and turns.next_victim[u] >= 0:
            best, most = wide(u), turns.above[u]
    return best


@compiled
def _could_help(world: World, j: int, v: int) -> bool:
    """Return whether the running job v holds GPUs of a model that job j may use."""
    jobs, shapes, machines = world.queue.jobs, world.queue.shapes, world.machines
    if world.tenants.demands[jobs[v].shape, GPU] == 0.0:
        return False
    shape, begin = shapes[jobs[j].shape], jobs[v].first_slot
    for g in range(shape.first_group, shape.first_group + shape.groups):
        r = wide(world.groups[g].request)
        for i in range(begin, begin + shapes[jobs[v].shape].instances):
            if world.index.allowed[r, machines.nodes[world.slots[i].node].model]:
                return True
    return False
