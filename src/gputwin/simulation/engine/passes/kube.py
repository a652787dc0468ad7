"""kube-scheduler's choice of victims in a run: which jobs of which node must go for a job of higher priority.

The rule is that of `gputwin.simulation.quotas.kube_victims`, on the engine's nodes. A node's pods are the instances on it; a
job that loses one instance is stopped whole. A gang asks instance by instance: each time the best node is cleared for one
more instance than it has room for, until all fit. The search begins at another node each time and ends when enough
nodes have been found: a tenth of all, but at least a hundred.
"""

from __future__ import annotations

from typing import Any

from gputwin.simulation.engine.compiled import compiled, inlined
from gputwin.simulation.engine.fit.index import FULL
from gputwin.simulation.engine.fit.questions import room, total
from gputwin.simulation.engine.passes.victims import free_on_trial, stop_needed
from gputwin.simulation.engine.state.records import UP, change, wide
from gputwin.simulation.engine.trials.journal import keep
from gputwin.simulation.engine.trials.undo import begin_for
from gputwin.simulation.engine.world import World

_SHIFT = 2147483648.0
"""Added to each priority in a sum, so that more victims never weigh less because their priorities are negative."""
_PERCENT, _LEAST = 10, 100
"""Enough nodes to choose from: this share of all, but at least so many."""


@compiled
def make_room_on_best_node(
    world: World, j: int, now: float, order: Any, promotion: Any, score: Any, devices: Any
) -> bool:
    """Make room for job j as kube-scheduler does; False, and no change, if that cannot be."""
    begin_for(world, wide(world.queue.jobs[j].shape), score)
    count, fitting, node, is_indexed = wide(0), False, wide(-1), False
    while not fitting:
        more = _list_victims(world, j, _short_of(world, j), count)
        if more == 0:
            break
        for _ in range(more):
            count += 1
            v = wide(world.lives.victims[count])
            fitting, node, is_indexed = free_on_trial(world, j, v, count, is_indexed, score, devices)
    return stop_needed(world, j, count, fitting, node, is_indexed, now, order, promotion, score, devices)


@compiled
def _short_of(world: World, j: int) -> int:
    """Return the request of the first group of job j that lacks room; that of its first group where each has room."""
    shape = world.queue.shapes[world.queue.jobs[j].shape]
    for g in range(shape.first_group, shape.first_group + shape.groups):
        r, size = wide(world.groups[g].request), wide(world.groups[g].size)
        if total(world, r, size, FULL) < size:
            return r
    return wide(world.groups[shape.first_group].request)


@compiled
def _list_victims(world: World, j: int, r: int, count: int) -> int:
    """List whom job j displaces for one more instance of r on the best node, behind `count` victims; return how many."""
    nodes, victims, found = world.machines.nodes, world.lives.victims, world.freed
    enough = min(nodes.size, max(nodes.size * _PERCENT // 100, _LEAST))
    offset, seen, best = world.counters[0].passes % nodes.size, 0, 0
    least = (0.0, 0.0, 0, 0.0)
    for i in range(nodes.size):
        n = wide((offset + i) % nodes.size)
        if nodes[n].state != UP or not world.index.allowed[r, nodes[n].model]:
            continue
        many = _victims_on(world, j, r, n, count)
        if many == 0:
            continue
        loss = _loss(world, many)
        if best == 0 or loss < least:
            best, least = many, loss
            for k in range(many):
                victims[count + 1 + k] = found[k]
        seen += 1
        if seen >= enough:
            break
    return best


@compiled
def _victims_on(world: World, j: int, r: int, n: int, count: int) -> int:
    """Put into `freed` the jobs that must go for one more instance of r on node n, the most important first.

    Returns their number; 0 where there is nobody of lower priority or their going does not help.
    """
    jobs, lower = world.queue.jobs, world.freed
    wanted = room(world, r, n) + 1
    many, i, latest = 0, wide(world.machines.nodes[n].first_slot), wide(-1)
    while i >= 0:
        v = wide(world.links[i].job)
        # The instances of a job stand side by side in a node's list.
        if v != latest and jobs[v].priority < jobs[j].priority and not _is_freed(world, v, count):
            k = many
            while k > 0 and _before(world, v, wide(lower[k - 1])):
                lower[k] = lower[k - 1]
                k -= 1
            lower[k] = v
            many += 1
        latest, i = v, wide(world.links[i].next)
    for k in range(many):
        _shift_on(world, wide(lower[k]), n, wide(-1))
    helps = many > 0 and room(world, r, n) >= wanted
    kept = 0
    for k in range(many):
        v = wide(lower[k])
        _shift_on(world, v, n, wide(1))
        if helps and room(world, r, n) < wanted:
            _shift_on(world, v, n, wide(-1))
            lower[kept] = v
            kept += 1
    for k in range(kept):
        _shift_on(world, wide(lower[k]), n, wide(1))
    return kept


@inlined
def _before(world: World, a: int, b: int) -> bool:
    """Return whether job a is more important than job b: of higher priority, or of the same and started earlier."""
    jobs = world.queue.jobs
    return jobs[a].priority > jobs[b].priority or (
        jobs[a].priority == jobs[b].priority and jobs[a].start < jobs[b].start
    )


@inlined
def _is_freed(world: World, v: int, count: int) -> bool:
    """Return whether job v is among the first `count` victims."""
    among = False
    for k in range(1, count + 1):
        among = among or world.lives.victims[k] == v
    return among


@inlined
def _shift_on(world: World, v: int, n: int, sign: int) -> None:
    """Free (sign -1) or take again (sign 1) what the running job v holds on node n, on trial."""
    keep(world.index.journal, world.machines, n)
    begin = world.queue.jobs[v].first_slot
    for i in range(begin, begin + world.queue.shapes[world.queue.jobs[v].shape].instances):
        if world.slots[i].node == n:
            change(world.machines, world.requests, wide(world.slots[i].request), n, world.slots[i].devices, sign)


@compiled
def _loss(world: World, many: int) -> tuple[float, float, int, float]:
    """Return what the first `many` jobs of `freed` are worth: the lowest goes.

    The highest priority among them, the sum of priorities, their number, and how early the first of the highest started.
    """
    jobs, lower = world.queue.jobs, world.freed
    highest, total, earliest = jobs[lower[0]].priority, 0.0, jobs[lower[0]].start
    for k in range(many):
        total += jobs[lower[k]].priority + _SHIFT
    return highest, total, many, -earliest
