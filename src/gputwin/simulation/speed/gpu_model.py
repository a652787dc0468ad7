"""By GPU model."""

from __future__ import annotations

from gputwin.simulation.engine.state.records import Floats, Knobs, Machines, Records
from gputwin.simulation.policy import speed


@speed("gpu-model", "at the speed of the slowest GPU model among its instances, as given in the table of speeds")
def factors(
    jobs: Records,
    shapes: Records,
    slots: Records,
    machines: Machines,
    requests: Records,
    speeds: Floats,
    knobs: Knobs,
    j: int,
) -> tuple[float, float, float]:
    """Return the factors by GPU model, spread and neighbours; instances without GPUs slow nobody."""
    slowest, found = 1.0, False
    first = jobs[j].first_slot
    for i in range(first, first + shapes[jobs[j].shape].instances):
        if requests[slots[i].request].gpu_count > 0:
            own = speeds[0, machines.nodes[slots[i].node].model]
            if not found or own < slowest:
                slowest, found = own, True
    return slowest, 1.0, 1.0
