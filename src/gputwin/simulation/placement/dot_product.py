"""Dot product."""

from __future__ import annotations

from gputwin.simulation.engine.state.records import LARGEST_CPU, LARGEST_GPU, Knobs, Machines, Records
from gputwin.simulation.policy import placement


@placement(
    "dot-product",
    "the node whose free resources and the request have the smallest dot product",
    source="Grandl et al., Tetris, SIGCOMM'14; as in Weng et al., ATC'23, section 6.1; whole points, as published",
)
def score(machines: Machines, requests: Records, r: int, n: int, knobs: Knobs) -> float:
    """Return 100 minus the mean of free × asked over CPU and GPU, in % of the largest node's squared."""
    cpu = machines.nodes[n].cpu_free / knobs.numbers[LARGEST_CPU] * (requests[r].cpu / knobs.numbers[LARGEST_CPU])
    asked = requests[r].gpu_count * requests[r].gpu_milli
    gpu = machines.nodes[n].gpu_free / knobs.numbers[LARGEST_GPU] * (asked / knobs.numbers[LARGEST_GPU])
    return float(int(100.0 * (1.0 - (cpu + gpu) / 2.0)))
