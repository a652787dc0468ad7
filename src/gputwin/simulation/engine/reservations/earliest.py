"""The earliest time at which a node can take an instance, beside what runs there and what is planned."""

from __future__ import annotations

from typing import Any

import numpy as np

from gputwin.simulation.engine.compiled import compiled, inlined
from gputwin.simulation.engine.fit.questions import room
from gputwin.simulation.engine.reservations.timeline import chain, enter, finish
from gputwin.simulation.engine.state.records import WHOLE, Records, wide
from gputwin.simulation.engine.trials.journal import begin
from gputwin.simulation.engine.trials.undo import undo
from gputwin.simulation.engine.world import World


@compiled
def room_from(world: World, j: int, r: int, n: int, time: float) -> int:
    """Return how many instances of r of job j fit on node n from `time` on, for as long as it is believed to run."""
    begin(world.index.journal, world.machines)
    enter(world, j, n, time)
    found = room(world, r, n)
    undo(world.index, world.machines)
    return found


@inlined
def _enough(request: Any, cpu: int, memory: int, whole: int, share: int, gpu_free: int) -> bool:
    """Return whether so much may be enough for an instance, whatever the devices."""
    if (request.cpu > 0 and cpu < request.cpu) or (request.memory > 0 and memory < request.memory):
        return False
    if request.gpu_count == 0:
        return True
    if request.gpu_milli == WHOLE:
        return whole >= request.gpu_count
    return share >= request.gpu_milli and gpu_free >= request.gpu_count * request.gpu_milli


@compiled
def earliest(world: World, j: int, r: int, n: int, since: float, until: float) -> float:
    """Return the earliest time from `since` to `until` from which an instance of r of job j fits on node n."""
    request, node, moments = world.requests[r], world.machines.nodes[n], world.plans.moments
    if request.cpu > node.cpu or request.memory > node.memory:
        return np.inf
    if request.gpu_count > 0 and (request.gpu_count > node.gpu_count or not world.index.allowed[r, node.model]):
        return np.inf
    start, k = since, chain(world, n)
    share = 0
    for d in range(node.gpu_count):
        share = max(share, world.machines.gpus[n, d].free)
    enough = _enough(request, node.cpu_free, node.memory_free, node.gpus_whole, share, node.gpu_free)
    while k >= 0 and moments[k].time <= since:
        enough = _enough_from(request, moments, k)
        k = wide(moments[k].next)
    while True:
        # From `start` to moment k, `enough` holds.
        if enough:
            end, bad = finish(start, world.queue.jobs[j].predicted), k
            while bad >= 0 and moments[bad].time < end:
                if _last_of_instant(moments, bad) and not _enough_from(request, moments, bad):
                    break
                bad = wide(moments[bad].next)
            if bad < 0 or moments[bad].time >= end:
                if room_from(world, j, r, n, start) > 0:
                    return start
            else:
                k = wide(moments[bad].next)
        enough = False
        while k >= 0 and not enough:
            if moments[k].time > until:
                return np.inf
            enough = _last_of_instant(moments, k) and _enough_from(request, moments, k)
            start = moments[k].time
            k = wide(moments[k].next)
        if not enough:
            return np.inf


@compiled
def may_stay(world: World, j: int, r: int, n: int, since: float) -> bool:
    """Return whether an instance of r of job j that fits on node n now may stay, whatever the devices."""
    request, moments, k = world.requests[r], world.plans.moments, chain(world, n)
    end = finish(since, world.queue.jobs[j].predicted)
    while k >= 0 and moments[k].time < end:
        if _last_of_instant(moments, k) and not _enough_from(request, moments, k):
            return False
        k = wide(moments[k].next)
    return True


@inlined
def _last_of_instant(moments: Records, k: int) -> bool:
    return moments[k].next < 0 or moments[moments[k].next].time > moments[k].time


@inlined
def _enough_from(request: Any, moments: Records, k: int) -> bool:
    moment = moments[k]
    return _enough(request, moment.cpu, moment.memory, wide(moment.whole), wide(moment.share), wide(moment.gpu_free))
