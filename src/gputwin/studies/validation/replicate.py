"""Independent replications of a simulated model, and theory judged by their interval."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from gputwin.core.rng import stream

CONFIDENCE = 0.999
REPLICATIONS = 12
WARM_UP = 0.1
ENGINE, OWN = "engine", "independent"


@dataclass(frozen=True)
class Sample:
    """Figures of one replication, and the load it happened to draw beyond the one meant (0 where that is no help)."""

    figures: Mapping[str, float]
    excess_load: float = 0.0


@dataclass(frozen=True)
class Case:
    """A model, what it says of each figure, and a simulation of it.

    `tolerance` is the documented relative error of an approximation; None for exact models.
    """

    model: str
    setting: str
    theory: Mapping[str, float]
    simulate: Callable[[np.random.Generator], Sample]
    simulator: str = ENGINE
    tolerance: float | None = None
    replications: int = REPLICATIONS


@dataclass(frozen=True)
class Row:
    """One figure of one model: theory, simulation with its 99.9 % half width, and whether they agree."""

    model: str
    setting: str
    figure: str
    simulator: str
    theory: float
    simulation: float
    half_width: float
    tolerance: float | None

    @property
    def error(self) -> float:
        """Return theory over simulation, minus 1."""
        return self.theory / self.simulation - 1 if self.simulation else 0.0

    @property
    def agrees(self) -> bool:
        """True where the difference is within the interval, or the approximation's documented error beyond it."""
        allowed = self.half_width + (self.tolerance or 0.0) * abs(self.simulation)
        return abs(self.theory - self.simulation) <= allowed


def settle(case: Case, seed: int = 0) -> list[Row]:
    """Return a row per figure of the case.

    Means are read off the regression on the load drawn, at the load meant: a control variate (Lavenberg and Welch, "A
    Perspective on the Use of Control Variables", 1981). The interval is Student's.
    """
    from scipy import stats

    samples = [case.simulate(stream(seed, "validation", case.model, case.setting, k)) for k in range(case.replications)]
    excess = np.array([s.excess_load for s in samples])
    rows = []
    for figure, theory in case.theory.items():
        values = np.array([s.figures[figure] for s in samples])
        if np.ptp(excess) > 0:
            line = stats.linregress(excess, values)
            mean, error, freedom = line.intercept, line.intercept_stderr, values.size - 2
        else:
            mean, error, freedom = values.mean(), values.std(ddof=1) / np.sqrt(values.size), values.size - 1
        half_width = float(stats.t.ppf((1 + CONFIDENCE) / 2, freedom) * error)
        rows.append(
            Row(case.model, case.setting, figure, case.simulator, theory, float(mean), half_width, case.tolerance)
        )
    return rows
