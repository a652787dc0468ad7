"""Who runs where: the list of running jobs, and for each node the instances on it."""

from __future__ import annotations

from gputwin.simulation.engine.compiled import compiled
from gputwin.simulation.engine.index import touch
from gputwin.simulation.engine.state import give_back
from gputwin.simulation.engine.world import RUNNING_COUNT, TRACK, World


@compiled
def enlist(world: World, j: int) -> None:
    """Note that job j runs where its slots say."""
    world.options[RUNNING_COUNT] += 1
    if world.options[TRACK] == 0:
        return
    job, links = world.queue.jobs[j], world.links
    job.running_at = world.options[RUNNING_COUNT] - 1
    world.running[job.running_at] = j
    for i in range(job.first_slot, job.first_slot + world.queue.shapes[job.shape].instances):
        node = world.machines.nodes[world.slots[i].node]
        after = node.first_slot
        links[i].job, links[i].next, links[i].previous = j, after, -1
        if after >= 0:
            links[after].previous = i
        node.first_slot = i


@compiled
def discharge(world: World, j: int) -> None:
    """Free what job j holds and forget that it runs; where it ran stays on record."""
    job, links = world.queue.jobs[j], world.links
    end = job.first_slot + world.queue.shapes[job.shape].instances
    for i in range(job.first_slot, end):
        slot = world.slots[i]
        give_back(world.machines, world.requests, slot.request, slot.node, slot.devices)
        touch(world.index, slot.node)
    world.options[RUNNING_COUNT] -= 1
    if world.options[TRACK] == 0:
        return
    last = world.running[world.options[RUNNING_COUNT]]
    world.running[job.running_at] = last
    world.queue.jobs[last].running_at = job.running_at
    for i in range(job.first_slot, end):
        before, after = links[i].previous, links[i].next
        if before >= 0:
            links[before].next = after
        else:
            world.machines.nodes[world.slots[i].node].first_slot = after
        if after >= 0:
            links[after].previous = before
