"""Worst fit."""

from __future__ import annotations

from gputwin.simulation.engine.fit.devices import emptiest
from gputwin.simulation.engine.state.records import LARGEST_CPU, LARGEST_GPU, Knobs, Machines, Records
from gputwin.simulation.policy import placement


@placement("worst-fit", "the node left with most free GPU, then CPU", source="Johnson, 1973", devices=emptiest)
def score(machines: Machines, requests: Records, r: int, n: int, knobs: Knobs) -> float:
    """Return the free GPU share of the node in % of the largest node's, CPU deciding between equals."""
    return (
        machines.nodes[n].gpu_free / knobs.numbers[LARGEST_GPU]
        + 1e-6 * machines.nodes[n].cpu_free / knobs.numbers[LARGEST_CPU]
    )
