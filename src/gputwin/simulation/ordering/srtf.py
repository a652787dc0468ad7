"""Shortest remaining time first."""

from __future__ import annotations

from gputwin.simulation.engine.state.records import Knobs, Records
from gputwin.simulation.policy import ordering


@ordering(
    "srtf",
    "least predicted work left first; a job may take the place of one that is believed to end later",
    source="Schrage, A Proof of the Optimality of the Shortest Remaining Processing Time Discipline, 1968",
    preemption="remaining-time",
)
def key(jobs: Records, j: int, now: float, knobs: Knobs) -> float:
    """Return the predicted work left, s at full speed."""
    return max(jobs[j].predicted - jobs[j].done, 0.0)
