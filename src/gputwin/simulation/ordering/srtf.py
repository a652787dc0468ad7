"""Shortest remaining time first."""

from __future__ import annotations

from gputwin.simulation.engine.state import Knobs, Records
from gputwin.simulation.policy import ordering


@ordering(
    "srtf", "shortest remaining predicted time first", source="Schrage, 1968; same as sjf until jobs are preempted"
)
def key(jobs: Records, j: int, now: float, knobs: Knobs) -> float:
    """Return the predicted time still to run, s."""
    return jobs[j].predicted - jobs[j].attained
