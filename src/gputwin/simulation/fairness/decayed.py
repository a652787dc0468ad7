"""Decayed-usage fair share: who has used least of its due lately goes next.

Kay and Lauder, A Fair Share Scheduler, CACM 1988; as in Slurm, usage fades with a half-life.
"""

from __future__ import annotations

import math

LN2 = math.log(2.0)


def usage_at(usage: float, since: float, rate: float, now: float, half_life: float) -> float:
    """Return the decayed usage at `now` (resource-seconds) of who held `rate` since `since`; written for compiled code."""
    elapsed = now - since
    if half_life <= 0.0:
        return usage + rate * elapsed
    faded = math.exp(-LN2 * elapsed / half_life)
    return usage * faded + rate * half_life / LN2 * (1.0 - faded)


def usage_key(usage: float, since: float, rate: float, now: float, half_life: float, weight: float) -> float:
    """Return the tenant's decayed usage per weight: the lowest goes next."""
    return usage_at(usage, since, rate, now, half_life) / weight
