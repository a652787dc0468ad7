"""Priorities that change with time: every period the fair-share factors and the keys of all who wait are worked out again.

As Slurm does it (PriorityCalcPeriod), but at the first scheduling pass after each multiple of the period: nothing happens
between passes that the new keys could change.
"""

from __future__ import annotations

from typing import Any

from gputwin.simulation.engine.compiled import compiled
from gputwin.simulation.engine.queue.jobs import FIRST, LISTED, first_below, insert
from gputwin.simulation.engine.queue.shape_tree import update_leaf
from gputwin.simulation.engine.state.records import Records, wide
from gputwin.simulation.engine.state.share_tree import classic_factors, fair_tree_factors
from gputwin.simulation.engine.state.tenants import last_worked_out, usage_when
from gputwin.simulation.engine.world import World


@compiled
def recalculate(world: World, now: float, order: Any) -> None:
    """Work out the priorities of all who wait, where a period has ended since it was last done."""
    tenants, shares = world.tenants, world.knobs.shares
    at = last_worked_out(now, tenants.period[0])
    if at <= world.turns.recalculated[0]:
        return
    world.turns.recalculated[0] = at
    for t in range(shares.size):
        tenants.tree.used[tenants.tree.leaf[t]] = usage_when(tenants, t, at)
    if tenants.dampening[0] > 0.0:
        classic_factors(tenants.tree, shares, tenants.dampening[0])
    else:
        fair_tree_factors(tenants.tree, shares)
    queue = world.queue
    for k in range(queue.counts[LISTED]):
        shape = queue.shapes[queue.listed[k]]
        j, root = _strung(queue.jobs, wide(shape.root), wide(-1)), wide(-1)
        while j >= 0:
            after = wide(queue.jobs[j].right)
            queue.jobs[j].key = order(queue.jobs, j, at, world.knobs)
            root = insert(queue.jobs, root, j)
            j = after
        shape.root = root
        shape.first = first_below(queue.jobs, root)
        if queue.tree.branches.size > 0:
            update_leaf(queue.tree, queue.jobs, queue.shapes, wide(queue.listed[k]))
    queue.counts[FIRST] = -1
    world.counters[0].reserved_job = -1


@compiled
def _strung(jobs: Records, t: int, rest: int) -> int:
    """Return the first job of the tree below t as a list linked by `right`, which goes on with `rest`."""
    if t < 0:
        return rest
    jobs[t].right = _strung(jobs, wide(jobs[t].right), rest)
    return _strung(jobs, wide(jobs[t].left), t)
