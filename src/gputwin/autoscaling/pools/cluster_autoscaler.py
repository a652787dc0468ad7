"""A rule like the Kubernetes Cluster Autoscaler's: node groups grow for tasks that wait and shrink when little used."""

from __future__ import annotations

import functools
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gputwin.autoscaling.decisions.interface import Alternative
from gputwin.autoscaling.pools.columns import Axes, Wants, columns_of, wants_of
from gputwin.autoscaling.pools.fitting import Packing, pack_new, place, place_wants, room_on
from gputwin.autoscaling.pools.interface import (
    Launch,
    Node,
    NodeType,
    PoolDecision,
    PoolObservation,
    Removal,
    Rooms,
)
from gputwin.autoscaling.pools.registry import pool_rule
from gputwin.core.units import short_duration

EXPANDERS = ("least-waste", "most-pods", "least-nodes", "price", "priority", "random")


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """Nodes of one type, between limits."""

    name: str
    type: NodeType
    minimum: int = 0
    maximum: int = 10
    priority: int = 0
    """For the expander of that name: the highest first."""

    def __post_init__(self) -> None:
        if not 0 <= self.minimum <= self.maximum:
            raise ValueError(
                f"group {self.name}: limits {self.minimum} to {self.maximum} are not 0 ≤ minimum ≤ maximum"
            )


@dataclass(frozen=True, slots=True)
class GroupsMemory:
    """Since when each node is not needed, when nodes were last added, and a counter for names."""

    unneeded_s: Mapping[str, float] = field(default_factory=dict)
    added_s: float | None = None
    launched: int = 0


