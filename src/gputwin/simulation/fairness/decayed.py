"""Decayed-usage fair share: who has used least of its due lately goes next.

Kay and Lauder, A Fair Share Scheduler, CACM 1988; as in Slurm, usage fades with a half-life.
"""

from __future__ import annotations

from gputwin.core.units import WEEK
from gputwin.simulation.engine.state.tenants import GPU, Tenants, last_worked_out, usage_at, usage_when
from gputwin.simulation.policy import FAIRNESS, FairnessRule


def usage_key(usage: float, since: float, rate: float, now: float, half_life: float, weight: float) -> float:
    """Return the tenant's decayed usage per weight: the lowest goes next."""
    return usage_at(usage, since, rate, now, half_life) / weight


def turn(tenants: Tenants, t: int, now: float) -> float:
    """Return tenant t's decayed usage per weight."""
    return usage_when(tenants, t, last_worked_out(now, tenants.period[0])) / tenants.weights[t, GPU]


FAIRNESS.add(
    FairnessRule(
        "fair-share",
        "the tenant that has used least lately goes next: parts of the cluster × seconds, halved every `half_life` s "
        "(0: never forgotten), over its weight; worked out every `period` s (0: at each pass)",
        turn=turn,
        source="Kay and Lauder, A Fair Share Scheduler, CACM 31(1), 1988; Slurm's half-life and period of calculation",
        parameters={"half_life": WEEK, "period": 300.0},
        at_least={"half_life": 0.0, "period": 0.0},
        drifts=True,
    )
)
