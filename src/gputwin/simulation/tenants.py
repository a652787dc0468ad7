"""Tenants of a run as the engine takes them: weights and limits by name, capacity, and what each class of jobs asks for."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from gputwin.core.errors import UserError
from gputwin.simulation.engine.state.records import PLENTY, WHOLE, Flags, Floats, Machines
from gputwin.simulation.engine.state.tenants import CPU, GPU, GPU_MEMORY, MEMORY, QUOTA_RECLAIM, RESOURCES, Tenants
from gputwin.simulation.policy import FAIRNESS, settle
from gputwin.simulation.workload import Workload


@dataclass(frozen=True)
class Terms:
    """What is agreed with a tenant: its weight against others, how many GPUs it may hold, and how many for certain."""

    weight: float = 1.0
    gpus: float | None = None
    """None: no limit."""
    guaranteed: float | None = None
    """GPUs it takes back from who borrows them; None: as the rule says."""

    def __post_init__(self) -> None:
        if not (0 < self.weight < math.inf):
            raise UserError(f"a tenant's weight is {self.weight:g}; give more than 0")
        if self.gpus is not None and not self.gpus >= 0:
            raise UserError(f"a tenant's limit of GPUs is {self.gpus:g}; give 0 or more")
        if self.guaranteed is not None and not 0 <= self.guaranteed < math.inf:
            raise UserError(f"a tenant's guaranteed GPUs are {self.guaranteed:g}; give 0 or more")


@dataclass(frozen=True)
class Fairness:
    """Fairness between tenants: a registered rule, its parameters, and the terms of tenants that have their own."""

    name: str
    parameters: Mapping[str, float] = field(default_factory=dict)
    tenants: Mapping[str, Terms] = field(default_factory=dict)
    queues: str | None = None
    """A YAML file of Kueue's objects, for rules of queues and cohorts."""
    default_queue: str | None = None
    """The queue of tenants that have none of their own in it."""


def make_tenants(workload: Workload, machines: Machines, fairness: Fairness | None) -> Tenants:
    """Return tenants who hold nothing; a stub where there is no fairness."""
    names = workload.tenants if fairness is not None else ()
    tenants = len(names)
    given = {} if fairness is None else settle(FAIRNESS.get(fairness.name), fairness.parameters)
    terms = [(fairness.tenants if fairness is not None else {}).get(name, Terms()) for name in names]
    capacity = _capacity(machines)
    most = np.full((tenants, RESOURCES), given.get("share", math.inf)) * np.where(capacity > 0, capacity, 1.0)
    limits = np.array([given.get("gpus", math.inf) if t.gpus is None else t.gpus for t in terms]).reshape(tenants)
    most[:, GPU] = np.minimum(most[:, GPU], limits * WHOLE)
    demands = _demands(workload) if fairness is not None else np.zeros((0, RESOURCES))
    part = np.divide(demands, capacity, out=np.zeros(demands.shape), where=capacity > 0)
    return Tenants(
        held=np.zeros((tenants, RESOURCES)),
        capacity=capacity,
        weights=np.repeat(np.array([t.weight for t in terms]).reshape(tenants, 1), RESOURCES, axis=1),
        most=most,
        guaranteed=_guaranteed(terms, capacity[GPU], given),
        demands=demands,
        part=part.max(axis=1) if demands.size else np.zeros(0),
        usage=np.zeros(tenants),
        since=np.zeros(tenants),
        rate=np.zeros(tenants),
        half_life=np.array([given.get("half_life", 0.0)]),
        period=np.array([given.get("period", 0.0)]),
        counted=np.zeros(tenants),
        tag=np.zeros(tenants),
        finish=np.zeros(tenants),
        virtual=np.zeros(1),
    )


def reclaims(fairness: Fairness | None) -> int:
    """Return how tenants take back what others borrow, as the engine knows it (SETTINGS.reclaims); 0: they do not."""
    if fairness is None:
        return 0
    rule = FAIRNESS.get(fairness.name)
    return rule.reclaims or (QUOTA_RECLAIM if settle(rule, fairness.parameters).get("reclaim") else 0)


def _guaranteed(terms: list[Terms], capacity: float, given: Mapping[str, float]) -> Floats:
    """Return the milli-GPUs guaranteed to each tenant; more than the cluster has in all is a user error.

    Where nothing is said, each has its part of what is not promised to others by name, by weight.
    """
    if not given.get("reclaim"):
        return np.zeros(len(terms))
    named = np.array([math.nan if t.guaranteed is None else t.guaranteed * WHOLE for t in terms], np.float64)
    rest = np.isnan(named)
    each = given.get("guaranteed", math.inf)
    if each < math.inf:
        named[rest] = each * WHOLE
    else:
        weights = np.array([t.weight for t in terms])[rest]
        named[rest] = max(capacity - named[~rest].sum(), 0.0) * weights / max(weights.sum(), 1e-300)
    if named.sum() > capacity * (1 + 1e-9):
        raise UserError(
            f"tenants are guaranteed {named.sum() / WHOLE:g} GPUs in all and the cluster has {capacity / WHOLE:g}; "
            "guarantee fewer (guaranteed)"
        )
    return named


def check_tenants(fairness: Fairness, names: tuple[str, ...]) -> None:
    """Raise a user error where terms are given to somebody who has no jobs."""
    unknown = [name for name in fairness.tenants if name not in names]
    if unknown:
        shown = ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
        raise UserError(f"fairness.tenants.{unknown[0]}: no tenant of this name in the trace; there are: {shown}")


def exceeding(workload: Workload, tenants: Tenants) -> Flags:
    """Return the classes one job of which exceeds its tenant's limits."""
    of = np.zeros(workload.shapes.size, np.int64)
    of[workload.jobs["shape"]] = workload.jobs["tenant"]
    return np.asarray((tenants.demands > tenants.most[of]).any(axis=1))


def _capacity(machines: Machines) -> Floats:
    """Return what the cluster has of each resource; infinite where it is not modelled."""
    nodes, gpus = machines.nodes, machines.gpus
    capacity = np.zeros(RESOURCES)
    for r, amounts in ((CPU, nodes["cpu"]), (MEMORY, nodes["memory"]), (GPU_MEMORY, gpus["memory_free"])):
        capacity[r] = math.inf if (amounts >= PLENTY).any() else amounts.sum()
    capacity[GPU] = nodes["gpu_count"].sum() * WHOLE
    return capacity


def _demands(workload: Workload) -> Floats:
    """Return what one job of each shape asks for, all instances together."""
    asked = workload.requests[workload.groups["request"]]
    each = np.zeros((workload.groups.size, RESOURCES))
    each[:, CPU], each[:, MEMORY] = asked["cpu"], asked["memory"]
    each[:, GPU] = asked["gpu_count"] * asked["gpu_milli"]
    each[:, GPU_MEMORY] = asked["gpu_count"] * asked["gpu_memory"]
    each *= workload.groups["size"][:, None]
    of_shape = np.repeat(np.arange(workload.shapes.size), workload.shapes["groups"])
    demands = np.zeros((workload.shapes.size, RESOURCES))
    np.add.at(demands, of_shape, each)
    return demands
