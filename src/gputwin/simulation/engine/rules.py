"""What the loop is handed where a scenario has no rule for a question."""

from __future__ import annotations

import numpy as np

from gputwin.simulation.engine.state.records import Floats, Knobs, Machines, Records
from gputwin.simulation.engine.state.tenants import Tenants


def never(jobs: Records, j: int, now: float, knobs: Knobs) -> float:
    """Return infinity: a time that does not come, a claim on nobody."""
    return np.inf


def no_turn(tenants: Tenants, t: int, now: float) -> float:
    """Return 0: tenants take no turns."""
    return 0.0


def no_gate(tenants: Tenants, t: int, s: int) -> bool:
    """Return that nobody is held back."""
    return True


def no_neighbours(
    jobs: Records,
    shapes: Records,
    slots: Records,
    machines: Machines,
    requests: Records,
    speeds: Floats,
    knobs: Knobs,
    j: int,
) -> float:
    """Return the factor of a job that no neighbour slows."""
    return 1.0


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
