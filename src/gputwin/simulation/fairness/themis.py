"""Finish-time fairness: who is worst off against having 1/N of the cluster to itself goes next.

Mahajan et al., Themis: Fair and Efficient GPU Cluster Scheduling, NSDI 2020: ρ = T_shared / T_independent. ρ ≤ 1 for all
means that sharing cost nobody anything; an offer goes to those with the highest ρ.
"""

from __future__ import annotations

import math


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
