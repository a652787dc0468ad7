"""Who is believed to end later yields to who is believed to need less."""

from __future__ import annotations

from gputwin.simulation.engine.state.records import Knobs, Records
from gputwin.simulation.policy import preemption


def claim(jobs: Records, j: int, now: float, knobs: Knobs) -> float:
    """Return when job j would be believed to end if it started now, s."""
    return jobs[j].believed_end


@preemption(
    "remaining-time",
    "a job may take the place of those that are believed to end later than it would, the latest first",
    source="Schrage, 1968",
    claim=claim,
)
def rank(jobs: Records, j: int, now: float, knobs: Knobs) -> float:
    """Return when the running job j is believed to end, s."""
    return jobs[j].believed_end
