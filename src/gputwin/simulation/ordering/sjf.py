"""Shortest job first."""

from __future__ import annotations

from gputwin.simulation.engine.state.records import Knobs, Records
from gputwin.simulation.policy import ordering


@ordering("sjf", "shortest predicted duration first", source="Conway, Maxwell and Miller, Theory of Scheduling, 1967")
def key(jobs: Records, j: int, now: float, knobs: Knobs) -> float:
    """Return the predicted duration, s."""
    return jobs[j].predicted
