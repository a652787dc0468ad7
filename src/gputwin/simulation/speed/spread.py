"""By how far a job's instances are spread."""

from __future__ import annotations

from gputwin.simulation.engine.state.records import Floats, Knobs, Machines, Records
from gputwin.simulation.policy import positions, speed
from gputwin.simulation.speed.gpu_model import slowest_model

PARAMETERS = {"nodes": 0.9, "racks": 0.8}
AT = positions(PARAMETERS)


@speed(
    "spread",
    "at the speed of its slowest GPU model, times `nodes` if its instances are on several nodes of one rack, times `racks` "
    "if on several racks; nodes of no stated rack are in one (the defaults are examples: measure your own)",
    source="Jeon et al., Analysis of Large-Scale Multi-Tenant GPU Clusters, ATC'19, section 3 (locality)",
    parameters=PARAMETERS,
    at_least={"nodes": 1e-6, "racks": 1e-6},
)
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
    """Return the factors by GPU model, spread and neighbours."""
    first = jobs[j].first_slot
    node, spread = slots[first].node, 1.0
    for i in range(first + 1, first + shapes[jobs[j].shape].instances):
        if machines.nodes[slots[i].node].rack != machines.nodes[node].rack:
            spread = speeds[1, AT.racks]
            break
        if slots[i].node != node:
            spread = speeds[1, AT.nodes]
    return slowest_model(jobs, shapes, slots, machines, requests, speeds, j), spread, 1.0
