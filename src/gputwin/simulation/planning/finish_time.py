"""Finish-time fairness: the worst ratio of a job's finish to that on its own 1/n of the cluster is as small as can be."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gputwin.simulation.planning.programs import raise_levels
from gputwin.simulation.planning.shares import isolated_shares
from gputwin.simulation.planning.snapshot import PLANNERS, Floats, Plan, PlannerPolicy, Snapshot

PRECISION = 1e-6
"""Relative error of the ratio at which the search stops."""


class FinishTimeFairness:
    """Plans, and remembers how long each job's work so far would have taken on 1/n of the cluster."""

    def __init__(self) -> None:
        self.alone_seconds: dict[int, float] = {}
        self.last: dict[int, tuple[float, float]] = {}

    def __call__(self, snapshot: Snapshot) -> Plan:
        """Return shares with the least worst ratio."""
        alone = (snapshot.throughputs * isolated_shares(snapshot)).sum(axis=1)
        before = np.array(
            [self._before(int(i), left) for i, left in zip(snapshot.ids, snapshot.steps_left, strict=True)]
        )
        self.last = {
            int(i): (left, rate) for i, left, rate in zip(snapshot.ids, snapshot.steps_left, alone, strict=True)
        }
        self.alone_seconds = {int(i): b for i, b in zip(snapshot.ids, before, strict=True)}
        with np.errstate(divide="ignore"):
            own = before + np.where(alone > 0, snapshot.steps_left / alone, np.inf)
        return fairest(snapshot, own)[0]

    def _before(self, job: int, steps_left: float) -> float:
        so_far = self.alone_seconds.get(job, 0.0)
        if job in self.last:
            left, rate = self.last[job]
            so_far += (left - steps_left) / rate if rate > 0 else 0.0
        return so_far


def fairest(snapshot: Snapshot, own_seconds: Floats) -> tuple[Plan, float]:
    """Return shares that minimise the worst of (elapsed + steps left / throughput) / own_seconds, and that ratio.

    For a ratio ρ a job needs steps / (ρ · own − elapsed) steps a second; one LP says by which factor all can have that
    at once, and Brent's method finds the ρ at which the factor is 1.
    """
    from scipy.optimize import brentq

    elapsed, steps = snapshot.seconds_since_submit, snapshot.steps_left
    counts = snapshot.can_run & np.isfinite(own_seconds) & (own_seconds > 0)
    if not counts.any():
        return Plan.of(np.zeros_like(snapshot.throughputs)), 0.0
    # At its best a job runs alone on its fastest model.
    fastest = np.where(counts, snapshot.throughputs.max(axis=1), 1.0)
    low = float(((elapsed + steps / fastest) / own_seconds)[counts].max()) * (1.0 + PRECISION)

    def planned(ratio: float) -> tuple[Plan, float]:
        need = np.where(counts, steps / np.maximum(ratio * own_seconds - elapsed, 1e-9), 0.0)
        return raise_levels(snapshot, need)

    plan, level = planned(low)
    if level >= 1.0:
        return plan, low
    high = low
    while level < 1.0:
        low, high = high, 2.0 * high
        plan, level = planned(high)
    ratio = float(brentq(lambda r: np.log(planned(r)[1]), low, high, rtol=PRECISION))
    return planned(ratio * (1.0 + PRECISION))[0], ratio


def _without_speed(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with each job as fast everywhere as on its fastest model."""
    best = snapshot.throughputs.max(axis=1, keepdims=True)
    return replace(snapshot, throughputs=np.broadcast_to(best, snapshot.throughputs.shape).copy())


class _Blind:
    """Finish-time fairness over GPU models that count as equal."""

    def __init__(self) -> None:
        self.inner = FinishTimeFairness()

    def __call__(self, snapshot: Snapshot) -> Plan:
        return self.inner(_without_speed(snapshot))


_SOURCE = "Mahajan et al., Themis, NSDI'20; as an LP in Narayanan et al., OSDI'20, section 4.2"
PLANNERS.add(
    PlannerPolicy(
        "finish-time",
        "finish-time fairness over GPU models that count as equal",
        _SOURCE,
        _Blind,
        knows_speed=False,
    )
)
PLANNERS.add(
    PlannerPolicy("finish-time-speed", "finish-time fairness with speeds by GPU model", _SOURCE, FinishTimeFairness)
)
