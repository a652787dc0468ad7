"""Whose turn it is: in the tree of shapes, a class goes by its tenant's turn, and is hidden while it is held back."""

from __future__ import annotations

from typing import Any

import numpy as np

from gputwin.simulation.engine.compiled import compiled, inlined
from gputwin.simulation.engine.queue.jobs import before, first
from gputwin.simulation.engine.queue.shape_tree import precedes, update_leaf
from gputwin.simulation.engine.queue.startable import has_all_room, within
from gputwin.simulation.engine.state.records import wide
from gputwin.simulation.engine.state.tenants import (
    BY_NEXT_JOB,
    DIRTY,
    DRAWN,
    FLIPPED,
    IDEAL,
    OPENED,
    SUBMIT,
    WORK,
    draw_turn,
    last_worked_out,
    mark,
)
from gputwin.simulation.engine.world import World


@compiled
def begin_turns(world: World, now: float, turn: Any, gate: Any) -> None:
    """Begin a pass: ask the rules again about every tenant of whom something has changed, or whose turn drifts."""
    turns = world.turns
    turns.counts[FLIPPED] = turns.counts[OPENED] = 0
    before = last_worked_out(now, world.tenants.period[0])
    if world.settings[0].drifts != 0 and before > turns.worked_out[0]:
        turns.worked_out[0] = before
        for t in range(turns.waiting.size):
            if turns.waiting[t] > 0:
                mark(turns, wide(t))
    refresh_turns(world, now, turn, gate)


@compiled
def refresh_turns(world: World, now: float, turn: Any, gate: Any) -> None:
    """Ask the rules again about every tenant of whom something has changed."""
    turns = world.turns
    while turns.counts[DIRTY] > 0:
        turns.counts[DIRTY] -= 1
        t = wide(turns.dirty[turns.counts[DIRTY]])
        turns.is_dirty[t] = 0
        if turns.waiting[t] > 0:
            _refresh(world, t, now, turn, gate)


@compiled
def _refresh(world: World, t: int, now: float, turn: Any, gate: Any) -> None:
    turns, shapes = world.turns, world.queue.shapes
    if BY_NEXT_JOB <= world.settings[0].turns <= DRAWN:
        _look_at_next(world, t)
    key = turn(world.tenants, t, now) if world.settings[0].turns != 0 else np.nan
    for k in range(turns.first[t], turns.first[t + 1]):
        s = wide(turns.classes[k])
        shape = shapes[s]
        if shape.waiting == 0:
            continue
        held_back = 0 if world.settings[0].gates == 0 or gate(world.tenants, t, s) else 1
        changed = held_back != shape.held_back
        if changed:
            shape.held_back = held_back
            if turns.flipped_in[s] != world.counters[0].passes:
                turns.flipped_in[s] = world.counters[0].passes
                turns.flipped[turns.counts[FLIPPED]] = s
                turns.counts[FLIPPED] += 1
                if held_back == 0:
                    turns.opened[turns.counts[OPENED]] = s
                    turns.counts[OPENED] += 1
        if changed or (world.settings[0].turns != 0 and key != shape.turn):
            shape.turn = key
            update_leaf(world.queue.tree, world.queue.jobs, shapes, s)


@compiled
def _look_at_next(world: World, t: int) -> None:
    """Note what the rule may ask about the waiting job of tenant t that goes first in order."""
    turns, queue, tenants, j = world.turns, world.queue, world.tenants, wide(-1)
    for k in range(turns.first[t], turns.first[t + 1]):
        s = wide(turns.classes[k])
        if queue.shapes[s].waiting > 0 and (j < 0 or before(queue.jobs, first(queue, s), j)):
            j = first(queue, s)
    job = queue.jobs[j]
    tenants.next[t, SUBMIT], tenants.next[t, WORK] = job.submit, max(job.predicted - job.done, 0.0)
    if tenants.ideal.size > 0:
        tenants.next[t, IDEAL] = tenants.ideal[j]
    if world.settings[0].turns == DRAWN:
        draw_turn(tenants, t, wide(job.shape))


@inlined
def turn_of(world: World, s: int) -> float:
    """Return the key by which class s goes before others: its tenant's turn, or that of its first job."""
    turn = world.queue.shapes[s].turn
    return turn if turn == turn else world.queue.jobs[first(world.queue, s)].key


@inlined
def goes_before(world: World, a: int, b: int) -> bool:
    """Return whether the first job of class a goes before that of class b."""
    key_a, key_b = turn_of(world, a), turn_of(world, b)
    return key_a < key_b or (key_a == key_b and first(world.queue, a) < first(world.queue, b))


@compiled
def first_with_room(world: World) -> int:
    """Return the class that goes first of those that have room now, thanks to the nodes `measure_free` has looked at.

    Turns change with every start, so that the tree is searched anew each time, by branch and bound.
    """
    tree, shapes = world.queue.tree, world.queue.shapes
    branches, stack, leaves, most = tree.branches, tree.stack, tree.branches.size // 2, tree.most[0]
    best, best_job, best_key, top = wide(-1), wide(-1), np.inf, 1
    stack[0] = 1
    while top > 0:
        top -= 1
        k = wide(stack[top])
        branch = branches[k]
        if branch.job < 0 or not within(branch, most):
            continue
        if branch.kind >= 0 and branch.size > tree.rooms[branch.kind]:
            continue
        if best >= 0 and not (branch.key < best_key or (branch.key == best_key and branch.job < best_job)):
            continue
        if k < leaves:
            a = 2 * k + 1 if precedes(branches[2 * k + 1], branches[2 * k]) else 2 * k
            stack[top], stack[top + 1] = a ^ 1, a
            top += 2
            continue
        s = wide(tree.shape_at[k - leaves])
        if shapes[s].tried != world.counters[0].passes and has_all_room(world, s):
            best, best_job, best_key = s, wide(branch.job), branch.key
    return best


@compiled
def first_of_tenant(world: World, s: int, with_room: bool) -> int:
    """Return the class of the same tenant whose first job goes first in order; `with_room`: of those with room."""
    turns, queue, best = world.turns, world.queue, s
    t = wide(queue.jobs[first(queue, s)].tenant)
    for k in range(turns.first[t], turns.first[t + 1]):
        c = wide(turns.classes[k])
        shape = queue.shapes[c]
        if c == s or shape.waiting == 0 or shape.held_back != 0:
            continue
        if not before(queue.jobs, first(queue, c), first(queue, best)):
            continue
        if not with_room or (shape.tried != world.counters[0].passes and has_all_room(world, c)):
            best = c
    return best
