"""Most throughput, plain or for its price, with deadlines."""

from __future__ import annotations

import numpy as np

from gputwin.simulation.planning.programs import most_gain
from gputwin.simulation.planning.snapshot import PLANNERS, Plan, PlannerPolicy, Snapshot


def most_throughput(snapshot: Snapshot) -> Plan:
    """Return shares with the largest sum of throughput / price; deadlines are met if all of them can be."""
    gain = snapshot.throughputs / snapshot.prices
    with np.errstate(divide="ignore"):
        least = np.where(np.isfinite(snapshot.deadline_seconds), snapshot.steps_left / snapshot.deadline_seconds, 0.0)
    least = np.where(snapshot.deadline_seconds > 0, least, np.inf)
    plan = most_gain(snapshot, gain, least) if np.isfinite(least).all() else None
    if plan is None:
        plan = most_gain(snapshot, gain, np.zeros_like(least))
    assert plan is not None
    return plan


_SOURCE = "Narayanan et al., OSDI'20, section 4.2"
PLANNERS.add(
    PlannerPolicy(
        "cost",
        "most throughput for its price; deadlines first where they can be met",
        _SOURCE,
        lambda: most_throughput,
    )
)
