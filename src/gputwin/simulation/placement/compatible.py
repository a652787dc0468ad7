"""Beside the neighbours that suffer least."""

from __future__ import annotations

from gputwin.simulation.engine.compiled import inlined
from gputwin.simulation.engine.fit.room import device_fits
from gputwin.simulation.engine.state.records import WHOLE, Knobs, Machines, Records
from gputwin.simulation.policy import placement, positions

PARAMETERS = {"idle": 0.25}
AT = positions(PARAMETERS)
_ENDLESS = 1e300


@inlined
def mutual_slowdown(machines: Machines, requests: Records, r: int, n: int, d: int, knobs: Knobs) -> float:
    """Return by how much an instance of r and those on device d of node n would slow each other in all; `idle` for none."""
    sharing, model, total = knobs.sharing, machines.nodes[n].model, 0.0
    if machines.gpus[n, d].free == WHOLE:
        return knobs.placement[AT.idle]
    k = machines.nodes[n].first_slot
    while k >= 0:
        if sharing.slots[k].devices >> d & 1:
            other = sharing.slots[k].request
            mine, its = requests[r].kind, requests[other].kind
            total += sharing.pairs[model, mine, its] * requests[other].demand / WHOLE
            total += sharing.pairs[model, its, mine] * requests[r].demand / WHOLE
        k = sharing.links[k].next
    return total


def devices(machines: Machines, requests: Records, r: int, n: int, knobs: Knobs) -> int:
    """Return the devices with least mutual slowdown, among equals the one with least free share, then the first."""
    chosen = 0
    for _ in range(requests[r].gpu_count):
        best, least = -1, _ENDLESS
        for d in range(machines.nodes[n].gpu_count):
            if chosen >> d & 1 or not device_fits(machines, requests, r, n, d):
                continue
            slowed = mutual_slowdown(machines, requests, r, n, d, knobs)
            if slowed < least or (slowed == least and machines.gpus[n, d].free < machines.gpus[n, best].free):
                best, least = d, slowed
        if best < 0:
            return 0
        chosen |= 1 << best
    return chosen


@placement(
    "compatible",
    "the device whose jobs and the new one slow each other least in all, by the table of pairs of --interference; an idle "
    "GPU counts as a slowdown of `idle`, so that it is used only where neighbours would cost more (a large `idle` packs, "
    "0 keeps jobs apart)",
    source="after Gavel's space sharing (OSDI'20, section 3.1) and Gandiva's packing (OSDI'18, section 3.3)",
    parameters=PARAMETERS,
    at_least={"idle": 0.0},
    devices=devices,
)
def score(machines: Machines, requests: Records, r: int, n: int, knobs: Knobs) -> float:
    """Return the least mutual slowdown on a device of the node that fits, negative."""
    if requests[r].gpu_count == 0 or requests[r].gpu_milli == WHOLE:
        return 0.0
    least = _ENDLESS
    for d in range(machines.nodes[n].gpu_count):
        if device_fits(machines, requests, r, n, d):
            least = min(least, mutual_slowdown(machines, requests, r, n, d, knobs))
    return -least
