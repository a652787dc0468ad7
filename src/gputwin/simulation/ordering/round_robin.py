"""Time slices in turn."""

from __future__ import annotations

from gputwin.simulation.engine.state.records import Knobs, Records
from gputwin.simulation.policy import ordering


@ordering(
    "round-robin",
    "who began to wait first; a job that has run for `quantum` seconds yields to whoever waits",
    source="Xiao et al., Gandiva: Introspective Cluster Scheduling for Deep Learning, OSDI'18, section 3.1",
    parameters={"quantum": 60.0},
    at_least={"quantum": 1e-3},
    preemption="time-slice",
)
def key(jobs: Records, j: int, now: float, knobs: Knobs) -> float:
    """Return when job j began to wait, s."""
    return now
