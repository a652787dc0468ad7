"""Least attained service first, in discrete queues."""

from __future__ import annotations

import numpy as np

from gputwin.simulation.engine.compiled import inlined
from gputwin.simulation.engine.state.records import Knobs, Records
from gputwin.simulation.policy import ordering

QUEUE = 1e11
"""s between the keys of two queues: more than any trace lasts."""


@inlined
def queue_of_service(jobs: Records, j: int, knobs: Knobs) -> int:
    """Return the queue of job j: how many limits its GPU-seconds of service have reached."""
    limit, factor = knobs.order[0], knobs.order[1]
    queues = knobs.order[2]
    service = jobs[j].attained * gpus(jobs, j)
    number = 0
    # A limit that is reached exactly is reached, whatever rounding says.
    while number + 1 < queues and service * (1.0 + 1e-12) + 1e-9 >= limit:
        number += 1
        limit *= factor
    return number


@inlined
def gpus(jobs: Records, j: int) -> float:
    """Return the GPUs of job j; a job without any counts as one."""
    return jobs[j].gpu_milli / 1000.0 if jobs[j].gpu_milli > 0 else 1.0


def promotion(jobs: Records, j: int, now: float, knobs: Knobs) -> float:
    """Return how long job j may wait before its service is forgotten, s."""
    patience = knobs.order[3]
    return patience * jobs[j].attained if patience > 0 else np.inf


@ordering(
    "las",
    "queues by GPU-seconds of service so far, limits `first`, `first` × `factor`, …; in order of submission within one; "
    "who has waited `promote` times as long as it has run goes back to the first (0: never)",
    source="Gu et al., Tiresias: A GPU Cluster Manager for Distributed Deep Learning, NSDI'19, section 3.3",
    parameters={"first": 3600.0, "factor": 10.0, "queues": 3.0, "promote": 0.0},
    at_least={"first": 0.0, "factor": 1.0, "queues": 1.0, "promote": 0.0},
    preemption="attained-service",
    promotion=promotion,
)
def key(jobs: Records, j: int, now: float, knobs: Knobs) -> float:
    """Return the submit time within its queue, s."""
    return queue_of_service(jobs, j, knobs) * QUEUE + jobs[j].submit
