"""Priority with aging."""

from __future__ import annotations

import math

from gputwin.simulation.engine.state.records import Knobs, Records
from gputwin.simulation.policy import ordering, positions

PARAMETERS = {"aging": 0.001, "max_wait": math.inf}
AT = positions(PARAMETERS)


@ordering(
    "priority",
    "highest base priority + aging × wait first; whoever has waited `max_wait` seconds goes before all others, with a "
    "reservation",
    source="Silberschatz, Galvin and Gagne, Operating System Concepts, section 5.3.3 (aging)",
    parameters=PARAMETERS,
    at_least={"aging": 0.0, "max_wait": 0.0},
)
def key(jobs: Records, j: int, now: float, knobs: Knobs) -> float:
    """Return minus the priority at time zero of a line that rises by `aging` a second: the order never changes."""
    return knobs.order[AT.aging] * jobs[j].submit - jobs[j].priority
