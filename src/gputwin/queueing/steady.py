"""What a queue in steady state is described by, and the error where there is none."""

from __future__ import annotations

import math
from dataclasses import dataclass

from gputwin.core.errors import UserError


class UnstableError(UserError):
    """More work arrives than can be done: the queue grows without end and no steady state exists."""


def check_positive(**values: float) -> None:
    """Raise a UserError naming the first value that is not a positive, finite number."""
    for name, value in values.items():
        if not (math.isfinite(value) and value > 0):
            raise UserError(f"{name.replace('_', ' ')} must be a positive number, not {value:g}")


def check_stable(load: float, servers: float) -> None:
    """Raise UnstableError unless `load` erlangs are less than there are servers."""
    if load >= servers:
        raise UnstableError(
            f"the load is {load / servers:.3g} times what the {servers:,.4g} servers can do: "
            "the queue grows without end and has no steady state"
        )


@dataclass(frozen=True)
class Waiting:
    """How long arrivals wait in steady state.

    The wait of those who wait is taken as exponential: exact for M/M/c in order of arrival, else an approximation that
    heavy traffic makes exact (Kingman, 1962; Köllerström, 1974).
    """

    servers: float
    arrival_rate: float
    utilisation: float
    probability: float
    """Share of arrivals that wait at all."""
    mean: float
    """s, over all arrivals."""

    @property
    def queue_length(self) -> float:
        """Return the mean number waiting (Little, 1961)."""
        return self.arrival_rate * self.mean

    @property
    def mean_of_waiting(self) -> float:
        """Return the mean wait of those who wait, s."""
        return self.mean / self.probability if self.probability > 0 else 0.0

    def exceeds(self, seconds: float) -> float:
        """Return the share of arrivals that wait longer than `seconds`."""
        if seconds < 0:
            return 1.0
        return self.probability * math.exp(-seconds / self.mean_of_waiting) if self.mean > 0 else 0.0

    def quantile(self, share: float) -> float:
        """Return the wait that `share` of arrivals do not exceed, s."""
        if not 0 <= share < 1:
            raise UserError(f"a quantile must be at least 0 and below 1, not {share:g}")
        if self.probability <= 1 - share:
            return 0.0
        return self.mean_of_waiting * math.log(self.probability / (1 - share))
