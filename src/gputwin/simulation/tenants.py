"""Tenants of a run as the engine takes them: weights and limits by name, capacity, and what each class of jobs asks for."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from gputwin.core.errors import UserError
from gputwin.core.rng import stream
from gputwin.simulation.engine.state.records import PLENTY, WHOLE, Flags, Floats, Machines
from gputwin.simulation.engine.state.share_tree import ShareTree, make_share_tree
from gputwin.simulation.engine.state.tenants import (
    CPU,
    GPU,
    GPU_MEMORY,
    MEMORY,
    NEXT,
    QUOTA_RECLAIM,
    RESOURCES,
    Tenants,
)
from gputwin.simulation.fairness.ideal import ideal_ends
from gputwin.simulation.policy import FAIRNESS
from gputwin.simulation.policy_parameters import settle
from gputwin.simulation.workload import Workload

RESOURCE_NAMES = ("cpu", "memory", "gpu", "gpu_memory")


@dataclass(frozen=True)
class Terms:
    """What is agreed with a tenant: its weight (or tickets, or shares) against others, how many GPUs it may hold, and how
    many for certain."""

    weight: float = 1.0
    gpus: float | None = None
    """None: no limit."""
    weights: Mapping[str, float] = field(default_factory=dict)
    """By resource, where it is not `weight`."""
    group: str = ""
    """Where it stands in the tree of tenants, from the root down, as in research/nlp."""
    guaranteed: float | None = None
    """GPUs it takes back from who borrows them; None: as the rule says."""

    def __post_init__(self) -> None:
        if not all(0 < weight < math.inf for weight in (self.weight, *self.weights.values())):
            raise UserError(f"a tenant's weight is {self.weight:g}; give more than 0")
        if self.gpus is not None and not self.gpus >= 0:
            raise UserError(f"a tenant's limit of GPUs is {self.gpus:g}; give 0 or more")
        if self.guaranteed is not None and not 0 <= self.guaranteed < math.inf:
            raise UserError(f"a tenant's guaranteed GPUs are {self.guaranteed:g}; give 0 or more")


@dataclass(frozen=True)
class Fairness:
    """Fairness between tenants: a registered rule, its parameters, and the terms of tenants that have their own.

    Without a name there is no rule, only terms, for an order that weighs tenants.
    """

    name: str
    parameters: Mapping[str, float] = field(default_factory=dict)
    tenants: Mapping[str, Terms] = field(default_factory=dict)
    groups: Mapping[str, float] = field(default_factory=dict)
    """Weights of groups among their siblings, by path; 1 where not given."""
    queues: str | None = None
    """A YAML file of Kueue's objects, for rules of queues and cohorts."""
    default_queue: str | None = None
    """The queue of tenants that have none of their own in it."""


@dataclass(frozen=True)
class UsageSettings:
    """How past use counts: s in which it halves, s between two calculations, dampening (0: fair tree)."""

    half_life: float = 0.0
    period: float = 0.0
    dampening: float = 0.0


