"""Best fit."""

from __future__ import annotations

from gputwin.simulation.engine.state.records import LARGEST_CPU, LARGEST_GPU, Knobs, Machines, Records
from gputwin.simulation.policy import placement


@placement(
    "best-fit",
    "the node left with least free CPU and GPU",
    source="Weng et al., ATC'23, section 6.1 (BestFit); whole points, as published",
)
def score(machines: Machines, requests: Records, r: int, n: int, knobs: Knobs) -> float:
    """Return 100 minus half the CPU and half the GPU left, in % of the largest node's."""
    cpu = (machines.nodes[n].cpu_free - requests[r].cpu) / knobs.numbers[LARGEST_CPU]
    gpu = (machines.nodes[n].gpu_free - requests[r].gpu_count * requests[r].gpu_milli) / knobs.numbers[LARGEST_GPU]
    return float(int(100.0 * (1.0 - 0.5 * cpu - 0.5 * gpu)))
