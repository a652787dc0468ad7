"""How much neighbours on the same devices slow a job, by the table of pairs."""

from __future__ import annotations

from gputwin.simulation.engine.compiled import inlined
from gputwin.simulation.engine.state.records import WHOLE, Floats, Knobs, Machines, Records


@inlined
def excess_on(machines: Machines, requests: Records, knobs: Knobs, kind: int, n: int, d: int, own: int) -> float:
    """Return by how much a job of this kind is slowed on device d of node n, 0: not; `own` is its slot, -1: not there yet.

    Each neighbour adds what was measured for the pair, times the share of a GPU that it asks for.
    """
    sharing, model = knobs.sharing, machines.nodes[n].model
    excess = 0.0
    k = machines.nodes[n].first_slot
    while k >= 0:
        if k != own and sharing.slots[k].devices >> d & 1:
            other = sharing.slots[k].request
            excess += sharing.pairs[model, kind, requests[other].kind] * (requests[other].demand / WHOLE)
        k = sharing.links[k].next
    return excess


def slowed_by_pairs(
    jobs: Records,
    shapes: Records,
    slots: Records,
    machines: Machines,
    requests: Records,
    speeds: Floats,
    knobs: Knobs,
    j: int,
) -> float:
    """Return the factor of job j: the instance that its neighbours slow most holds up the others."""
    worst = 0.0
    first = jobs[j].first_slot
    for i in range(first, first + shapes[jobs[j].shape].instances):
        request = requests[slots[i].request]
        if request.gpu_count == 0 or request.gpu_milli == WHOLE:
            continue
        n = slots[i].node
        for d in range(machines.nodes[n].gpu_count):
            if slots[i].devices >> d & 1:
                worst = max(worst, excess_on(machines, requests, knobs, request.kind, n, d, i))
    return 1.0 / (1.0 + worst)
