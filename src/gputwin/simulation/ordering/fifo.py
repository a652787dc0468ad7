"""First in, first out."""

from __future__ import annotations

from gputwin.simulation.engine.state.records import Knobs, Records
from gputwin.simulation.policy import ordering


@ordering("fifo", "in order of submission")
def key(jobs: Records, j: int, now: float, knobs: Knobs) -> float:
    """Return the submit time, s."""
    return jobs[j].submit
