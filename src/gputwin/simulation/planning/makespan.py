"""Least makespan: all active jobs end as early as they can together."""

from __future__ import annotations

from gputwin.simulation.planning.programs import raise_levels
from gputwin.simulation.planning.snapshot import PLANNERS, Plan, PlannerPolicy, Snapshot


def least_makespan(snapshot: Snapshot) -> Plan:
    """Return shares under which the last of the active jobs ends as early as possible (1 / T is a level: one LP)."""
    return raise_levels(snapshot, snapshot.steps_left)[0]


PLANNERS.add(
    PlannerPolicy(
        "makespan",
        "the last of the active jobs ends as early as possible",
        "Narayanan et al., OSDI'20, section 4.2",
        lambda: least_makespan,
    )
)