@pool_rule(
    "grows the group an expander picks for what waits; removes nodes little used for a while whose tasks fit elsewhere",
    source="kubernetes/autoscaler, cluster-autoscaler FAQ: scale-up, scale-down, expanders",
)
@dataclass(frozen=True)
class ClusterAutoscaler:
    """Node groups of one type each, between limits."""

    name: ClassVar[str] = "cluster-autoscaler"
    groups: tuple[NodeGroup, ...]
    expander: str = "least-waste"
    use_threshold: float = 0.5
    """Below this share of requested capacity a node is a candidate; of the GPUs alone where it has any."""
    unneeded_for_s: float = 600.0
    delay_after_add_s: float = 600.0
    most_empty: int = 10
    """Empty nodes removed at once."""
    seed: int = 0

    def __post_init__(self) -> None:
        if self.expander not in EXPANDERS:
            raise ValueError(f"an expander is one of {', '.join(EXPANDERS)}, not '{self.expander}'")
        if len({group.name for group in self.groups}) < len(self.groups) or not self.groups:
            raise ValueError("node groups need different names, and there must be one")

    @functools.cached_property
    def axes(self) -> Axes:
        """Return the resources and types of the groups."""
        return Axes(tuple({group.type.name: group.type for group in self.groups}.values()))

    def start(self) -> GroupsMemory:
        """Return an empty memory."""
        return GroupsMemory()

    def decide(self, observation: PoolObservation, memory: GroupsMemory) -> tuple[PoolDecision, GroupsMemory]:
        """Return the growth of one group, or else nodes to remove."""
        types = {group.type.name: group.type for group in self.groups}
        axes = self.axes
        columns = columns_of(observation)
        stays = axes.known(columns)
        stays = stays[~columns.is_leaving[stays]]
        left: Wants | None = None
        awaited = np.zeros(len(observation.nodes), np.bool_)
        if observation.waiting:
            rooms = axes.rooms_of(observation, stays)
            before = rooms.free.copy()
            left = place_wants(wants_of(observation.waiting, axes), rooms, partly=True)
            awaited[stays] = (rooms.free != before).any(axis=1)
        count = np.bincount(columns.groups[stays], minlength=len(columns.group_names)).tolist()
        found = dict(zip(columns.group_names, count, strict=True))
        sizes = {group.name: found.get(group.name, 0) for group in self.groups}
        unplaced: tuple[str, ...] = ()
        if left is not None and left.tasks:
            grown = self._grow(observation, memory, left, sizes)
            if grown is not None:
                return grown
            unplaced = tuple(task.name for task in left.tasks)
        ready = stays[columns.is_ready[stays]]
        free_to_go = ready[~(columns.is_pinned[ready] | awaited[ready])]
        return self._shrink(observation, memory, ready, free_to_go, types, sizes, unplaced)

    def _grow(
        self, observation: PoolObservation, memory: GroupsMemory, wants: Wants, sizes: Mapping[str, int]
    ) -> tuple[PoolDecision, GroupsMemory] | None:
        options, left = [], wants.tasks
        for group in self.groups:
            if group.maximum <= sizes[group.name]:
                continue
            packing = pack_new(wants, group.type, group.maximum - sizes[group.name])
            if packing.placed:
                options.append((group, packing))
        if not options:
            return None
        group, packing = min(options, key=lambda option: self._rank(observation, option, self.expander))
        alternatives = tuple(self._alternative(observation, options, expander) for expander in EXPANDERS)
        count = memory.launched
        reason = f"{len(packing.placed)} of {len(left)} waiting tasks fit on {packing.nodes} new nodes of {group.name}"
        launches = tuple(
            Launch(f"{group.name}-{count + i + 1}", group.type.name, group.name, reason) for i in range(packing.nodes)
        )
        placed = {task.name for task in packing.placed}
        unplaced = tuple(task.name for task in left if task.name not in placed)
        rule = f"{self.name}:{self.expander}"
        decision = PoolDecision(observation.time_s, rule, launches, (), (reason,), alternatives, unplaced)
        return decision, GroupsMemory({}, observation.time_s, count + packing.nodes)

    def _alternative(
        self, observation: PoolObservation, options: list[tuple[NodeGroup, Packing]], expander: str
    ) -> Alternative:
        group, packing = min(options, key=lambda option: self._rank(observation, option, expander))
        return Alternative(f"{expander}:{group.name}", packing.nodes, f"{len(packing.placed)} tasks")

    def _rank(
        self, observation: PoolObservation, option: tuple[NodeGroup, Packing], expander: str
    ) -> tuple[float, str]:
        """Return a sort key: the lowest wins, ties go by name."""
        group, packing = option
        if expander == "random":
            return random.Random(f"{self.seed} {observation.time_s} {group.name}").random(), group.name
        cost = packing.nodes * group.type.price_per_hour / len(packing.placed)
        keys = {
            "least-waste": packing.wasted,
            "most-pods": -len(packing.placed),
            "least-nodes": packing.nodes,
            "price": cost,
            "priority": -group.priority,
        }
        return keys[expander], group.name

    def _shrink(
        self,
        observation: PoolObservation,
        memory: GroupsMemory,
        ready: NDArray[np.int64],
        free_to_go: NDArray[np.int64],
        types: Mapping[str, NodeType],
        sizes: Mapping[str, int],
        unplaced: tuple[str, ...],
    ) -> tuple[PoolDecision, GroupsMemory]:
        """Return nodes to remove among those `free_to_go`: without pinned tasks, and not awaited by tasks that wait."""
        now_s, nodes = observation.time_s, observation.nodes
        since = {}
        candidates = [(i, nodes[i]) for i in free_to_go.tolist()]
        rooms: Rooms | None = None
        for i, node in candidates:
            if node.tasks and not self._is_little_used(node, types):
                continue
            if node.tasks:
                rooms = rooms or self.axes.rooms_on([nodes[k] for k in ready.tolist()])
                others = rooms.of(ready != i)
            if not node.tasks or not place(node.tasks, others, self.axes)[1]:
                since[node.name] = memory.unneeded_s.get(node.name, now_s)
        after = GroupsMemory(since, memory.added_s, memory.launched)
        if memory.added_s is not None and now_s - memory.added_s < self.delay_after_add_s:
            ago, within = short_duration(now_s - memory.added_s), short_duration(self.delay_after_add_s)
            why = f"nodes were added {ago} ago, within {within}"
            return PoolDecision(now_s, self.name, reasons=(why,), unplaced=unplaced), after
        spare = {group.name: sizes[group.name] - group.minimum for group in self.groups}
        due = [node for _, node in candidates if node.name in since and now_s - since[node.name] >= self.unneeded_for_s]
        empty = [node for node in due if not node.tasks][: self.most_empty]
        # A node with tasks goes alone: its tasks change what else is unneeded.
        chosen = empty or [node for node in due if node.tasks][:1]
        removals = []
        for node in chosen:
            if spare.get(node.group, 0) > 0:
                spare[node.group] -= 1
                what = "empty" if not node.tasks else "its tasks fit elsewhere"
                removals.append(Removal(node.name, f"unneeded for {short_duration(now_s - since[node.name])}: {what}"))
        rule = f"{self.name}:scale-down" if removals else self.name
        reasons = (f"{len(since)} nodes unneeded, {len(due)} of them for {short_duration(self.unneeded_for_s)}",)
        other = (Alternative(f"{self.name}:at-once", -len(since), "without the waiting time"),)
        return PoolDecision(now_s, rule, (), tuple(removals), reasons, other, unplaced), after

    def _is_little_used(self, node: Node, types: Mapping[str, NodeType]) -> bool:
        """Return whether a node's tasks use less of it than the threshold."""
        kind = types[node.type]
        free = room_on(node, kind)
        gpus = [name for name, amount in kind.capacity.items() if name.startswith("gpu") and amount > 0]
        names = gpus or [name for name, amount in kind.capacity.items() if amount > 0]
        return max(1 - free[name] / kind.capacity[name] for name in names) < self.use_threshold
