"""Lower priorities yield where that pays: the work a victim has left, weighed by priority, against what its stop costs."""

from __future__ import annotations

import math

from gputwin.simulation.engine.passes.benefit import LIMIT, MIN_WAIT, WORTH
from gputwin.simulation.engine.state.records import Knobs, Records
from gputwin.simulation.engine.world import BY_BENEFIT
from gputwin.simulation.policy import positions, preemption
from gputwin.simulation.preemption.priority import STEP, claim

PARAMETERS = {"worth": 1.0, "min_wait": 0.0, "limit": math.inf}
AT = positions(PARAMETERS)
assert (AT.worth, AT.min_wait, AT.limit) == (WORTH, MIN_WAIT, LIMIT)


@preemption(
    "benefit",
    "a job that has waited for `min_wait` s may take the place of jobs of lower priority, the lowest first, if priority "
    "difference × remaining work of the other × `worth` > checkpoint + restart + work lost (s), and its checkpoint takes no "
    "longer than `limit` s",
    claim=claim,
    apart="priority",
    orders=("priority:aging=0",),
    parameters=PARAMETERS,
    at_least={"worth": 0.0, "min_wait": 0.0, "limit": 0.0},
    victims=BY_BENEFIT,
)
def rank(jobs: Records, j: int, now: float, knobs: Knobs) -> float:
    """Return the start of the running job j, behind all of higher priority, s."""
    return jobs[j].start - jobs[j].priority * STEP
