"""Usage that decays with a half-life: what was used one half-life ago counts half."""

from __future__ import annotations

import math


def decay(elapsed: float, half_life: float) -> float:
    """Return the factor by which usage has faded after `elapsed` seconds; 1 without a half-life (0 s)."""
    return 0.5 ** (elapsed / half_life) if half_life > 0 else 1.0


def decayed_sum(usage: float, rate: float, elapsed: float, half_life: float) -> float:
    """Return decayed usage `elapsed` seconds later while `rate` (per s) is in use: ∫ rate · 2^(−age/half-life) d age.

    Exact for a constant rate, so that no period of calculation is needed (Slurm's PriorityCalcPeriod → 0).
    """
    if half_life <= 0:
        return usage + rate * elapsed
    faded = decay(elapsed, half_life)
    return usage * faded + rate * half_life / math.log(2.0) * (1.0 - faded)


def decayed_mean(mean: float, level: float, elapsed: float, half_life: float) -> float:
    """Return the decayed mean of what is in use, `elapsed` seconds later at a constant `level`.

    consumed × (1 − a) + level × a with a = 1 − 2^(−elapsed/half-life): Kueue's admission fair sharing.
    """
    kept = decay(elapsed, half_life)
    return mean * kept + level * (1.0 - kept)
