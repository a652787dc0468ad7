"""Least attained service."""

from __future__ import annotations

from gputwin.simulation.engine.state import Knobs, Records
from gputwin.simulation.policy import ordering


@ordering(
    "las",
    "least GPU time received first",
    source="Gu et al., Tiresias, NSDI'19, section 3.2 (2D-LAS); same as fifo until jobs are preempted",
)
def key(jobs: Records, j: int, now: float, knobs: Knobs) -> float:
    """Return the GPU-seconds received so far."""
    return jobs[j].attained * jobs[j].gpu_milli / 1000.0
