"""Where the cluster's draw grows least."""

from __future__ import annotations

from gputwin.simulation.engine.compiled import compiled
from gputwin.simulation.engine.fit.devices import fullest
from gputwin.simulation.engine.state.records import WHOLE, Knobs, Machines, Records
from gputwin.simulation.policy import placement
from gputwin.simulation.power.devices import gpu_power

_fullest = compiled(fullest)
_TIE = 1e-6
"""W per thousandth of a GPU that is free on the node: of equal draws the fuller node."""


def watts(model: str, speed: float) -> tuple[float, float]:
    """Return what a GPU of the model draws more once a context is loaded, and for all of its load on top, over its speed."""
    power = gpu_power(model)
    return (power.context_watts - power.idle_watts) / speed, (power.load_watts - power.context_watts) / speed


@placement(
    "power",
    "the node on which the draw grows least for the work done: watts of GPUs that get their first job and of the share "
    "taken, over the GPU model's speed; of equal ones the fuller node",
    source="Lettich et al., Power- and Fragmentation-aware Online Scheduling for GPU Datacenters, 2024 (PWR)",
    by_model=watts,
)
def score(machines: Machines, requests: Records, r: int, n: int, knobs: Knobs) -> float:
    """Return the watts the instance would add to the node, over its speed, negative."""
    added = 0.0
    if requests[r].gpu_count > 0:
        model = machines.nodes[n].model
        devices = _fullest(machines, requests, r, n, knobs)
        first = 0
        for d in range(machines.nodes[n].gpu_count):
            if devices >> d & 1 and machines.gpus[n, d].free == WHOLE:
                first += 1
        share = requests[r].gpu_count * requests[r].gpu_milli / WHOLE
        added = first * knobs.placement[2 * model] + share * knobs.placement[2 * model + 1]
    return -added - _TIE * machines.nodes[n].gpu_free
