"""Passes with fairness between tenants: the gate is asked before fit, the tenant whose turn it is goes next.

Jobs the gate refuses are passed over, and wait for their quota. Among the others the tenant with the lowest turn goes
first; of equal turns that of the job submitted first. Or a tree of tenants says whose turn it is (`tree_turns.py`).
Within the tenant the chosen order decides.
"""

from __future__ import annotations

from typing import Any

from gputwin.simulation.engine.attribution.waiting import consider, end_pass
from gputwin.simulation.engine.compiled import compiled
from gputwin.simulation.engine.fit.questions import blocked_by
from gputwin.simulation.engine.fit.totals import KNOWN, NEW_SHAPES, NOBODY
from gputwin.simulation.engine.lifecycle import start_waiting
from gputwin.simulation.engine.placing.place import fits, place, unplace
from gputwin.simulation.engine.queue.jobs import first
from gputwin.simulation.engine.queue.shape_tree import ANYTHING
from gputwin.simulation.engine.queue.startable import has_all_room, list_touched, measure_free, wait_for
from gputwin.simulation.engine.queue.tree_turns import collect_with_room, reached_of, reached_of_all
from gputwin.simulation.engine.queue.turns import (
    begin_turns,
    first_of_tenant,
    first_with_room,
    goes_before,
    refresh_turns,
)
from gputwin.simulation.engine.state.records import wide
from gputwin.simulation.engine.state.tenants import BY_TREE, FLIPPED, OPENED
from gputwin.simulation.engine.world import World


def fair_greedy_pass(
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
    """Start jobs that the gate lets through and that fit, tenant by tenant as their turns come; others are passed over."""
    nodes = list_touched(world, False)
    begin_turns(world, now, turn, gate)
    fill(world, nodes, now, score, devices, turn, gate)


@compiled
def fill(world: World, nodes: int, now: float, score: Any, devices: Any, turn: Any, gate: Any) -> None:
    """Start jobs that the gate lets through and that fit; `nodes` have changed since the last pass."""
    queue, by_tree = world.queue, world.settings[0].turns == BY_TREE
    # Room only becomes less in a pass, so that this bounds it to the end.
    measure_free(world, nodes, False)
    count = collect_with_room(world) if by_tree else _classes_to_ask(world)
    while True:
        if by_tree:
            count = _still_able(world, count, score, devices)
            s = reached_of(world, count)
        else:
            s = _first_able(world, count)
        if s < 0:
            break
        c = first_of_tenant(world, s, True) if world.settings[0].turns != 0 else s
        # The turn is the tenant's because of s: that must be able to start even if another of its classes goes first.
        if c == s or queue.shapes[s].groups == 1 or can_start(world, s, score, devices):
            s = c
        if place(world, first(queue, s), score, devices):
            start_waiting(world, first(queue, s), now)
            refresh_turns(world, now, turn, gate)
        else:
            queue.shapes[s].tried = world.counters[0].passes
            wait_for(world, s, blocked_by(world, s))
        if not by_tree:
            count = _still_to_ask(world, count)
    end_fair_pass(world, wide(NOBODY), now)


def fair_strict_pass(
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
    """Start jobs that the gate lets through, tenant by tenant as their turns come, until one does not fit."""
    world.counters[0].passes += 1
    begin_turns(world, now, turn, gate)
    end_fair_pass(world, start_in_turn(world, now, score, devices, turn, gate), now)


@compiled
def start_in_turn(world: World, now: float, score: Any, devices: Any, turn: Any, gate: Any) -> int:
    """Start jobs that the gate lets through as their turns come until one does not fit; return its class, or NOBODY."""
    queue = world.queue
    while True:
        if world.settings[0].turns == BY_TREE:
            s = reached_of_all(world)
        else:
            j = wide(queue.tree.branches[1].job)
            s = wide(queue.jobs[j].shape) if j >= 0 else wide(-1)
        if s < 0:
            return wide(NOBODY)
        if world.settings[0].turns != 0:
            s = first_of_tenant(world, s, False)
        if not (fits(world, s) and place(world, first(queue, s), score, devices)):
            return s
        start_waiting(world, first(queue, s), now)
        refresh_turns(world, now, turn, gate)


@compiled
def end_fair_pass(world: World, head: int, now: float) -> None:
    """End the pass; `head`: the class that everybody else waits behind, or NOBODY."""
    end_pass(world, head, now)
    _consider_flipped(world, now)


@compiled
def can_start(world: World, s: int, score: Any, devices: Any) -> bool:
    """Return whether the groups of class s have room together."""
    j = first(world.queue, s)
    if not place(world, j, score, devices):
        return False
    begin = world.queue.jobs[j].first_slot
    unplace(world, begin, begin + world.queue.shapes[s].instances)
    return True


@compiled
def _first_able(world: World, count: int) -> int:
    """Return the class that goes first of those with room, the `count` to ask anyway among them; -1 for none."""
    s = first_with_room(world)
    for k in range(count):
        other = wide(world.queue.candidates[k])
        if (s < 0 or goes_before(world, other, s)) and has_all_room(world, other):
            s = other
    return s


@compiled
def _classes_to_ask(world: World) -> int:
    """Collect the classes to ask whatever node has changed, those that began to wait or were let go; return their number."""
    totals, turns, count = world.totals, world.turns, 0
    for k in range(totals.state[NEW_SHAPES] + turns.counts[OPENED]):
        new = k < totals.state[NEW_SHAPES]
        s = wide(totals.lists[NEW_SHAPES, k] if new else turns.opened[k - totals.state[NEW_SHAPES]])
        shape = world.queue.shapes[s]
        if shape.waiting > 0 and shape.held_back == 0 and has_all_room(world, s):
            world.queue.candidates[count] = s
            count += 1
    return count


@compiled
def _still_to_ask(world: World, count: int) -> int:
    """Drop collected classes that have been tried in vain, are held back or wait no more; return how many are left."""
    shapes, candidates, kept = world.queue.shapes, world.queue.candidates, 0
    for k in range(count):
        shape = shapes[candidates[k]]
        if shape.waiting > 0 and shape.held_back == 0 and shape.tried != world.counters[0].passes:
            candidates[kept] = candidates[k]
            kept += 1
    return kept


@compiled
def _still_able(world: World, count: int, score: Any, devices: Any) -> int:
    """Drop collected classes of which no job can start now; return how many are left."""
    queue, kept = world.queue, wide(0)
    for k in range(count):
        s = wide(queue.candidates[k])
        shape = queue.shapes[s]
        if shape.waiting == 0 or shape.tried == world.counters[0].passes or not has_all_room(world, s):
            continue
        if shape.groups > 1 and not can_start(world, s, score, devices):
            shape.tried = world.counters[0].passes
            wait_for(world, s, ANYTHING)
            continue
        queue.candidates[kept] = s
        kept += 1
    return kept


@compiled
def _consider_flipped(world: World, now: float) -> None:
    """Say anew what those wait for who have been held back or let go in this pass."""
    turns = world.turns
    for k in range(turns.counts[FLIPPED]):
        s = wide(turns.flipped[k])
        if world.queue.shapes[s].waiting > 0 and world.queue.shapes[s].joined == KNOWN:
            consider(world, s, now)
