"""Load balancing."""

from __future__ import annotations

from gputwin.simulation.engine.fit.devices import emptiest
from gputwin.simulation.engine.state.records import Knobs, Machines, Records
from gputwin.simulation.policy import placement


@placement(
    "load-balance",
    "the node with the lowest share allocated, CPU and GPU averaged",
    source="Kubernetes NodeResourcesFit, LeastAllocated",
    devices=emptiest,
)
def score(machines: Machines, requests: Records, r: int, n: int, knobs: Knobs) -> float:
    """Return the mean of the free shares of the node's CPU and GPU after placing the instance, 0 to 1."""
    cpu = (machines.nodes[n].cpu_free - requests[r].cpu) / max(machines.nodes[n].cpu, 1)
    if machines.nodes[n].gpu_count == 0:
        return cpu
    gpu = (machines.nodes[n].gpu_free - requests[r].gpu_count * requests[r].gpu_milli) / (
        1000.0 * machines.nodes[n].gpu_count
    )
    return 0.5 * cpu + 0.5 * gpu
