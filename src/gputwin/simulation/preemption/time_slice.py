"""Who has run for its slice yields to who waits."""

from __future__ import annotations

import numpy as np

from gputwin.simulation.engine.state.records import Knobs, Records
from gputwin.simulation.policy import preemption

OVER = 1e11
"""s between the ranks of jobs whose slice is over and all others: more than any trace lasts."""


def claim(jobs: Records, j: int, now: float, knobs: Knobs) -> float:
    """Return a rank between the two."""
    return OVER / 2


def crossing(jobs: Records, j: int, now: float, knobs: Knobs) -> float:
    """Return when the slice of job j is over, s."""
    end = jobs[j].start + knobs.order[0]
    return end if end > now else np.inf


@preemption(
    "time-slice",
    "a job may take the place of those whose slice is over, the one that started first goes first",
    source="Xiao et al., Gandiva, OSDI'18, section 3.1",
    claim=claim,
    crossing=crossing,
)
def rank(jobs: Records, j: int, now: float, knobs: Knobs) -> float:
    """Return how long ago the running job j started, s, far more once its slice is over."""
    over = now >= jobs[j].start + knobs.order[0]
    return OVER - jobs[j].start if over else -jobs[j].start
