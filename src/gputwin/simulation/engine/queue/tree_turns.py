"""Whose turn it is by a tree of tenants (hierarchical DRF).

Shares in the tree depend on who may start, so all candidates are collected, and the shares worked out before each start.
"""

from __future__ import annotations

from gputwin.simulation.engine.compiled import compiled, inlined
from gputwin.simulation.engine.fit.totals import NEW_SHAPES
from gputwin.simulation.engine.queue.jobs import LISTED, first
from gputwin.simulation.engine.queue.startable import within
from gputwin.simulation.engine.state.records import wide
from gputwin.simulation.engine.state.share_tree import whose_turn, work_out_shares
from gputwin.simulation.engine.world import World


@compiled
def forget_candidates(world: World) -> None:
    """Let nobody be a candidate for the next turn."""
    tree = world.tenants.tree
    for n in range(tree.job.size):
        tree.job[n] = -1


@inlined
def add_candidate(world: World, j: int) -> None:
    """Let job j be a candidate for the next turn; of one tenant the job submitted first counts."""
    tree = world.tenants.tree
    n = wide(tree.leaf[world.queue.jobs[j].tenant])
    if tree.job[n] < 0 or j < tree.job[n]:
        tree.job[n] = j


@inlined
def reached(world: World) -> int:
    """Return the candidate that the tree reaches; -1: there is none."""
    work_out_shares(world.tenants.tree, world.tenants.held, world.tenants.capacity)
    return whose_turn(world.tenants.tree)


@compiled
def reached_of(world: World, count: int) -> int:
    """Return the class, of the `count` collected ones, whose first job the tree reaches; -1: there is none."""
    queue = world.queue
    forget_candidates(world)
    for k in range(count):
        add_candidate(world, first(queue, wide(queue.candidates[k])))
    j = reached(world)
    return wide(queue.jobs[j].shape) if j >= 0 else wide(-1)


@compiled
def reached_of_all(world: World) -> int:
    """Return the class whose first job the tree reaches, of all that wait; -1: nobody waits."""
    queue = world.queue
    for k in range(queue.counts[LISTED]):
        queue.candidates[k] = queue.listed[k]
    return reached_of(world, wide(queue.counts[LISTED]))


@compiled
def collect_with_room(world: World) -> int:
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
