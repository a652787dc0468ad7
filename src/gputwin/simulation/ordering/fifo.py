"""First in, first out."""

from __future__ import annotations

from gputwin.simulation.engine.state import Jobs, Knobs
from gputwin.simulation.policy import ordering


@ordering("fifo", "in order of submission")
def key(jobs: Jobs, j: int, now: float, knobs: Knobs) -> float:
    """Return the submit time, s."""
    return jobs.submit[j]
