"""What the loop is handed where a scenario has no rule for a question."""

from __future__ import annotations

import numpy as np

from gputwin.simulation.engine.state.records import Floats, Knobs, Machines, Records


def never(jobs: Records, j: int, now: float, knobs: Knobs) -> float:
    """Return infinity: a time that does not come, a claim on nobody."""
    return np.inf


def full_speed(
    jobs: Records,
    shapes: Records,
    slots: Records,
    machines: Machines,
    requests: Records,
    speeds: Floats,
    knobs: Knobs,
    j: int,
) -> tuple[float, float, float]:
    """Return the factors of a job that nothing slows."""
    return 1.0, 1.0, 1.0
