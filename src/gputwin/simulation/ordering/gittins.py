"""The Gittins index: whose next service is most likely to finish it, by the distribution of services."""

from __future__ import annotations

import numpy as np

from gputwin.simulation.engine.compiled import inlined
from gputwin.simulation.engine.state.records import Floats, Knobs, Records
from gputwin.simulation.gittins_index import service_levels
from gputwin.simulation.ordering.las import QUEUE, gpus
from gputwin.simulation.policy import ordering, positions

PARAMETERS = {"steps": 16, "least": 0.0}
AT = positions(PARAMETERS)
FIRST, FACTOR, LEVELS = len(PARAMETERS), len(PARAMETERS) + 1, len(PARAMETERS) + 2
"""Where `table` puts the first limit of service, the ratio of two limits, and the level of each step."""


def table(services: Floats, values: Floats) -> Floats:
    """Return the first limit (GPU-seconds), the ratio of limits, and the level of each step: 0 has the highest index."""
    return service_levels(services, int(values[AT.steps]), float(values[AT.least]))


@inlined
def step_of_service(jobs: Records, j: int, knobs: Knobs) -> int:
    """Return how many limits the GPU-seconds of job j have reached."""
    limit, steps = knobs.order[FIRST], knobs.order.size - LEVELS
    service = jobs[j].attained * gpus(jobs, j)
    step = 0
    # A limit that is reached exactly is reached, whatever rounding says.
    while step + 1 < steps and service * (1.0 + 1e-12) + 1e-9 >= limit:
        step += 1
        limit = knobs.order[FIRST] * knobs.order[FACTOR] ** step
    return step


@inlined
def level_of_service(jobs: Records, j: int, knobs: Knobs) -> float:
    """Return the level of job j: 0 where the index is highest."""
    return knobs.order[LEVELS + step_of_service(jobs, j, knobs)]


@inlined
def next_change(jobs: Records, j: int, now: float, knobs: Knobs) -> float:
    """Return when the running job j has another level, s."""
    steps = knobs.order.size - LEVELS
    step = step_of_service(jobs, j, knobs)
    level = knobs.order[LEVELS + step]
    for later in range(step + 1, steps):
        if knobs.order[LEVELS + later] != level:
            limit = knobs.order[FIRST] * knobs.order[FACTOR] ** (later - 1)
            return now + limit / gpus(jobs, j) - jobs[j].attained
    return np.inf


@ordering(
    "gittins",
    "highest Gittins index first: the chance to finish within some more GPU-seconds over the GPU-seconds that takes, at "
    "its best, by the services of all jobs; in order of submission where it is the same. The index is worked out at "
    "`steps` amounts of service so far, in equal ratios from the smallest service, or `least` GPU-seconds, to the largest",
    source="Gittins, Bandit Processes and Dynamic Allocation Indices, 1979; Gu et al., Tiresias, NSDI'19, section 3.3",
    parameters=PARAMETERS,
    at_least={"steps": 1, "least": 0.0},
    preemption="service-index",
    table=table,
)
def key(jobs: Records, j: int, now: float, knobs: Knobs) -> float:
    """Return the submit time within its level, s."""
    return level_of_service(jobs, j, knobs) * QUEUE + jobs[j].submit
