"""The parts of a scenario as the engine takes them."""

from __future__ import annotations

import math

from gputwin.core.errors import UserError
from gputwin.simulation.checkpointing import CheckpointCosts, interval
from gputwin.simulation.elasticity.sizes import SHRINK
from gputwin.simulation.elasticity.workers import ElasticPlan
from gputwin.simulation.faults.presets import preset_named
from gputwin.simulation.interruptions import Elasticity, Faults, Fleet, Maintenance
from gputwin.simulation.planning.drive import Planning
from gputwin.simulation.power.caps import PowerCaps
from gputwin.simulation.scenario_parts import (
    NO_RULE,
    CheckpointSpec,
    ElasticitySpec,
    FairnessSpec,
    FaultSpec,
    PlannerSpec,
    PowerSpec,
    TenantSpec,
)
from gputwin.simulation.tenants import Fairness, Terms


def _or_infinity(value: float | None) -> float:
    return math.inf if value is None else value


def _terms(spec: TenantSpec) -> Terms:
    weights: dict[str, float] = dict(spec.weights.items())
    return Terms(spec.weight, spec.gpus, weights, spec.group, spec.guaranteed)


def fairness_of(spec: FairnessSpec) -> Fairness:
    """Return the rule of fairness and its terms as the engine takes them."""
    terms = {name: _terms(tenant) for name, tenant in spec.tenants.items()}
    rule = "" if spec.policy.name == NO_RULE else spec.policy.name
    return Fairness(rule, spec.policy.parameters, terms, dict(spec.groups), spec.queues, spec.default_queue)


def checkpoint_interval(spec: CheckpointSpec, faults: FaultSpec | None) -> float:
    """Return the work between two checkpoints, s: as given, or by the rule."""
    if spec.rule == "fixed":
        return _or_infinity(spec.interval_seconds)
    if spec.interval_seconds is not None:
        raise UserError(f"checkpoints have an interval and the rule '{spec.rule}'; give one of them")
    mtbf = None if faults is None else _mtbf(faults)
    if mtbf is None or not spec.save_seconds:
        raise UserError(f"the checkpoint rule '{spec.rule}' needs a time to save and a mean time between failures")
    return interval(spec.rule, CheckpointCosts(spec.save_seconds, spec.restart_seconds, mtbf))


def _mtbf(spec: FaultSpec) -> float | None:
    """Return the mean time between failures of a node by itself, s: as given, or of the preset."""
    if spec.preset is None:
        return spec.mtbf_seconds
    if spec.mtbf_seconds is not None:
        raise UserError(f"faults have an mtbf_seconds and the preset '{spec.preset}'; give one of them")
    return preset_named(spec.preset).mtbf_seconds


def planning_of(spec: PlannerSpec) -> Planning:
    """Return the planner and its rounds as the engine takes them."""
    return Planning(spec.policy, spec.round_seconds, spec.least_replan_seconds)


def shrinking_of(spec: ElasticitySpec | None) -> Elasticity | None:
    """Return how running jobs are shrunk, as the engine takes it; None where they are not."""
    if spec is None or spec.policy != SHRINK or spec.scaling_exponent is None:
        return None
    return Elasticity(spec.least_share, spec.scaling_exponent)


def elastic_plan_of(spec: ElasticitySpec | None) -> ElasticPlan | None:
    """Return the policy that says at rounds how many GPUs each job has; None where there is none."""
    if spec is None or spec.policy == SHRINK:
        return None
    return ElasticPlan(spec.policy, spec.round_seconds, spec.least_gpus, spec.most_gpus, spec.scaling_exponent)


def caps_of(spec: PowerSpec | None) -> PowerCaps | None:
    """Return the power caps of nodes and racks as the engine takes them; None where there are none."""
    if spec is None or (spec.node_watts is None and spec.rack_watts is None):
        return None
    watts = _or_infinity(spec.node_watts), _or_infinity(spec.rack_watts)
    return PowerCaps(*watts, limits=dict(spec.limits), waits=spec.over_cap == "wait")


def faults_of(spec: FaultSpec) -> Faults:
    """Return failures, repairs and maintenance as the engine takes them."""
    windows = tuple(
        Maintenance(w.node, _or_infinity(w.drain_time), w.down_time, _or_infinity(w.up_time)) for w in spec.maintenance
    )
    fleet = Fleet(
        _or_infinity(spec.gpu_mtbf_seconds),
        _or_infinity(spec.rack_mtbf_seconds),
        spec.rack_repair_seconds,
        spec.log or "",
        _or_infinity(spec.maintenance_period_seconds),
        spec.maintenance_seconds,
        spec.maintenance_notice_seconds,
    )
    drawn = (spec.gpu_mtbf_seconds, spec.rack_mtbf_seconds, spec.log, spec.maintenance_period_seconds)
    return Faults(
        _or_infinity(_mtbf(spec)),
        spec.shape,
        spec.repair_seconds,
        spec.repair,
        spec.repair_sigma,
        windows,
        spec.repair_shape,
        fleet if any(part is not None for part in drawn) else None,
    )
