"""Smallest GPU time first."""

from __future__ import annotations

from gputwin.simulation.engine.state.records import Knobs, Records
from gputwin.simulation.policy import ordering


@ordering(
    "gpu-time",
    "smallest predicted duration × GPUs first",
    source="Hu et al., Characterization and Prediction of Deep Learning Workloads (Helios, QSSF), SC'21, section 4.2",
)
def key(jobs: Records, j: int, now: float, knobs: Knobs) -> float:
    """Return the predicted GPU-seconds; jobs without GPUs count as a thousandth of one."""
    return jobs[j].predicted * max(jobs[j].gpu_milli, 1.0) / 1000.0
