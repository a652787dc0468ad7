"""Water filling: after the worst-off jobs are as well off as can be, the next worst-off are raised, and so on."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from gputwin.simulation.planning.programs import raise_levels
from gputwin.simulation.planning.shares import proportional_throughputs
from gputwin.simulation.planning.snapshot import PLANNERS, Floats, Plan, PlannerPolicy, Snapshot

Weights = Callable[[Snapshot, npt.NDArray[np.bool_]], Floats]
"""Weight of each job, given which jobs can still be raised; 0: not raised for now."""
TIGHT = 1e-5
"""A job is saturated if its throughput exceeds the level by less than this share of it."""
SLACK = 1e-6
"""Share of what jobs have reached that rounding may take from them again, so that a plan exists."""
NOTHING = 1e-6
"""A share of time this small is none."""


def water_fill(snapshot: Snapshot, weights: Weights) -> Plan:
    """Return shares after raising all open jobs together, round by round, until none can be raised.

    The solver ends in the middle of all optima, where every job that could have more than the level has more: those that
    have not are saturated, and no mixed-integer program is needed to find them.
    """
    norm = proportional_throughputs(snapshot) / snapshot.gpus
    is_open = snapshot.can_run.copy()
    reached, kept = np.zeros(len(snapshot.ids)), np.zeros(len(snapshot.ids))
    plan = Plan.of(np.zeros_like(snapshot.throughputs))
    while is_open.any():
        weight = np.where(is_open, weights(snapshot, is_open), 0.0)
        raised = weight > 0
        if not raised.any():
            break
        plan, level = raise_levels(snapshot, weight * norm, kept * norm)
        plan, level = _within(snapshot, plan), max(level, 0.0)
        target = reached + level * weight
        with np.errstate(divide="ignore", invalid="ignore"):
            got = plan.throughputs(snapshot) / norm
            surplus = np.where(raised, (got - target) / np.maximum(target, 1e-12), np.inf)
        reached = np.where(raised, target, reached)
        # No more than this plan gives, so that the next round has a plan at all.
        kept = np.minimum(reached * (1.0 - SLACK), got)
        is_saturated = raised & (surplus <= max(TIGHT, 1.001 * float(surplus.min())))
        is_open &= ~is_saturated & ~_gets_nothing(snapshot, plan, is_saturated)
    return plan


def _within(snapshot: Snapshot, plan: Plan) -> Plan:
    """Return the plan without what rounding has given beyond the time of jobs and the GPUs there are."""
    held = (plan.alone * snapshot.gpus[:, None]).sum(axis=0)
    there = snapshot.capacity > 0
    beyond = max((held[there] / snapshot.capacity[there]).max(initial=1.0), plan.alone.sum(axis=1).max(initial=1.0))
    return Plan.of(plan.alone / beyond)


def _gets_nothing(snapshot: Snapshot, plan: Plan, is_saturated: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return the jobs that run only where a saturated job that got nothing could run too: no GPU is left there."""
    without = is_saturated & (plan.alone.sum(axis=1) <= NOTHING)
    is_full = (snapshot.throughputs[without] > 0).any(axis=0)
    nowhere: npt.NDArray[np.bool_] = ~np.any(snapshot.throughputs[:, ~is_full] > 0, axis=1)
    return nowhere


def by_weight(snapshot: Snapshot, is_open: npt.NDArray[np.bool_]) -> Floats:
    """Return the jobs' own weights."""
    return snapshot.weights


def fair_within_entities(snapshot: Snapshot, is_open: npt.NDArray[np.bool_]) -> Floats:
    """Return each entity's weight split over its open jobs by their weights."""
    open_weight = np.bincount(snapshot.entity, snapshot.weights * is_open, snapshot.entity_weights.size)
    split: Floats = snapshot.entity_weights[snapshot.entity] * snapshot.weights
    return np.asarray(split / np.maximum(open_weight[snapshot.entity], 1e-300))


def fifo_within_entities(snapshot: Snapshot, is_open: npt.NDArray[np.bool_]) -> Floats:
    """Return each entity's weight for its first open job."""
    weights = np.zeros(len(snapshot.ids))
    for entity in np.unique(snapshot.entity[is_open]):
        members = np.flatnonzero(is_open & (snapshot.entity == entity))
        weights[members[snapshot.ids[members].argmin()]] = snapshot.entity_weights[entity]
    return weights


_SOURCE = "Narayanan et al., OSDI'20, section 4.3 and appendix"
for _name, _text, _rule in (
    ("water-filling", "max-min fairness, then the next worst-off raised, and so on", by_weight),
    ("hierarchical-fair", "water filling over entities, fair within each", fair_within_entities),
    ("hierarchical-fifo", "water filling over entities, first come first served within each", fifo_within_entities),
):
    PLANNERS.add(PlannerPolicy(_name, _text, _SOURCE, lambda rule=_rule: lambda s: water_fill(s, rule)))  # type: ignore[misc]
