"""What node pools consist of: node groups with limits and prices, the rule that sizes them, and how nodes start."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from gputwin.core.errors import UserError
from gputwin.core.units import percent
from gputwin.simulation.cluster import Cluster, NodeGroup

RULES = ("cluster-autoscaler", "karpenter")
KARPENTER_SETTINGS: Mapping[str, Any] = {"policy": "WhenEmpty", "consolidate_after_s": 300.0}
"""Of Karpenter, unless the pools say otherwise: only empty nodes leave, since jobs do not move."""
GPU_PRICE, NODE_PRICE = 1.0, 0.5
"""Per hour, of a GPU and of a node without GPUs, where a group has no price: costs are then GPU-hours, nearly."""
SPOT_PRICE_SHARE = 0.35
"""A spot node's price against on demand, where a group has none."""


@dataclass(frozen=True)
class PoolGroup:
    """Nodes of one kind; `group.count` is how many there may be, `minimum` of them are always up."""

    group: NodeGroup
    minimum: int = 0
    spot_price_per_hour: float | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.minimum <= self.group.count:
            raise UserError(
                f"node group '{self.group.name}': minimum must be between 0 and its count {self.group.count}, "
                f"not {self.minimum}"
            )
        if self.spot_price_per_hour is not None and not 0 <= self.spot_price_per_hour < math.inf:
            raise UserError(f"node group '{self.group.name}': spot_price_per_hour must be 0 or more")

    @property
    def price(self) -> float:
        """Return the price of a node on demand, per hour."""
        if self.group.price_per_hour is not None:
            return self.group.price_per_hour
        return self.group.gpus * GPU_PRICE or NODE_PRICE

    @property
    def spot_price(self) -> float:
        """Return the price of a spot node, per hour."""
        return self.price * SPOT_PRICE_SHARE if self.spot_price_per_hour is None else self.spot_price_per_hour


@dataclass(frozen=True)
class NodePools:
    """Groups, the rule that sizes them with its settings, and how nodes start and leave."""

    name: str
    groups: tuple[PoolGroup, ...]
    rule: str = "cluster-autoscaler"
    settings: Mapping[str, Any] = field(default_factory=dict)
    period_seconds: float = 60.0
    """Time between decisions."""
    boot_seconds: float = 180.0
    """Mean time from a decision until the node takes jobs; lognormal with `boot_sigma`, or fixed where that is 0."""
    boot_sigma: float = 0.3
    movable: bool = False
    """Whether jobs may be stopped to empty a node; otherwise only empty nodes leave."""
    grace_seconds: float = 0.0
    """Time a job has on a node that is to leave before it is stopped."""

    @property
    def cost_unit(self) -> str:
        """Return what costs are counted in, in words: the currency of the prices given, or GPU-hours where none is."""
        priced = [pool.group.price_per_hour is not None for pool in self.groups]
        return "in the currency of the prices" if any(priced) else "on-demand GPU-hours"

    def cost_note(self) -> str:
        """Return which prices were given, and what a node costs that has none, in a sentence."""
        default = (
            f"a GPU costs {GPU_PRICE:g} an hour, a node without GPUs {NODE_PRICE:g}, a spot node "
            f"{percent(SPOT_PRICE_SHARE)} of that"
        )
        missing = [pool.group.name for pool in self.groups if pool.group.price_per_hour is None]
        if len(missing) == len(self.groups):
            return f"No prices are given, so {default}: costs are GPU-hours on demand. Give price_per_hour for others."
        if missing:
            return f"Costs are in the currency of price_per_hour. Without a price, {default}: {', '.join(missing)}."
        return "Costs are in the currency of price_per_hour."

    def __post_init__(self) -> None:
        if self.rule not in RULES:
            raise UserError(f"unknown rule for node pools '{self.rule}'; known: {', '.join(RULES)}")
        if not 0 < self.period_seconds < math.inf:
            raise UserError(f"the time between decisions is {self.period_seconds:g} s; give more than 0")
        for name in ("boot_seconds", "boot_sigma", "grace_seconds"):
            if not 0 <= getattr(self, name) < math.inf:
                raise UserError(f"{name} is {getattr(self, name):g}; give 0 or more")

    @property
    def fixed(self) -> Cluster:
        """Return the cluster in which every node is up all the time."""
        return Cluster(self.name, tuple(pool.group for pool in self.groups))


@dataclass(frozen=True)
class Lane:
    """Nodes `first` to `first + count` of the simulated cluster: one group, bought one way."""

    type: str
    pool: int
    first: int
    count: int
    price: float
    is_spot: bool
    minimum: int


@dataclass(frozen=True)
class Layout:
    """The simulated cluster, in which each group has nodes on demand and spot nodes, and what its nodes are."""

    cluster: Cluster
    lanes: tuple[Lane, ...]
    most: tuple[int, ...]
    """How many nodes of each pool, however bought, there may be at once."""

    @property
    def always_up(self) -> tuple[int, ...]:
        """Return the nodes that never leave."""
        return tuple(n for lane in self.lanes for n in range(lane.first, lane.first + lane.minimum))


def layout_of(pools: NodePools, spot_share: float = 0.0) -> Layout:
    """Return the cluster to simulate: of each group at most `spot_share` are spot nodes.

    All nodes of a group may be on demand, so that they take over where there are no spot nodes; together there are never
    more than the group's count.
    """
    if not 0 <= spot_share <= 1:
        raise UserError(f"the spot share is {spot_share:g}; give 0 to 1")
    groups: list[NodeGroup] = []
    lanes: list[Lane] = []
    first = 0
    for i, pool in enumerate(pools.groups):
        spot = min(round(spot_share * pool.group.count), pool.group.count - pool.minimum)
        kinds = [(pool.group.name, pool.group.count, pool.price, False, pool.minimum)]
        if spot:
            kinds.append((f"{pool.group.name}-spot", spot, pool.spot_price, True, 0))
        for name, count, price, is_spot, minimum in kinds:
            groups.append(replace(pool.group, name=name, count=count, price_per_hour=price, spot=is_spot))
            lanes.append(Lane(name, i, first, count, price, is_spot, minimum))
            first += count
    return Layout(Cluster(pools.name, tuple(groups)), tuple(lanes), tuple(p.group.count for p in pools.groups))
