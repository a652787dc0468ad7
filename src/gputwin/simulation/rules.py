"""The rules of a run by name, what may change while jobs run, and which of them go together."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from gputwin.core.errors import InputError, UserError
from gputwin.simulation.elasticity.sizes import ELASTIC
from gputwin.simulation.elasticity.workers import ElasticPlan
from gputwin.simulation.engine.fit.devices import emptiest, fullest, mig_slices
from gputwin.simulation.engine.kernel import Rules
from gputwin.simulation.engine.placing.scores import asking
from gputwin.simulation.engine.rules import full_speed, never, no_gate, no_neighbours, no_turn
from gputwin.simulation.engine.state.records import Floats
from gputwin.simulation.interruptions import Checkpoints, Elasticity, Faults, Pool
from gputwin.simulation.locality import Locality
from gputwin.simulation.planning.drive import Planning, check_planning
from gputwin.simulation.policy import (
    BACKFILLS,
    FAIRNESS,
    ORDERINGS,
    PLACEMENTS,
    PREEMPTIONS,
    SPEEDS,
    FairnessRule,
    Ordering,
    Placement,
    Preemption,
    Speed,
)
from gputwin.simulation.policy_parameters import settle
from gputwin.simulation.policy_source import checked
from gputwin.simulation.power.capped_speed import capped_speed
from gputwin.simulation.power.caps import PowerCaps
from gputwin.simulation.shared import GpuSharing
from gputwin.simulation.tenants import Fairness, reclaims


@dataclass(frozen=True)
class Scheduler:
    """The rules of a run: names of registered policies and their parameters. Its defaults are everyone's defaults."""

    order: str = "fifo"
    backfill: str = "greedy"
    placement: str = "first-fit"
    order_parameters: Mapping[str, float] = field(default_factory=dict)
    placement_parameters: Mapping[str, float] = field(default_factory=dict)
    fairness: Fairness | None = None


@dataclass(frozen=True)
class Changes:
    """What may change while jobs run. Nothing by default: then each job has one start and one end."""

    preemption: str = ""
    """Who must yield; the order's own rule where it has one."""
    preemption_parameters: Mapping[str, float] = field(default_factory=dict)
    speed: str = ""
    speeds: Mapping[str, float] = field(default_factory=dict)
    """Work a second by GPU model; 1 where it is not named."""
    speed_parameters: Mapping[str, float] = field(default_factory=dict)
    checkpoints: Checkpoints = field(default_factory=Checkpoints)
    faults: Faults | None = None
    elasticity: Elasticity | None = None
    pool: Pool | None = None
    planning: Planning | None = None
    """A planner says who runs, instead of order and backfill."""
    elastic_plan: ElasticPlan | None = None
    """A policy says how many GPUs each job has, instead of order and backfill."""
    caps: PowerCaps | None = None
    """What nodes and racks may draw."""
    locality: Locality | None = None
    """Gangs wait for a node or a rack for some time before they go anywhere."""
    sharing: GpuSharing | None = None
    """How GPUs are divided; None: jobs hold the shares they ask for, and nobody slows anybody."""

    def any(self) -> bool:
        """Return whether something may change."""
        parts = (self.faults, self.elasticity, self.pool, self.planning, self.elastic_plan, self.locality)
        is_capped = self.caps is not None and not self.caps.waits
        is_slowed = self.sharing is not None and self.sharing.slows
        return bool(self.preemption or self.speed or is_slowed or is_capped or any(part is not None for part in parts))

    @property
    def is_planned(self) -> bool:
        """Return whether who runs is decided at rounds."""
        return self.planning is not None or self.elastic_plan is not None


def check_rules(scheduler: Scheduler, changes: Changes) -> None:
    """Raise a user error where a policy, a parameter or a combination of rules does not exist."""
    order, placement = ORDERINGS.get(scheduler.order), PLACEMENTS.get(scheduler.placement)
    settle(order, scheduler.order_parameters)
    settle(placement, scheduler.placement_parameters)
    if changes.speed:
        settle(SPEEDS.get(changes.speed), changes.speed_parameters)
    if changes.sharing is not None:
        changes.sharing.check()
    changes = settled(changes, order, scheduler.order_parameters, BACKFILLS.get(scheduler.backfill).name)
    check_fairness(scheduler, order, changes)
    rules_of(order, placement, changes, fairness_of(scheduler))