def make_tenants(
    workload: Workload,
    machines: Machines,
    fairness: Fairness | None,
    seed: int = 0,
    usage: UsageSettings | None = None,
) -> Tenants:
    """Return tenants who hold nothing; a stub where there is neither fairness nor an order that weighs them (`usage`)."""
    asked = fairness is not None or usage is not None
    fairness = fairness or Fairness("")
    names = workload.tenants if asked else ()
    tenants = len(names)
    rule = FAIRNESS.get(fairness.name) if fairness.name else None
    given = {} if rule is None else settle(rule, fairness.parameters)
    terms = [fairness.tenants.get(name, Terms()) for name in names]
    capacity = _capacity(machines)
    most = np.full((tenants, RESOURCES), given.get("share", math.inf)) * np.where(capacity > 0, capacity, 1.0)
    limits = np.array([given.get("gpus", math.inf) if t.gpus is None else t.gpus for t in terms]).reshape(tenants)
    most[:, GPU] = np.minimum(most[:, GPU], limits * WHOLE)
    demands = _demands(workload) if asked else np.zeros((0, RESOURCES))
    parts = np.divide(demands, capacity, out=np.zeros(demands.shape), where=capacity > 0)
    part = parts.max(axis=1) if demands.size else np.zeros(0)
    weights = [[t.weights.get(resource, t.weight) for resource in RESOURCE_NAMES] for t in terms]
    looks_ahead = rule is not None and rule.turns_by == "next-job"
    usage = usage or UsageSettings(given.get("half_life", 0.0), given.get("period", 0.0))
    return Tenants(
        held=np.zeros((tenants, RESOURCES)),
        capacity=capacity,
        weights=np.array(weights, np.float64).reshape(tenants, RESOURCES),
        most=most,
        guaranteed=_guaranteed(terms, capacity[GPU], given),
        demands=demands,
        part=part,
        usage=np.zeros(tenants),
        since=np.zeros(tenants),
        rate=np.zeros(tenants),
        half_life=np.array([usage.half_life], np.float64),
        dampening=np.array([usage.dampening], np.float64),
        period=np.array([usage.period], np.float64),
        counted=np.zeros(tenants),
        tag=np.zeros(tenants),
        finish=np.zeros(tenants),
        virtual=np.zeros(1),
        next=np.zeros((tenants, NEXT)),
        ideal=_ideal(workload, part, terms) if looks_ahead else np.zeros(0),
        dominant=parts.argmax(axis=1).astype(np.int32) if demands.size else np.zeros(0, np.int32),
        drawn_for=np.zeros(tenants),
        random=stream(seed, "lottery").integers(1, 1 << 63, tenants, np.uint64),
        tree=tree_of(names, terms, fairness.groups),
    )


def parts_of(tenants: Tenants) -> Floats:
    """Return what one job of each class asks for of each resource of the cluster, from 0 to 1."""
    demands, capacity = tenants.demands, tenants.capacity
    return np.divide(demands, capacity, out=np.zeros(demands.shape), where=capacity > 0)


def tree_of(names: tuple[str, ...], terms: list[Terms], groups: Mapping[str, float]) -> ShareTree:
    """Return the tree of groups and tenants; a group without a tenant of its own is not in it."""
    paths = {""}
    for t in terms:
        steps = t.group.split("/") if t.group else []
        paths |= {"/".join(steps[: k + 1]) for k in range(len(steps))}
    inner = sorted(paths, key=lambda path: (path.count("/") if path else -1, path))
    number = {path: n for n, path in enumerate(inner)}
    parent = [-1] + [number[path.rpartition("/")[0]] for path in inner[1:]]
    weight = [1.0] + [groups.get(path, 1.0) for path in inner[1:]]
    leaves = range(len(inner), len(inner) + len(names))
    return make_share_tree(
        [*parent, *(number[t.group] for t in terms)], [*weight, *(t.weight for t in terms)], leaves, RESOURCES
    )


def reclaims(fairness: Fairness | None) -> int:
    """Return how tenants take back what others borrow, as the engine knows it (SETTINGS.reclaims); 0: they do not."""
    if fairness is None or not fairness.name:
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
    """Raise a user error where terms are given to somebody who has no jobs, or weights to a group nobody is in."""
    unknown = [name for name in fairness.tenants if name not in names]
    if unknown:
        shown = ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
        raise UserError(f"fairness.tenants.{unknown[0]}: no tenant of this name in the trace; there are: {shown}")
    used = {t.group for t in fairness.tenants.values()}
    for path in fairness.groups:
        if not any(group == path or group.startswith(f"{path}/") for group in used):
            raise UserError(f"fairness.groups.{path}: no tenant is in this group; give one of them group: {path}")


def exceeding(workload: Workload, tenants: Tenants) -> Flags:
    """Return the classes one job of which exceeds its tenant's limits."""
    of = np.zeros(workload.shapes.size, np.int64)
    of[workload.jobs["shape"]] = workload.jobs["tenant"]
    return np.asarray((tenants.demands > tenants.most[of]).any(axis=1))


def _ideal(workload: Workload, part: Floats, terms: list[Terms]) -> Floats:
    jobs, weight = workload.jobs, np.array([t.weight for t in terms])
    work = part[jobs["shape"]] * jobs["predicted"]
    return ideal_ends(jobs["submit"], jobs["predicted"], work, jobs["tenant"], weight / weight.sum())


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
