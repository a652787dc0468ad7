"""When preemption pays: the work that is ahead of the victim, by the difference of priorities, against what its stop costs.

    priority difference × remaining work of the victim × `worth` > checkpoint + restart + work lost

All in seconds. A unit of priority has the weight of `worth` seconds of cost for each second that the victim would still hold
its GPUs. What it believes to remain counts: the prediction less the work done.
"""

from __future__ import annotations

from gputwin.simulation.engine.compiled import compiled
from gputwin.simulation.engine.state.events import ROUND, schedule
from gputwin.simulation.engine.state.lives import RESTART, SAVE, SAVE_WHEN_PREEMPTED, standing_at
from gputwin.simulation.engine.state.records import wide
from gputwin.simulation.engine.world import World

WORTH, MIN_WAIT, LIMIT = range(3)
"""Positions in Knobs.preemption: seconds of cost that a unit of priority outweighs, s a job waits before it may displace
others, and the longest save of a job that may be displaced, s."""


@compiled
def has_waited(world: World, j: int, now: float) -> bool:
    """Return whether job j has waited long enough to displace others; if not, it is asked again when it has."""
    life = world.lives.records[j]
    due = life.queued + world.knobs.preemption[MIN_WAIT]
    if due <= now:
        return True
    if life.promoted_at != due:
        life.promoted_at = due
        schedule(world.events, due, ROUND, wide(0))
    return False


@compiled
def pays(world: World, j: int, v: int, now: float) -> bool:
    """Return whether it pays to stop the running job v for job j."""
    jobs, lives, knobs = world.queue.jobs, world.lives, world.knobs.preemption
    costs, standing = lives.costs, standing_at(lives, jobs, v, now)
    if costs[SAVE] > knobs[LIMIT]:
        return False
    remaining = max(jobs[v].predicted - standing.done, 0.0)
    cost = costs[RESTART]
    if costs[SAVE_WHEN_PREEMPTED] != 0.0:
        cost += costs[SAVE]
    else:
        cost += standing.done - max(standing.safe, 0.0)
    return (jobs[j].priority - jobs[v].priority) * remaining * knobs[WORTH] > cost
