"""Lower priorities yield to higher ones."""

from __future__ import annotations

from gputwin.simulation.engine.state.records import Knobs, Records
from gputwin.simulation.policy import preemption

STEP = 1e11
"""s between the ranks of two priorities: more than any trace lasts."""


def claim(jobs: Records, j: int, now: float, knobs: Knobs) -> float:
    """Return a rank between job j's own priority and the next lower one."""
    return (0.5 - jobs[j].priority) * STEP


@preemption(
    "priority",
    "a job may take the place of jobs of lower priority, the lowest first, among equals the one that started last",
    claim=claim,
    apart="priority",
    orders=("priority:aging=0",),
)
def rank(jobs: Records, j: int, now: float, knobs: Knobs) -> float:
    """Return the start of the running job j, behind all of higher priority, s."""
    return jobs[j].start - jobs[j].priority * STEP
