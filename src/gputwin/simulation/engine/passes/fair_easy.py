"""EASY backfilling with fairness: whose turn it is has the reservation, others overtake in turn where they do not delay it.

1. Jobs the gate lets through start as their turns come until one does not fit. It has the reservation, which is worked
   out anew in each pass: the turn may have passed to another tenant since.
2. Of each other class the first job in order that does not delay the reservation is a candidate. The tenant of the candidate
   with the lowest turn (of equal turns, the job submitted first) has its turn, and its first candidate in order starts.
"""

from __future__ import annotations

from typing import Any

from gputwin.simulation.engine.attribution.waiting import count_changes
from gputwin.simulation.engine.compiled import compiled
from gputwin.simulation.engine.fit.totals import NOBODY
from gputwin.simulation.engine.lifecycle import start_waiting
from gputwin.simulation.engine.passes.easy import close_for, forget_arrivals
from gputwin.simulation.engine.passes.fair import end_fair_pass, start_in_turn
from gputwin.simulation.engine.placing.place import unplace
from gputwin.simulation.engine.queue.jobs import LISTED, before, first
from gputwin.simulation.engine.queue.startable import UNDECIDED, candidate, has_all_room, still_has_room
from gputwin.simulation.engine.queue.tree_turns import add_candidate, forget_candidates, reached
from gputwin.simulation.engine.queue.turns import begin_turns, refresh_turns
from gputwin.simulation.engine.reservations.beside import place_beside
from gputwin.simulation.engine.reservations.first_blocked import reserve
from gputwin.simulation.engine.reservations.mask import refresh
from gputwin.simulation.engine.state.records import wide
from gputwin.simulation.engine.state.tenants import BY_TREE
from gputwin.simulation.engine.world import World


def fair_easy_pass(
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
    """Start jobs as their turns come; when one does not fit, reserve for it and let others overtake that do not delay it."""
    world.counters[0].passes += 1
    begin_turns(world, now, turn, gate)
    head = start_in_turn(world, now, score, devices, turn, gate)
    forget_arrivals(world)
    if head != NOBODY:
        reserve(world, first(world.queue, head), score, devices)
        refresh(world)
        count_changes(world)
        _overtake(world, head, now, score, devices, turn, gate)
    end_fair_pass(world, head, now)


@compiled
def _overtake(world: World, head: int, now: float, score: Any, devices: Any, turn: Any, gate: Any) -> None:
    """Start who does not delay the reservation of class `head`, as turns come."""
    jobs, window = world.queue.jobs, world.reserved_from[0] - now
    count = _others_with_room(world, head)
    while True:
        count = _still_able(world, count, window)
        j = _whose_turn(world, count, window)
        if j < 0:
            break
        c = _first_of_its_tenant(world, count, window, j) if world.settings[0].turns != 0 else j
        # The turn is the tenant's because of j: that must be able to start even if another of its jobs goes first.
        if c == j or _can_start(world, j, jobs[j].predicted <= window, score, devices):
            j = c
        ends_before = jobs[j].predicted <= window
        if place_beside(world, j, ends_before, score, devices):
            start_waiting(world, j, now)
            refresh(world)
            count_changes(world)
            refresh_turns(world, now, turn, gate)
        else:
            close_for(world, wide(jobs[j].shape), ends_before)


@compiled
def _others_with_room(world: World, head: int) -> int:
    """Collect the classes but `head` that are not held back and have room; return their number."""
    queue, count = world.queue, wide(0)
    for k in range(queue.counts[LISTED]):
        s = wide(queue.listed[k])
        shape = queue.shapes[s]
        if s != head and shape.waiting > 0 and shape.held_back == 0 and has_all_room(world, s):
            shape.reach = UNDECIDED
            queue.candidates[count] = s
            count += 1
    return count


@compiled
def _still_able(world: World, count: int, window: float) -> int:
    """Drop collected classes of which nobody may overtake any more; return how many are left."""
    queue, kept = world.queue, wide(0)
    for k in range(count):
        s = wide(queue.candidates[k])
        shape = queue.shapes[s]
        if shape.waiting == 0 or shape.held_back != 0 or not still_has_room(world, s):
            continue
        if candidate(world, s, window) >= 0:
            queue.candidates[kept] = s
            kept += 1
    return kept


@compiled
def _whose_turn(world: World, count: int, window: float) -> int:
    """Return the job, of the candidates of collected classes, by which its tenant has its turn; -1 for none."""
    queue, by_tree = world.queue, world.settings[0].turns == BY_TREE
    best, lowest = wide(-1), 0.0
    if by_tree:
        forget_candidates(world)
    for k in range(count):
        s = wide(queue.candidates[k])
        j = candidate(world, s, window)
        if by_tree:
            add_candidate(world, j)
            continue
        turn = queue.shapes[s].turn
        key = turn if turn == turn else queue.jobs[j].key
        if best < 0 or key < lowest or (key == lowest and j < best):
            best, lowest = j, key
    return reached(world) if by_tree else best


@compiled
def _first_of_its_tenant(world: World, count: int, window: float, j: int) -> int:
    """Return the candidate of the same tenant as job j that goes first in order."""
    queue, best = world.queue, j
    for k in range(count):
        other = candidate(world, wide(queue.candidates[k]), window)
        if queue.jobs[other].tenant == queue.jobs[j].tenant and before(queue.jobs, other, best):
            best = other
    return best


@compiled
def _can_start(world: World, j: int, ends_before: bool, score: Any, devices: Any) -> bool:
    """Return whether job j can be placed where it does not delay the reservation."""
    if not place_beside(world, j, ends_before, score, devices):
        return False
    begin = world.queue.jobs[j].first_slot
    unplace(world, begin, begin + world.queue.shapes[world.queue.jobs[j].shape].instances)
    return True
