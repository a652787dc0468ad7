"""Conservative backfilling: every waiting job has a plan, and nobody may delay anyone's.

Mu'alem and Feitelson, "Utilization, Predictability, Workloads, and User Runtime Estimates", 2001. A job is given, on
arrival, the earliest start at which it fits for as long as it is believed to run, beside what runs and what is planned;
a plan holds definite nodes and devices. When a job ends at another time than believed, the plans are looked at one by
one, in order, each beside all others: one that no longer holds is made anew, and one that can start earlier is moved.
None gets later unless something took longer than believed.

Where more may be free than before is known node by node, so a plan that could only improve elsewhere is left alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gputwin.simulation.engine.attribution.waiting import end_pass
from gputwin.simulation.engine.compiled import compiled
from gputwin.simulation.engine.fit.totals import NO_HEAD
from gputwin.simulation.engine.lifecycle import start_waiting
from gputwin.simulation.engine.placing.place import occupy
from gputwin.simulation.engine.reservations.earliest import earliest
from gputwin.simulation.engine.reservations.planning import plan
from gputwin.simulation.engine.reservations.plans import CHANGED_NODES, SEEN, WAITING_JOBS
from gputwin.simulation.engine.reservations.timeline import OUTDATED
from gputwin.simulation.engine.reservations.trial import still_holds
from gputwin.simulation.engine.state.events import FINISH, next_time, pop, schedule
from gputwin.simulation.engine.state.records import wide
from gputwin.simulation.engine.state.running import believe
from gputwin.simulation.engine.world import STALE, WAITS, World


def conservative_pass(
    world: World, now: float, order: Any, promotion: Any, claim: Any, score: Any, devices: Any, turn: Any, gate: Any
) -> None:
    """Plan who has no plan, look at all plans where ends differ from what was believed, start whose time has come.

    World.counters[0].reserved_job is -1 where all plans are to be looked at.
    """
    jobs, line = world.queue.jobs, world.plans.order
    all_plans = world.counters[0].reserved_job < 0
    world.counters[0].reserved_job = 0
    _line_up(world, now, all_plans)
    if all_plans:
        _list_changed(world)
    while line.count[0] > 0:
        j = pop(line)[1]
        if jobs[j].outcome != WAITS:
            continue
        if np.isnan(jobs[j].planned):
            _plan_anew(world, j, now, score, devices)
        elif all_plans:
            _look_at(world, j, now, score, devices)
        if jobs[j].planned <= now:
            _start_planned(world, j, now)
    if all_plans:
        _forget_changed(world)
    world.reserved_from[0] = _next_start(world)
    end_pass(world, NO_HEAD, now)


@compiled
def _line_up(world: World, now: float, all_plans: bool) -> None:
    """Put into Plans.order the jobs to look at: everybody, or who has just come and whose start has come."""
    jobs, plans = world.queue.jobs, world.plans
    state, order, starts = plans.state, plans.order, plans.starts
    order.count[0] = 0
    while state[SEEN] < jobs.size and jobs[state[SEEN]].submit <= now:
        j = state[SEEN]
        state[SEEN] += 1
        if jobs[j].outcome == WAITS:
            jobs[j].running_at = state[WAITING_JOBS]
            plans.waiting[state[WAITING_JOBS]] = j
            state[WAITING_JOBS] += 1
            if not all_plans:
                schedule(order, jobs[j].key, FINISH, j)
    if all_plans:
        for k in range(state[WAITING_JOBS]):
            j = wide(plans.waiting[k])
            schedule(order, jobs[j].key, FINISH, j)
        return
    while next_time(starts) <= now:
        time = next_time(starts)
        j = pop(starts)[1]
        if jobs[j].outcome == WAITS and jobs[j].planned == time:
            schedule(order, jobs[j].key, FINISH, j)


@compiled
def _next_start(world: World) -> float:
    """Return the earliest planned start."""
    jobs, starts = world.queue.jobs, world.plans.starts
    while starts.count[0] > 0:
        j = starts.heap[0].code & ((1 << 40) - 1)
        if jobs[j].outcome == WAITS and jobs[j].planned == next_time(starts):
            break
        pop(starts)
    return next_time(starts)


@compiled
def _note_start(world: World, j: int) -> None:
    """Enter the planned start of job j; where the list is full, entries that no longer count are dropped."""
    jobs, plans = world.queue.jobs, world.plans
    if plans.starts.count[0] >= plans.starts.heap.size - 1:
        plans.starts.count[0] = 0
        for k in range(plans.state[WAITING_JOBS]):
            other = wide(plans.waiting[k])
            if other != j and jobs[other].planned < np.inf:
                schedule(plans.starts, jobs[other].planned, FINISH, other)
    schedule(plans.starts, jobs[j].planned, FINISH, j)


@compiled
def _plan_anew(world: World, j: int, now: float, score: Any, devices: Any) -> None:
    """Plan job j, which has no plan."""
    job = world.queue.jobs[j]
    plan(world, j, now, score, devices)
    if job.planned < np.inf:
        _remember(world, j)
        _note_start(world, j)
    else:
        # It would wait for somebody who is believed to run for ever: it is planned again with the next event.
        job.planned = np.nan
        world.counters[0].reserved_job = -1


@compiled
def _look_at(world: World, j: int, now: float, score: Any, devices: Any) -> None:
    """Make the plan of job j anew if it no longer holds or if it can start earlier."""
    job, slots, plans = world.queue.jobs[j], world.slots, world.plans
    size, here = world.queue.shapes[job.shape].instances, False
    for i in range(job.first_slot, job.first_slot + size):
        here = here or plans.changed[slots[i].node] != 0
    if not here and not _may_start_earlier(world, j, now):
        return
    before = job.planned
    _forget(world, j)
    holds = not here or still_holds(world, j)
    if holds and not _may_start_earlier(world, j, now):
        _remember(world, j)
        return
    for k in range(size):
        spot, slot = world.reserved[k], slots[job.first_slot + k]
        spot.node, spot.devices, spot.request = slot.node, slot.devices, slot.request
    plan(world, j, now, score, devices)
    if holds and not job.planned < before:
        for k in range(size):
            spot, slot = world.reserved[k], slots[job.first_slot + k]
            slot.node, slot.devices, slot.request = spot.node, spot.devices, spot.request
        job.planned = before
        _remember(world, j)
        return
    for k in range(size):
        _note_change(world, wide(world.reserved[k].node))
    if job.planned < np.inf:
        _remember(world, j)
        _note_start(world, j)
    else:
        job.planned = np.nan
        world.counters[0].reserved_job = -1


@compiled
def _may_start_earlier(world: World, j: int, now: float) -> bool:
    """Return whether an instance of job j fits before its planned start on a node where more may be free than before."""
    job, plans = world.queue.jobs[j], world.plans
    shape = world.queue.shapes[job.shape]
    for k in range(plans.state[CHANGED_NODES]):
        n = wide(plans.waiting[world.queue.jobs.size + k])
        for g in range(shape.first_group, shape.first_group + shape.groups):
            if earliest(world, j, wide(world.groups[g].request), n, now, job.planned) < job.planned:
                return True
    return False


@compiled
def _list_changed(world: World) -> None:
    """List the nodes on which more may be free than when all plans were last looked at."""
    plans = world.plans
    plans.state[CHANGED_NODES] = 0
    for n in range(world.machines.nodes.size):
        if world.masks[n] == STALE:
            plans.changed[n] |= 1
        if plans.changed[n] != 0:
            plans.changed[n] = 1
            plans.waiting[world.queue.jobs.size + plans.state[CHANGED_NODES]] = n
            plans.state[CHANGED_NODES] += 1


@compiled
def _note_change(world: World, n: int) -> None:
    """Note that a plan has left node n."""
    plans = world.plans
    if plans.changed[n] == 0:
        plans.waiting[world.queue.jobs.size + plans.state[CHANGED_NODES]] = n
        plans.state[CHANGED_NODES] += 1
    plans.changed[n] |= 2


@compiled
def _forget_changed(world: World) -> None:
    """All plans have been looked at; only where plans moved meanwhile, those before them may yet gain."""
    plans = world.plans
    for k in range(plans.state[CHANGED_NODES]):
        n = wide(plans.waiting[world.queue.jobs.size + k])
        plans.changed[n] >>= 1
    plans.state[CHANGED_NODES] = 0


@compiled
def _start_planned(world: World, j: int, now: float) -> None:
    job, plans = world.queue.jobs[j], world.plans
    _forget(world, j)
    plans.state[WAITING_JOBS] -= 1
    last = wide(plans.waiting[plans.state[WAITING_JOBS]])
    plans.waiting[job.running_at] = last
    world.queue.jobs[last].running_at = job.running_at
    occupy(world, job.first_slot, job.first_slot + world.queue.shapes[job.shape].instances)
    start_waiting(world, j, now)
    if job.believed_end <= now:
        # It is there until its end is seen, even if it lasts no time.
        believe(world, j, np.nextafter(now, np.inf))


@compiled
def _remember(world: World, j: int) -> None:
    """Enter the planned instances of job j into the lists of their nodes, in order of start."""
    job, links, jobs = world.queue.jobs[j], world.links, world.queue.jobs
    for i in range(job.first_slot, job.first_slot + world.queue.shapes[job.shape].instances):
        n = wide(world.slots[i].node)
        if world.masks[n] != STALE:
            world.masks[n] = OUTDATED
        node = world.machines.nodes[n]
        previous, following = wide(-1), wide(node.first_planned)
        while following >= 0 and jobs[links[following].job].planned <= job.planned:
            previous, following = following, wide(links[following].next)
        links[i].job, links[i].next, links[i].previous = j, following, previous
        if following >= 0:
            links[following].previous = i
        if previous >= 0:
            links[previous].next = i
        else:
            node.first_planned = i


@compiled
def _forget(world: World, j: int) -> None:
    """Take the planned instances of job j out of the lists of their nodes."""
    job, links = world.queue.jobs[j], world.links
    for i in range(job.first_slot, job.first_slot + world.queue.shapes[job.shape].instances):
        n = wide(world.slots[i].node)
        if world.masks[n] != STALE:
            world.masks[n] = OUTDATED
        previous, following = links[i].previous, links[i].next
        if previous >= 0:
            links[previous].next = following
        else:
            world.machines.nodes[n].first_planned = following
        if following >= 0:
            links[following].previous = previous
