"""Where a job can start beside a reservation: what the reservation will need is hidden on trial while a place is sought."""

from __future__ import annotations

from typing import Any

from gputwin.simulation.engine.compiled import compiled
from gputwin.simulation.engine.fit.index import FIRST_FITS, move
from gputwin.simulation.engine.fit.questions import next_fit, room
from gputwin.simulation.engine.placing.place import occupy, place, unplace
from gputwin.simulation.engine.reservations.mask import apply_mask, refresh, show_again, withhold, withhold_row
from gputwin.simulation.engine.state.records import wide
from gputwin.simulation.engine.trials.undo import begin_for, undo
from gputwin.simulation.engine.world import SHOWN, World

_TRIALS = 8
"""With more reserved nodes in the way, hiding all of them is cheaper."""


@compiled
def place_beside(world: World, j: int, ends_before: bool, score: Any, devices: Any) -> bool:
    """Place job j where it does not delay the reservation; `ends_before`: it is believed to end before that begins."""
    if ends_before:
        return place(world, j, score, devices)
    refresh(world)
    job = world.queue.jobs[j]
    size, first_fits = world.queue.shapes[job.shape].instances, world.requests[0].slot == FIRST_FITS
    if first_fits and size == 1:
        return _place_first(world, j, devices)
    begin_for(world, wide(job.shape), score)
    if first_fits:
        placed = _place_gang(world, j, score, devices)
    else:
        withhold(world)
        placed = place(world, j, score, devices)
    show_again(world)
    undo(world.index, world.machines)
    if placed:
        occupy(world, job.first_slot, job.first_slot + size)
    return placed


@compiled
def _place_first(world: World, j: int, devices: Any) -> bool:
    """Place the only instance of job j on the first node that fits beside the reservation."""
    machines, requests, count = world.machines, world.requests, world.machines.nodes.size
    job, n = world.queue.jobs[j], wide(-1)
    r = wide(world.groups[world.queue.shapes[job.shape].first_group].request)
    while n + 1 < count:
        n = next_fit(world, r, n + 1)
        if n < 0:
            return False
        k, chosen, fits = wide(world.rows[n]), wide(0), True
        masked = k >= 0 and world.masks[k] == SHOWN
        if masked:
            apply_mask(world, k, 1)
            fits = room(world, r, n) > 0
        if fits and requests[r].gpu_count > 0:
            chosen = devices(machines, requests, r, n, world.knobs)
        if masked:
            apply_mask(world, k, -1)
        if fits:
            if requests[r].gpu_count > 0 and chosen == 0:
                return False
            slot = world.slots[job.first_slot]
            slot.node, slot.devices, slot.request = n, chosen, r
            move(world.index, machines, requests, r, n, chosen, wide(1))
            return True
    return False


@compiled
def _place_gang(world: World, j: int, score: Any, devices: Any) -> bool:
    """Place job j on the first nodes that fit beside the reservation, hiding only what stands in its way; a trial is open.

    A node hidden in part is fit for less. So where the first that fit are none of those still to be hidden, they would
    also be the first with all hidden; and where nothing fits, nothing would.
    """
    first = world.queue.jobs[j].first_slot
    size = world.queue.shapes[world.queue.jobs[j].shape].instances
    for _ in range(_TRIALS):
        if not place(world, j, score, devices):
            return False
        in_the_way = wide(-1)
        for i in range(first, first + size):
            k = wide(world.rows[world.slots[i].node])
            if k >= 0 and world.masks[k] == SHOWN:
                in_the_way = k
                break
        if in_the_way < 0:
            return True
        unplace(world, first, first + size)
        withhold_row(world, in_the_way)
    withhold(world)
    return place(world, j, score, devices)
