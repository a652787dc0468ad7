"""Who runs where: the list of running jobs, and for each node the instances on it."""

from __future__ import annotations

from gputwin.simulation.engine.compiled import compiled

from gputwin.simulation.engine.index import touch
from gputwin.simulation.engine.state import give_back
from gputwin.simulation.engine.world import TRACK_NODES, World


@compiled
def enlist(world: World, j: int, begin: int, end: int) -> None:
    """Note that job j runs, its instances in slots begin..end."""
    runs, slots = world.runs, world.slots
    if world.options[TRACK_NODES] == 0:
        runs.running_count[0] += 1
        return
    runs.running_at[j] = runs.running_count[0]
    runs.running[runs.running_count[0]] = j
    runs.running_count[0] += 1
    for i in range(begin, end):
        n = slots.node[i]
        after = slots.first_on_node[n]
        slots.job[i] = j
        slots.next[i] = after
        slots.previous[i] = -1
        if after >= 0:
            slots.previous[after] = i
        slots.first_on_node[n] = i


@compiled
def discharge(world: World, j: int, begin: int, end: int) -> None:
    """Free what job j holds and forget that it runs; where it ran stays on record."""
    runs, slots = world.runs, world.slots
    for i in range(begin, end):
        n = slots.node[i]
        give_back(world.nodes, world.requests, slots.request[i], n, slots.devices[i])
        touch(world.index, n)
    runs.running_count[0] -= 1
    if world.options[TRACK_NODES] == 0:
        return
    last = runs.running[runs.running_count[0]]
    at = runs.running_at[j]
    runs.running[at] = last
    runs.running_at[last] = at
    for i in range(begin, end):
        before, after = slots.previous[i], slots.next[i]
        if before >= 0:
            slots.next[before] = after
        else:
            slots.first_on_node[slots.node[i]] = after
        if after >= 0:
            slots.previous[after] = before
