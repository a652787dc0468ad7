"""Who submits: groups of jobs that repeat one another, heavy-tailed in size, and users heavy-tailed in share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gputwin.traces.synthetic.distributions import Floats, Ints, normal_quantile


@dataclass(frozen=True)
class Recurrence:
    """Sizes of groups follow a Pareto law with this exponent.

    It is cut at a share of all jobs, or at a size where that is more: short traces repeat themselves too.
    """

    exponent: float
    largest_share: float
    largest_size: int

    def sizes(self, rng: np.random.Generator, jobs: int) -> Ints:
        """Return jobs per group, in random order, adding up to `jobs`.

        Sizes are taken at even steps of the law, so that two seeds differ in order, not in how much recurs.
        """
        largest = max(round(self.largest_share * jobs), min(self.largest_size, jobs // 3), 1)
        rows = jobs // 2 + 8
        while True:
            u = (np.arange(rows) + rng.random(rows)) / rows
            sizes = ((1.0 - u * (1.0 - largest**-self.exponent)) ** (-1.0 / self.exponent)).astype(np.int64)
            filled = np.cumsum(rng.permutation(sizes))
            if filled[-1] >= jobs:
                break
            rows *= 2
        filled = np.append(filled[: np.searchsorted(filled, jobs)], jobs)
        return np.diff(filled, prepend=0)


def lognormal_shares(members: int, sigma: float) -> Floats:
    """Return cumulative shares of `members` whose sizes are log-normal, largest first."""
    u = (np.arange(members) + 0.5) / members
    cumulative = np.cumsum(np.exp(-sigma * normal_quantile(u)))
    shares: Floats = cumulative / cumulative[-1]
    return shares
