"""Finish-time fairness: who is worst off against having 1/N of the cluster to itself goes next.

Mahajan et al., Themis: Fair and Efficient GPU Cluster Scheduling, NSDI 2020: ρ = T_shared / T_independent. ρ ≤ 1 for all
means that sharing cost nobody anything; an offer goes to those with the highest ρ.

In a run T_independent comes from predicted durations (known ones with the prediction `oracle`): the time until the job
would end if its tenant had its part of the cluster, weight / all weights, to itself (`ideal.py`). A tenant's ρ is that of
its next job in order, if it started now.
"""

from __future__ import annotations

import math

import numpy as np

from gputwin.simulation.engine.state.tenants import IDEAL, SUBMIT, WORK, Tenants, last_worked_out
from gputwin.simulation.policy import FAIRNESS, FairnessRule


def rho(elapsed: float, remaining: float, alone: float, tenants: float) -> float:
    """Return the finish-time fairness of a job or tenant.

    `elapsed` since it was submitted, s; `remaining`: time it still needs with what it holds, s (infinite if it holds
    nothing); `alone`: time it would need with the whole cluster to itself; `tenants`: how many share the cluster, so
    that alone × tenants is its time with a 1/N part.
    """
    return (elapsed + remaining) / (alone * tenants)


def rho_key(elapsed: float, work: float, alone: float, tenants: float) -> float:
    """Return the key of who asks for its turn: −ρ if it were served now; the lowest goes next."""
    return -rho(elapsed, work, alone, tenants) if alone > 0.0 else -math.inf


def offered_to(rhos: list[float], fraction: float) -> list[int]:
    """Return to whom free GPUs are offered: the part 1 − `fraction` of tenants with the highest ρ, at least one."""
    order = sorted(range(len(rhos)), key=lambda i: (-rhos[i], i))
    return order[: max(1, math.ceil((1.0 - fraction) * len(rhos)))]


def turn(tenants: Tenants, t: int, now: float) -> float:
    """Return minus the ρ of tenant t's next job, if it started when turns were last worked out."""
    submit = tenants.next[t, SUBMIT]
    elapsed = max(last_worked_out(now, tenants.period[0]) - submit, 0.0)
    alone = tenants.next[t, IDEAL] - submit
    return -(elapsed + tenants.next[t, WORK]) / alone if alone > 0.0 else -np.inf


FAIRNESS.add(
    FairnessRule(
        "themis",
        "the tenant worst off goes next: highest ρ, the time until its next job would end over that on its own part of "
        "the cluster, both by predicted durations; worked out every `period` s (0: at each pass)",
        turn=turn,
        source="Mahajan et al., Themis: Fair and Efficient GPU Cluster Scheduling, NSDI'20, section 3",
        parameters={"period": 60.0},
        at_least={"period": 0.0},
        drifts=True,
        turns_by="next-job",
    )
)
