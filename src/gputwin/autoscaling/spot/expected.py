"""What work on spot nodes is expected to cost, with a constant hazard or one that changes, and how often to save it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gputwin.autoscaling.spot.hazard import Floats, Hazard, Series
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

    def expected_cost_over_time(
        self,
        hazard: Hazard,
        interval_seconds: float,
        start: float = 0.0,
        prices: Series | None = None,
        cells: int = 720,
    ) -> float:
        """Return the expected cost of one node where hazard and price change over time; the work begins at `start`, s.

        The cost to go from each of `cells` moments of the hazard's span, which repeats, solves a linear system: an attempt
        at an interval ends with it, or with a loss, after which a restart and the same interval follow. Lost nodes are
        replaced at once. `prices` are relative to the work's own price and have the same span.
        """
        span = hazard.per_hour.span_seconds
        step = span / cells
        moments: Floats = np.arange(cells, dtype=np.float64) * step
        price = prices or Series(np.zeros(1), np.ones(1), span)
        saves = max(math.ceil(self.work_seconds / interval_seconds * (1 - 1e-12)) - 1, 0)
        last = self.work_seconds - saves * interval_seconds
        to_go = np.zeros(cells)
        for needed in [last, *[interval_seconds + self.save_seconds] * saves]:
            cost, lost, ends = _attempt(hazard, price, moments, self.restart_seconds + needed, step)
            again = np.linalg.solve(np.eye(cells) - lost, cost + ends @ to_go)
            cost, lost, ends = _attempt(hazard, price, moments, needed, step)
            to_go = cost + lost @ again + ends @ to_go
        seconds = float(np.interp(start % span, np.append(moments, span), np.append(to_go, to_go[0])))
        return seconds / HOUR * self.price_per_hour


def _attempt(
    hazard: Hazard, price: Series, moments: Floats, seconds: float, step: float
) -> tuple[Floats, Floats, Floats]:
    """Return of an attempt from each moment: its priced seconds, and where a loss and its end lead (a row per moment)."""
    cells = moments.size
    rows = np.arange(cells)
    lost, ends = np.zeros((cells, cells)), np.zeros((cells, cells))
    priced = np.zeros(cells)
    edges = np.append(np.arange(0.0, seconds, step), seconds)
    for a, b in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        before = np.exp(-hazard.expected_losses(moments, moments + a))
        after = np.exp(-hazard.expected_losses(moments, moments + b))
        # A loss within a step comes at its middle.
        paid = price.integral(moments + b) - price.integral(moments + a)
        priced += paid * (before + after) / 2
        _spread(lost, rows, (a + b) / 2 / step, before - after)
    _spread(ends, rows, seconds / step, np.exp(-hazard.expected_losses(moments, moments + seconds)))
    return priced, lost, ends


def _spread(matrix: Floats, rows: np.ndarray, ahead: float, weight: Floats) -> None:
    """Add a weight so many cells ahead of each row, shared by the two cells around."""
    whole = math.floor(ahead)
    share = ahead - whole
    for cell, part in ((whole, 1 - share), (whole + 1, share)):
        np.add.at(matrix, (rows, (rows + cell) % rows.size), weight * part)
