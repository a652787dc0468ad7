"""What a pass over one queue in order is made of: who is first, who comes next, starting one, and closing the pass.

Strict order uses these, and so do rules of overtaking from outside (`policy.backfill`).
"""

from __future__ import annotations

from typing import Any

from gputwin.simulation.engine.attribution.causes import blame_head
from gputwin.simulation.engine.attribution.reasons import reason
from gputwin.simulation.engine.compiled import compiled, inlined
from gputwin.simulation.engine.lifecycle import start_waiting
from gputwin.simulation.engine.placing.place import fits, place
from gputwin.simulation.engine.queue.jobs import after, first
from gputwin.simulation.engine.state.records import wide
from gputwin.simulation.engine.world import World


@inlined
def first_in_line(world: World) -> int:
    """Return the waiting job that goes first; -1: nobody waits."""
    return first(world.queue, 0)


@inlined
def next_in_line(world: World, j: int) -> int:
    """Return the waiting job that comes after the waiting job j; -1 for none. Ask before j is started."""
    return after(world.queue, j)


@compiled
def try_to_start(world: World, j: int, now: float, score: Any, devices: Any) -> bool:
    """Start the waiting job j, if all its instances fit now; return whether it was started."""
    if fits(world, wide(world.queue.jobs[j].shape)) and place(world, j, score, devices):
        start_waiting(world, j, now)
        return True
    return False


@compiled
def end_in_order(world: World, now: float) -> None:
    """Say what the first waiting job waits for; all others wait behind it. The last call of every pass."""
    j = first_in_line(world)
    if j >= 0 and world.settings[0].attributes != 0:
        blame_head(world.causes, j, reason(world, wide(world.queue.jobs[j].shape)), now)
