"""Trying a job on the cluster as it will be: nodes are shown as they are at their fullest while it would run."""

from __future__ import annotations

from typing import Any

from gputwin.simulation.engine.compiled import compiled, inlined
from gputwin.simulation.engine.fit.index import touch
from gputwin.simulation.engine.fit.questions import room
from gputwin.simulation.engine.fit.room import device_fits
from gputwin.simulation.engine.placing.place import fits_now, place, place_in_order, unplace
from gputwin.simulation.engine.reservations.earliest import may_stay
from gputwin.simulation.engine.reservations.timeline import enter, finish
from gputwin.simulation.engine.state.records import change, wide
from gputwin.simulation.engine.trials.journal import begin
from gputwin.simulation.engine.trials.undo import begin_for, undo
from gputwin.simulation.engine.world import TOPOLOGY, World

RIGHT, SHOWN, WRONG, CHOSEN = (wide(k) for k in range(4))
"""What Plans.entered says of a node: as it is, it is right; it is shown as it will be; it is shown as it is, which is
wrong; so, and a trial went there."""
_TRIALS = 8


@compiled
def attempt(world: World, j: int, now: float, time: float, score: Any, devices: Any) -> bool:
    """Place job j on trial as if it were `time`; its slots keep nodes and devices."""
    s = wide(world.queue.jobs[j].shape)
    begin_for(world, s, score)
    _show(world, j, now, time)
    placed = fits_now(world, s) and _place_on_trial(world, j, time, score, devices)
    undo(world.index, world.machines)
    return placed


@compiled
def _show(world: World, j: int, now: float, time: float) -> None:
    """Show the nodes as they will be while job j runs from `time` on, where that matters to it.

    Nodes that have room now but will have none are left as they are, and listed as WRONG.
    """
    entered, shape = world.plans.entered, world.queue.shapes[world.queue.jobs[j].shape]
    for n in range(world.machines.nodes.size):
        entered[n] = RIGHT
        # Now, only plans are in the way; later, what has no room now may have some.
        later = False
        if time > now:
            for g in range(wide(shape.groups)):
                later = later or world.plans.rooms[g, n] > 0
        elif not in_the_way(world, j, n, now):
            continue
        if later or _room_for_any(world, j, n):
            if world.settings[0].gang == TOPOLOGY or later or _any_may_stay(world, j, n, time):
                enter(world, j, n, time)
                entered[n] = SHOWN
                touch(world.index, world.machines, n, True)
            else:
                entered[n] = WRONG


@compiled
def _place_on_trial(world: World, j: int, time: float, score: Any, devices: Any) -> bool:
    """Place job j beside nodes that are WRONG: they are shown as they will be only if it would go there.

    They have no room, and what is not chosen does not change the choice among others.
    """
    job, entered = world.queue.jobs[j], world.plans.entered
    shape = world.queue.shapes[job.shape]
    first, end = job.first_slot, job.first_slot + shape.instances
    for _ in range(_TRIALS):
        if not place_in_order(world, j, score, devices):
            if shape.groups == 1:
                return False
            break
        wrong = False
        for i in range(first, end):
            wrong = wrong or entered[world.slots[i].node] == WRONG
        if not wrong:
            return True
        for i in range(first, end):
            if entered[world.slots[i].node] == WRONG:
                entered[world.slots[i].node] = CHOSEN
        unplace(world, first, end)
        _show_all(world, j, time, CHOSEN)
    _show_all(world, j, time, WRONG)
    return place(world, j, score, devices)


@compiled
def _show_all(world: World, j: int, time: float, which: int) -> None:
    """Show all nodes listed as `which` as they will be."""
    entered = world.plans.entered
    for n in range(world.machines.nodes.size):
        if entered[n] == which:
            enter(world, j, n, time)
            entered[n] = SHOWN
            touch(world.index, world.machines, n, True)


@compiled
def _room_for_any(world: World, j: int, n: int) -> bool:
    """Return whether node n has room for an instance of any role of job j."""
    shape = world.queue.shapes[world.queue.jobs[j].shape]
    for g in range(shape.first_group, shape.first_group + shape.groups):
        r = wide(world.groups[g].request)
        if room(world, r, n) > 0:
            return True
    return False


@inlined
def in_the_way(world: World, j: int, n: int, now: float) -> bool:
    """Return whether a plan on node n begins while job j would run if it started now; the list is in order of start."""
    i = wide(world.machines.nodes[n].first_planned)
    if i < 0:
        return False
    return world.queue.jobs[world.links[i].job].planned < finish(now, world.queue.jobs[j].predicted)


@inlined
def _any_may_stay(world: World, j: int, n: int, time: float) -> bool:
    shape, some = world.queue.shapes[world.queue.jobs[j].shape], False
    for g in range(shape.first_group, shape.first_group + shape.groups):
        some = some or may_stay(world, j, wide(world.groups[g].request), n, time)
    return some


@compiled
def still_holds(world: World, j: int) -> bool:
    """Return whether the instances of job j fit where and when they are planned; its own plan is put aside."""
    machines, requests, job, entered = world.machines, world.requests, world.queue.jobs[j], world.plans.entered
    taken, end, holds = job.first_slot, job.first_slot + world.queue.shapes[job.shape].instances, True
    for i in range(taken, end):
        entered[world.slots[i].node] = 0
    begin(world.index.journal, machines)
    while taken < end and holds:
        slot = world.slots[taken]
        n, r = wide(slot.node), wide(slot.request)
        if entered[n] == 0:
            enter(world, j, n, job.planned)
            entered[n] = 1
        holds = room(world, r, n) > 0
        for d in range(machines.nodes[n].gpu_count):
            if slot.devices >> d & 1:
                holds = holds and device_fits(machines, requests, r, n, d)
        if holds:
            change(machines, requests, r, n, slot.devices, 1)
            taken += 1
    undo(world.index, machines)
    return holds