def rules_of(order: Ordering, placement: Placement, changes: Changes, fair: FairnessRule | None) -> Rules:
    """Return the functions of all policies of a run; what a policy must not do is a user error."""
    by = f"order '{order.name}'", f"placement '{placement.name}'"
    rules = Rules(
        order=checked(by[0], order.key),
        promotion=checked(by[0], order.promotion),
        score=asking(checked(by[1], placement.score)),
        devices=_devices(by[1], placement, changes),
        claim=never,
        rank=never,
        crossing=never,
        speed=full_speed,
    )
    if changes.preemption:
        rule, by_rule = PREEMPTIONS.get(changes.preemption), f"preemption '{changes.preemption}'"
        claim, rank, crossing = (checked(by_rule, f) for f in (rule.claim, rule.rank, rule.crossing))
        rules = rules._replace(claim=claim, rank=rank, crossing=crossing)
    if changes.speed:
        rules = rules._replace(speed=checked(f"speed '{changes.speed}'", SPEEDS.get(changes.speed).factors))
    if changes.caps is not None and not changes.caps.waits:
        if changes.speed not in ("", "gpu-model"):
            raise UserError(f"power caps do not go with speed '{changes.speed}'; use gpu-model")
        rules = rules._replace(speed=checked("power caps", capped_speed))
    if changes.sharing is not None and changes.sharing.slows:
        factor = changes.sharing.rule.factor or no_neighbours
        rules = rules._replace(share=checked(f"sharing '{changes.sharing.name}'", factor))
    if fair is not None:
        by_fair = f"fairness '{fair.name}'"
        rules = rules._replace(
            turn=checked(by_fair, fair.turn) if fair.turn else no_turn,
            gate=checked(by_fair, fair.gate) if fair.gate else no_gate,
        )
    return rules


def _devices(by: str, placement: Placement, changes: Changes) -> Callable[..., int]:
    """Return how devices of a node are chosen; where jobs share them whatever they ask for, idle ones go first."""
    if changes.sharing is not None and changes.sharing.cuts:
        return checked(f"sharing '{changes.sharing.name}'", mig_slices)
    divides = changes.sharing is not None and changes.sharing.rule.divides
    return checked(by, placement.devices or (emptiest if divides else fullest))


def fairness_of(scheduler: Scheduler) -> FairnessRule | None:
    """Return the rule of fairness, if there is one."""
    named = scheduler.fairness is not None and scheduler.fairness.name
    return FAIRNESS.get(named) if named else None


def check_fairness(scheduler: Scheduler, order: Ordering, changes: Changes) -> None:
    """Raise a user error where the rule of fairness does not exist or does not go with the others."""
    rule = fairness_of(scheduler)
    if scheduler.fairness is not None:
        _check_terms(scheduler.fairness, rule, order)
    if order.weighs_tenants and scheduler.backfill not in ("strict", "greedy", "easy"):
        raise UserError(f"order '{order.name}' does not go with backfill '{scheduler.backfill}', since its keys change")
    if order.weighs_tenants and changes.is_planned:
        raise UserError(f"order '{order.name}' does not go with a planner, which decides who runs; leave out one")
    if rule is None or scheduler.fairness is None:
        return
    settle(rule, scheduler.fairness.parameters)
    if order.weighs_tenants and "period" in rule.parameters:
        raise UserError(
            f"fairness '{rule.name}' does not go with order '{order.name}', which has periods of its own; use another"
        )
    if changes.is_planned:
        raise UserError(
            f"fairness '{rule.name}' does not go with a planner, which decides whose turn it is; leave out one"
        )
    if scheduler.backfill not in ("strict", "greedy", "easy"):
        raise UserError(
            f"fairness '{rule.name}' does not go with backfill '{scheduler.backfill}'; use strict, greedy or easy"
        )
    if rule.queues and not scheduler.fairness.queues:
        raise UserError(
            f"fairness '{rule.name}' needs the queues: give a YAML file of ClusterQueues and Cohorts (queues)"
        )
    if scheduler.fairness.queues and not rule.queues:
        raise UserError(f"fairness '{rule.name}' knows no queues; use kueue-classical or kueue-fair, or leave them out")
    if reclaims(scheduler.fairness) and scheduler.backfill != "greedy":
        raise UserError(f"fairness '{rule.name}' takes jobs back, which goes with backfill 'greedy' only; use that")
    if changes.locality is not None:
        raise UserError(f"fairness '{rule.name}' does not go with waiting for a node or a rack; leave out one")
    if changes.preemption or changes.elasticity is not None:
        raise UserError(f"fairness '{rule.name}' does not go with preemption or elasticity; leave them out")
    if settle(order, scheduler.order_parameters).get("max_wait", np.inf) < np.inf:
        raise UserError(f"fairness '{rule.name}' does not go with a longest wait; leave out max_wait")


