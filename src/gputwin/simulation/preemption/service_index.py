"""Who is less likely to finish soon yields to who is more likely."""

from __future__ import annotations

from gputwin.simulation.engine.state.records import Knobs, Records
from gputwin.simulation.ordering.gittins import level_of_service, next_change
from gputwin.simulation.ordering.las import QUEUE
from gputwin.simulation.policy import preemption


def claim(jobs: Records, j: int, now: float, knobs: Knobs) -> float:
    """Return a rank between job j's own level and the next one."""
    return (level_of_service(jobs, j, knobs) + 0.5) * QUEUE


def crossing(jobs: Records, j: int, now: float, knobs: Knobs) -> float:
    """Return when the running job j has another level, s."""
    return next_change(jobs, j, now, knobs)


@preemption(
    "service-index",
    "a job may take the place of those with a lower Gittins index, the lowest index and latest submission first",
    source="Gittins, 1979; Gu et al., Tiresias, NSDI'19, section 3.3",
    claim=claim,
    crossing=crossing,
    keeps_work=True,
)
def rank(jobs: Records, j: int, now: float, knobs: Knobs) -> float:
    """Return the submit time within its level, s."""
    return level_of_service(jobs, j, knobs) * QUEUE + jobs[j].submit
