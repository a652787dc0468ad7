"""Passes with fairness between tenants: the gate is asked before fit, the tenant whose turn it is goes next.

Jobs the gate refuses are passed over, and wait for their quota. Among the others the tenant with the lowest turn goes
first; of equal turns that of the job submitted first. Within the tenant the chosen order decides.
"""

from __future__ import annotations

from typing import Any

from gputwin.simulation.engine.attribution.waiting import consider, end_pass
from gputwin.simulation.engine.compiled import compiled
from gputwin.simulation.engine.fit.totals import KNOWN, NEW_SHAPES, NOBODY
from gputwin.simulation.engine.lifecycle import start_waiting
from gputwin.simulation.engine.placing.place import fits, place, unplace
from gputwin.simulation.engine.queue.jobs import first
from gputwin.simulation.engine.queue.startable import has_all_room, lacking, list_touched, measure_free, wait_for
from gputwin.simulation.engine.queue.turns import (
    begin_turns,
    first_of_tenant,
    first_with_room,
    goes_before,
    refresh_turns,
)
from gputwin.simulation.engine.state.records import wide
from gputwin.simulation.engine.state.tenants import FLIPPED, OPENED
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
    queue = world.queue
    fresh = _classes_to_ask(world)
    # Room only becomes less in a pass, so that this bounds it to the end.
    measure_free(world, nodes, False)
    while True:
        s = first_with_room(world)
        for k in range(fresh):
            other = wide(queue.candidates[k])
            if (s < 0 or goes_before(world, other, s)) and has_all_room(world, other):
                s = other
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
            wait_for(world, s, lacking(world, s))
        fresh = _still_to_ask(world, fresh)
    end_pass(world, NOBODY, now)
    _consider_flipped(world, now)


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
    queue, head = world.queue, NOBODY
    world.counters[0].passes += 1
    begin_turns(world, now, turn, gate)
    while queue.tree.branches[1].job >= 0:
        s = wide(queue.jobs[queue.tree.branches[1].job].shape)
        if world.settings[0].turns != 0:
            s = first_of_tenant(world, s, False)
        if not (fits(world, s) and place(world, first(queue, s), score, devices)):
            head = s
            break
        start_waiting(world, first(queue, s), now)
        refresh_turns(world, now, turn, gate)
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
def _consider_flipped(world: World, now: float) -> None:
    """Say anew what those wait for who have been held back or let go in this pass."""
    turns = world.turns
    for k in range(turns.counts[FLIPPED]):
        s = wide(turns.flipped[k])
        if world.queue.shapes[s].waiting > 0 and world.queue.shapes[s].joined == KNOWN:
            consider(world, s, now)