def _check_terms(fairness: Fairness, rule: FairnessRule | None, order: Ordering) -> None:
    """Raise a user error where tenants have terms that nothing asks for."""
    if rule is None and not order.weighs_tenants:
        raise UserError(
            f"tenants have terms, and order '{order.name}' does not ask for them; choose a rule of fairness, as in drf"
        )
    grouped = bool(fairness.groups) or any(t.group for t in fairness.tenants.values())
    if grouped and not order.weighs_tenants and (rule is None or rule.turns_by != "tree"):
        by_name = "" if rule is None else rule.name
        raise UserError(f"fairness '{by_name}' knows no groups of tenants; use hdrf, or leave out the groups")


def settled(changes: Changes, order: Ordering, given: Mapping[str, float], backfill: str) -> Changes:
    """Return the changes with the preemption that the order brings; what cannot go together is a user error."""
    if order.preemption and changes.preemption not in ("", order.preemption):
        raise UserError(f"order '{order.name}' preempts by '{order.preemption}', not by '{changes.preemption}'")
    if changes.preemption and not order.preemption:
        rule = PREEMPTIONS.get(changes.preemption)
        spelled = f"{order.name}:" + ",".join(f"{k}={v:g}" for k, v in settle(order, given).items() if k == "aging")
        if spelled not in rule.orders:
            known = ", ".join(rule.orders) or ", ".join(n for n in ORDERINGS.names() if ORDERINGS.get(n).preemption)
            raise UserError(f"preemption '{rule.name}' does not go with order '{order.name}' as given; use: {known}")
    changes = replace(changes, preemption=changes.preemption or order.preemption)
    if changes.preemption:
        settle(PREEMPTIONS.get(changes.preemption), changes.preemption_parameters)
    quantum = settle(order, given).get("quantum", math.inf)
    if changes.preemption and quantum <= changes.checkpoints.seconds_of_a_stop:
        raise UserError(
            f"order '{order.name}': a slice of {quantum:g} s is over before a stopped job goes on with its work "
            f"({changes.checkpoints.seconds_of_a_stop:g} s), so that nobody gets anywhere; give a longer quantum"
        )
    loses = not changes.checkpoints.saves_when_preempted and changes.checkpoints.interval_seconds == math.inf
    if changes.preemption and loses and PREEMPTIONS.get(changes.preemption).keeps_work:
        raise InputError(
            f"preemption '{changes.preemption}' needs stopped jobs to keep their work, and nothing saves it",
            field="checkpoints",
            remedy="set on_preemption, or give interval_seconds",
        )
    if changes.planning is not None:
        check_planning(changes.planning)
        if changes.preemption or changes.elasticity is not None or changes.pool is not None:
            raise UserError("a planner decides who runs; leave out preemption, elasticity and node pools")
    if changes.elastic_plan is not None:
        ELASTIC.get(changes.elastic_plan.policy)
        if changes.preemption or changes.planning is not None or changes.pool is not None:
            raise UserError("an elastic policy decides who runs; leave out preemption, planner and node pools")
        if changes.sharing is not None:
            raise UserError("an elastic policy gives jobs whole GPUs; leave out sharing and interference")
    if changes.locality is not None:
        if changes.preemption or changes.elasticity is not None or changes.is_planned:
            raise UserError(
                "waiting for a node or a rack does not go with preemption, elasticity or a planner; leave out"
            )
        if backfill not in ("strict", "greedy"):
            raise UserError(
                f"waiting for a node or a rack does not go with backfill '{backfill}'; use strict or greedy"
            )
    if (changes.preemption or changes.elasticity is not None) and backfill not in ("strict", "greedy"):
        what = f"preemption '{changes.preemption}'" if changes.preemption else "elasticity"
        if order.preemption:
            what = f"order '{order.name}', which stops running jobs,"
        raise UserError(f"{what} does not go with backfill '{backfill}'; use strict or greedy")
    if changes.sharing is not None and changes.sharing.cuts and backfill in ("easy", "conservative"):
        raise UserError(
            f"sharing '{changes.sharing.name}' does not go with backfill '{backfill}', which plans without slices; use "
            "strict or greedy"
        )
    if changes.any() and backfill == "conservative":
        raise UserError("conservative backfill needs jobs and nodes that do not change; use strict, greedy or easy")
    return changes


def values_of(policy: Ordering | Placement | Speed | Preemption, given: Mapping[str, float]) -> Floats:
    """Return the values of a policy's parameters in the sequence it declares them."""
    return np.array(list(settle(policy, given).values()), np.float64)
