"""Who has had more service yields to who has had less."""

from __future__ import annotations

import numpy as np

from gputwin.simulation.engine.state.records import Knobs, Records
from gputwin.simulation.ordering.las import QUEUE, gpus, queue_of_service
from gputwin.simulation.policy import preemption


def claim(jobs: Records, j: int, now: float, knobs: Knobs) -> float:
    """Return a rank between job j's own queue and the next one."""
    return (queue_of_service(jobs, j, knobs) + 0.5) * QUEUE


def crossing(jobs: Records, j: int, now: float, knobs: Knobs) -> float:
    """Return when the running job j reaches the next queue's limit, s."""
    number = queue_of_service(jobs, j, knobs)
    if number + 1 >= knobs.order[2]:
        return np.inf
    limit = knobs.order[0] * knobs.order[1] ** number
    return now + limit / gpus(jobs, j) - jobs[j].attained


@preemption(
    "attained-service",
    "a job may take the place of those in later queues of las, the latest queue and submission first",
    source="Gu et al., Tiresias, NSDI'19, section 3.3",
    claim=claim,
    crossing=crossing,
)
def rank(jobs: Records, j: int, now: float, knobs: Knobs) -> float:
    """Return the submit time within its queue, s."""
    return queue_of_service(jobs, j, knobs) * QUEUE + jobs[j].submit
