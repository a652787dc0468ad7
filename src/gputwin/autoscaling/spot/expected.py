"""What work on spot nodes is expected to cost with a constant hazard, and how often to save it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from gputwin.core.errors import UserError
from gputwin.core.units import HOUR
from gputwin.simulation.checkpointing import CheckpointCosts, exact, expected_seconds


@dataclass(frozen=True)
class SpotWork:
    """Work on spot nodes that are taken at random: hazard per hour and node, price per hour and node."""

    work_seconds: float
    hazard_per_hour: float
    price_per_hour: float
    save_seconds: float = 0.0
    restart_seconds: float = 0.0
    nodes: int = 1
    """The job stops when one of them is taken."""

    def __post_init__(self) -> None:
        if not 0 < self.hazard_per_hour < math.inf:
            raise UserError(f"the hazard of a spot node is {self.hazard_per_hour:g} an hour; give more than 0")
        if not self.nodes >= 1:
            raise UserError(f"a job runs on at least one node, not {self.nodes}")

    @property
    def costs(self) -> CheckpointCosts:
        """Return what a checkpoint and a restart cost, and the mean time between losses of a node of the job."""
        between = HOUR / self.hazard_per_hour / self.nodes
        return CheckpointCosts(self.save_seconds, self.restart_seconds, between)

    @property
    def interval_seconds(self) -> float:
        """Return the work between two checkpoints that makes the expected cost least, s; infinite if saving is free."""
        return exact(self.save_seconds, self.costs.mtbf_seconds) if self.save_seconds > 0 else math.inf

    def expected_cost(self, interval_seconds: float | None = None) -> float:
        """Return the expected cost of the nodes while the job holds them, saving after each interval of work."""
        every = self.interval_seconds if interval_seconds is None else interval_seconds
        seconds = expected_seconds(self.work_seconds, min(every, self.work_seconds), self.costs)
        return seconds / HOUR * self.price_per_hour * self.nodes

    def breaks_even_at(self, on_demand_per_hour: float) -> float:
        """Return the spot price per hour below which spot is expected to be cheaper than on demand."""
        on_demand = self.work_seconds / HOUR * on_demand_per_hour * self.nodes
        return on_demand / self.expected_cost() * self.price_per_hour
