"""The linear programs that share GPUs of several models among jobs, and the equations of a step towards their optimum.

The equations are eliminated job by job, so that a step takes time linear in the number of jobs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gputwin.simulation.planning.products import Floats, crossed, solve_small, weighted_rows


@dataclass(frozen=True)
class SharingProgram:
    """Maximise `level_gain` · t + Σ gain · x over shares of time x ≥ 0 (jobs × GPU models) and a level t.

    Subject to, for each job i, Σ_j rate[i, j] x[i, j] ≥ level[i] t + least[i], and Σ_j x[i, j] ≤ 1; for each model j,
    Σ_i gpus[i] x[i, j] ≤ capacity[j]. Each job needs a positive rate somewhere.
    """

    rate: Floats
    level: Floats
    least: Floats
    gpus: Floats
    capacity: Floats
    gain: Floats
    level_gain: float


@dataclass(frozen=True)
class Solution:
    """Shares of time, the level reached, and whether the method converged."""

    shares: Floats
    level: float
    converged: bool


class Elimination:
    """Solves A D Aᵀ y − level · τ = r and −levelᵀ y = s; rows of A: rate and time of each job, GPUs of each model.

    D is a weight for each unknown: shares of time, surplus of rate, unused time, unused GPUs.
    """

    def __init__(self, program: SharingProgram) -> None:
        self.p = program
        self.gpus = program.gpus[:, None]
        self.has_level = bool(program.level.any())
        self.apart = program.rate[:, :, None] - program.rate[:, None, :]

    def factor(self, share: Floats, surplus: Floats, time: Floats, gpus: Floats, damping: float = 0.0) -> None:
        """Eliminate each job's two rows for these weights; what remains couples the models and the level."""
        self.total = share.sum(axis=1) + time
        self.mean = (self.p.rate * share).sum(axis=1) / self.total
        # Differences of rates to their mean without cancellation, also where a job runs on one model only.
        apart = (self.apart * share[:, None, :]).sum(axis=2) + self.p.rate * time[:, None]
        apart /= self.total[:, None]
        self.pivot = (share * apart * apart).sum(axis=1) + time * self.mean * self.mean + surplus
        held = share * self.gpus
        self.above = np.concatenate([held * apart, -self.p.level[:, None]], axis=1)
        self.below = np.concatenate([held, np.zeros((len(held), 1))], axis=1)
        rest = -(
            crossed(self.above, self.above / self.pivot[:, None])
            + crossed(self.below, self.below / self.total[:, None])
        )
        index = np.arange(held.shape[1])
        rest[index, index] += (1.0 + damping) * (self.gpus * held).sum(axis=0) + gpus
        if not self.has_level:
            rest[-1, -1] = -1.0
        self.rest = rest

    def solve(self, rate: Floats, time: Floats, gpus: Floats, level: float) -> tuple[Floats, Floats, Floats, float]:
        """Return y, by its parts of rate, time and GPUs, and τ."""
        rate = (rate - self.mean * time) / self.pivot
        time = time / self.total
        right = np.append(gpus, level) - weighted_rows(self.above, rate) - weighted_rows(self.below, time)
        border = solve_small(self.rest, right)
        rate = rate - (self.above * border).sum(axis=1) / self.pivot
        time = time - (self.below * border).sum(axis=1) / self.total - self.mean * rate
        return rate, time, border[:-1], float(border[-1])
