"""Passes in which a tree of tenants says whose turn it is (hierarchical DRF).

Shares in the tree depend on who may start, so all candidates are collected, and the shares worked out before each start.
"""

from __future__ import annotations

from typing import Any

from gputwin.simulation.engine.attribution.waiting import end_pass
from gputwin.simulation.engine.compiled import compiled
from gputwin.simulation.engine.fit.totals import NEW_SHAPES, NOBODY
from gputwin.simulation.engine.lifecycle import start_waiting
from gputwin.simulation.engine.passes.fair import can_start
from gputwin.simulation.engine.placing.place import fits, place
from gputwin.simulation.engine.queue.jobs import LISTED, first
from gputwin.simulation.engine.queue.shape_tree import ANYTHING
from gputwin.simulation.engine.queue.startable import has_all_room, list_touched, measure_free, wait_for, within
from gputwin.simulation.engine.queue.turns import first_of_tenant
from gputwin.simulation.engine.state.records import wide
from gputwin.simulation.engine.state.share_tree import whose_turn, work_out_shares
from gputwin.simulation.engine.world import World


def fair_tree_greedy_pass(
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
    """Start jobs that fit, those of the tenant that the tree reaches first; others are passed over."""
    queue = world.queue
    measure_free(world, list_touched(world, False), False)
    count = _collect(world)
    while True:
        count = _still_able(world, count, score, devices)
        j = _reached(world, count)
        if j < 0:
            break
        s = first_of_tenant(world, wide(queue.jobs[j].shape), True)
        if place(world, first(queue, s), score, devices):
            start_waiting(world, first(queue, s), now)
        else:
            queue.shapes[s].tried = world.counters[0].passes
    end_pass(world, NOBODY, now)


def fair_tree_strict_pass(
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
    """Start jobs of the tenant that the tree reaches first, until one does not fit."""
    queue, head = world.queue, NOBODY
    world.counters[0].passes += 1
    while queue.counts[LISTED] > 0:
        for k in range(queue.counts[LISTED]):
            queue.candidates[k] = queue.listed[k]
        j = _reached(world, queue.counts[LISTED])
        s = first_of_tenant(world, wide(queue.jobs[j].shape), False)
        if not (fits(world, s) and place(world, first(queue, s), score, devices)):
            head = s
            break
        start_waiting(world, first(queue, s), now)
    end_pass(world, head, now)


@compiled
def _reached(world: World, count: int) -> int:
    """Return the first job of the class, of those collected, that the tree reaches; -1: there is none."""
    tree, queue = world.tenants.tree, world.queue
    for n in range(tree.job.size):
        tree.job[n] = -1
    for k in range(count):
        j = first(queue, wide(queue.candidates[k]))
        n = wide(tree.leaf[queue.jobs[j].tenant])
        if tree.job[n] < 0 or j < tree.job[n]:
            tree.job[n] = j
    work_out_shares(tree, world.tenants.held, world.tenants.capacity)
    return whose_turn(tree)


@compiled
def _collect(world: World) -> int:
    """Collect the classes that may have room: new ones, and those that a touched node could help; return their number."""
    totals, queue, tree = world.totals, world.queue, world.queue.tree
    branches, stack, leaves, most = tree.branches, tree.stack, tree.branches.size // 2, tree.most[0]
    count, top = wide(totals.state[NEW_SHAPES]), 1
    for k in range(count):
        queue.candidates[k] = totals.lists[NEW_SHAPES, k]
    stack[0] = 1
    while top > 0:
        top -= 1
        k = wide(stack[top])
        branch = branches[k]
        if branch.job < 0 or not within(branch, most):
            continue
        if branch.kind >= 0 and branch.size > tree.rooms[branch.kind]:
            continue
        if k < leaves:
            stack[top], stack[top + 1] = 2 * k + 1, 2 * k
            top += 2
        else:
            queue.candidates[count] = tree.shape_at[k - leaves]
            count += 1
    return count


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
