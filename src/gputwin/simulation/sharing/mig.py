"""GPUs cut into MIG instances, as jobs come and go."""

from __future__ import annotations

from gputwin.simulation.engine.state.records import Floats, Knobs, Machines, Records
from gputwin.simulation.policy import SHARINGS, SharingRule

PARAMETERS = {"least_share": 1.0}


def factor(
    jobs: Records,
    shapes: Records,
    slots: Records,
    machines: Machines,
    requests: Records,
    speeds: Floats,
    knobs: Knobs,
    j: int,
) -> float:
    """Return the share of the SMs it asks for that the smallest instance of job j has, at most 1."""
    slowest = 1.0
    first = jobs[j].first_slot
    for i in range(first, first + shapes[jobs[j].shape].instances):
        request = requests[slots[i].request]
        if request.gpu_count > 0 and request.held < request.demand:
            slowest = min(slowest, request.held / request.demand)
    return slowest


SHARINGS.add(
    SharingRule(
        "mig",
        "a request for a share gets the smallest MIG instance with `least_share` of the SMs it asks for, and its memory; "
        "instances are made when their slices are free, only where NVIDIA's tables allow them, on the fullest device "
        "that has a place, at the last place; several GPUs are whole ones; a job with fewer SMs is slower in proportion",
        factor,
        source="NVIDIA Multi-Instance GPU User Guide, supported profiles and placements",
        parameters=PARAMETERS,
        at_least={"least_share": 0.01},
        full_speed_with={"least_share": 1.0},
    )
)
