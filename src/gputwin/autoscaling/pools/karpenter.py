"""A rule like Karpenter's: the cheapest types that fit tasks that wait, and consolidation of nodes that are not worth it."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from gputwin.autoscaling.decisions.interface import Alternative
from gputwin.autoscaling.pools.budgets import Budget, allowed
from gputwin.autoscaling.pools.columns import Axes, Ints, Wants, columns_of, wants_of
from gputwin.autoscaling.pools.consolidation import Move, consolidate
from gputwin.autoscaling.pools.first_fit import claim
from gputwin.autoscaling.pools.fitting import place_wants, take
from gputwin.autoscaling.pools.interface import Launch, NodeType, PoolDecision, PoolObservation, Removal, Task
from gputwin.autoscaling.pools.registry import pool_rule
from gputwin.core.units import short_duration

POLICIES = ("WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced")


@dataclass(frozen=True, slots=True)
class KarpenterMemory:
    """The move under validation, how many replacements led to a node (if any did), and a counter for names."""

    move: Move | None = None
    found_s: float = 0.0
    chains: Mapping[str, int] = field(default_factory=dict)
    longest_chain: int = 0
    launched: int = 0


@pool_rule(
    "the cheapest types that fit what waits; empty nodes, many nodes, single nodes leave or become one cheaper node",
    source="karpenter.sh, 'Scheduling' and 'Disruption'; design 'Balanced consolidation'",
)
@dataclass(frozen=True)
class Karpenter:
    """A NodePool: starts the cheapest type that fits, removes or replaces nodes where that is cheaper."""

    name: ClassVar[str] = "karpenter"
    types: tuple[NodeType, ...]
    pool: str = "default"
    policy: str = "WhenEmptyOrUnderutilized"
    consolidate_after_s: float | None = 0.0
    """Time since a task last came or went on a node before it is a candidate; None: never."""
    budgets: tuple[Budget, ...] = (Budget(),)
    threshold: float = 2.0
    """k of the Balanced policy: a move passes from a score of 1/k on."""
    limits: Mapping[str, int] = field(default_factory=dict)
    """The pool's total capacity per resource never exceeds these."""
    spot_to_spot: bool = False
    least_spot_types: int = 15
    """Cheaper types a replacement of a spot node by a spot node needs."""
    validation_s: float = 15.0
    """How long a move waits before it is checked again and carried out."""
    most_candidates: int = 100
    origin_epoch_s: float = 0.0
    """What time 0 is in seconds since 1970 (UTC), for the schedules of budgets."""
    unavailable: tuple[str, ...] = ()
    """Types of which no node can be had just now (insufficient capacity): none is started."""

    def __post_init__(self) -> None:
        if self.policy not in POLICIES:
            raise ValueError(f"a consolidation policy is one of {', '.join(POLICIES)}, not '{self.policy}'")
        if not self.types or len({kind.name for kind in self.types}) < len(self.types):
            raise ValueError("a pool needs node types with different names")
        if not self.threshold > 0:
            raise ValueError(f"the consolidation threshold must be above 0, not {self.threshold:g}")

    @functools.cached_property
    def by_name(self) -> Mapping[str, NodeType]:
        """Return the types by name."""
        return {kind.name: kind for kind in self.types}

    @functools.cached_property
    def axes(self) -> Axes:
        """Return the resources and types of the pool."""
        return Axes(self.types)

    def start(self) -> KarpenterMemory:
        """Return an empty memory."""
        return KarpenterMemory()

    def decide(self, observation: PoolObservation, memory: KarpenterMemory) -> tuple[PoolDecision, KarpenterMemory]:
        """Return nodes to start for tasks that wait, or else a consolidation that has been validated."""
        columns = columns_of(observation)
        known = self.axes.known(columns)
        stays = known[~columns.is_leaving[known]]
        launches, unplaced = self.provision(observation, stays, memory.launched)
        chains: dict[str, int] = {}
        if memory.chains:
            names = {observation.nodes[i].name for i in known.tolist()}
            chains = {name: length for name, length in memory.chains.items() if name in names}
        if launches:
            reason = f"{len(observation.waiting) - len(unplaced)} waiting tasks need {len(launches)} new nodes"
            decision = PoolDecision(observation.time_s, f"{self.name}:provision", launches, (), (reason,), (), unplaced)
            after = KarpenterMemory(None, 0.0, chains, memory.longest_chain, memory.launched + len(launches))
            return decision, after
        leaving = known.size - int(columns.is_ready[stays].sum())
        could_go = stays[columns.is_ready[stays] & ~columns.is_pinned[stays]]
        return self._consolidate(observation, memory, (stays, could_go), (known.size, leaving), chains, unplaced)

    def provision(
        self, observation: PoolObservation, stays: Ints, count: int
    ) -> tuple[tuple[Launch, ...], tuple[str, ...]]:
        """Return nodes to start, the cheapest type for each, and tasks that fit nowhere; `stays`: places of nodes."""
        if not observation.waiting:
            return (), ()
        rooms = self.axes.rooms_of(observation, stays)
        left = place_wants(wants_of(observation.waiting, self.axes), rooms, partly=True)
        used = {}
        if self.limits:
            used = _capacity(self.by_name[observation.nodes[i].type] for i in stays.tolist())
        claims, unplaced = self._claims(left)
        bought = []
        for kind, tasks in claims:
            grown = {name: used.get(name, 0) + kind.capacity.get(name, 0) for name in self.limits}
            if any(grown[name] > most for name, most in self.limits.items()):
                unplaced.extend(task.name for task in tasks)
                continue
            take(used, {name: -amount for name, amount in kind.capacity.items()})
            bought.append((kind, tasks))
        # A gang of which a part found no node starts nowhere: nodes for it alone would stay empty.
        refused = set(unplaced)
        bought = [(kind, tasks) for kind, tasks in bought if any(task.name not in refused for task in tasks)]
        launches = tuple(
            Launch(
                f"{self.pool}-{count + i}",
                kind.name,
                self.pool,
                f"the cheapest type for {len(tasks)} tasks, {kind.price_per_hour:g} an hour",
            )
            for i, (kind, tasks) in enumerate(bought, start=1)
        )
        return launches, tuple(dict.fromkeys(unplaced))

    def _claims(self, wants: Wants) -> tuple[list[tuple[NodeType, list[Task]]], list[str]]:
        """Return new nodes with their tasks: each takes tasks while a type fits them all, and is the cheapest such type."""
        axes = self.axes
        order = wants.largest_first(axes.capacities.max(axis=0))
        can_start = np.array([name not in self.unavailable for name in axes.types], np.bool_)
        asked = wants.needs[:, None, :]
        able = wants.able & can_start & ((asked <= axes.capacities) | (asked <= 0)).all(axis=2)
        task_of, node_of, fitting = claim(order, wants.needs, wants.instances, able, axes.capacities)
        by_price = sorted(range(len(axes.kinds)), key=lambda k: (axes.kinds[k].price_per_hour, axes.types[k]))
        cheapest = np.argmax(fitting[:, by_price], axis=1).tolist() if fitting.size else []
        claims: list[tuple[NodeType, list[Task]]] = [(axes.kinds[by_price[k]], []) for k in cheapest]
        for i, node in zip(task_of.tolist(), node_of.tolist(), strict=True):
            claims[node][1].append(wants.tasks[i])
        return claims, [wants.tasks[i].name for i in order.tolist() if not able[i].any()]

    def _consolidate(
        self,
        observation: PoolObservation,
        memory: KarpenterMemory,
        nodes: tuple[Ints, Ints],
        counts: tuple[int, int],
        chains: dict[str, int],
        unplaced: tuple[str, ...],
    ) -> tuple[PoolDecision, KarpenterMemory]:
        """Return a move of nodes: `nodes` are the places of those that stay and of those that could go.

        `counts`: how many nodes there are, and how many of them leave or are not ready.
        """
        now_s = observation.time_s
        quiet = KarpenterMemory(None, 0.0, chains, memory.longest_chain, memory.launched)
        if self.consolidate_after_s is None:
            return PoolDecision(now_s, self.name, reasons=("consolidation is off",), unplaced=unplaced), quiet
        epoch_s = self.origin_epoch_s + now_s
        room = {r: allowed(self.budgets, r, *counts, epoch_s) for r in ("Empty", "Underutilized")}
        move, tried = consolidate(self, observation, nodes, room)
        others = tuple(Alternative(f"{self.name}:{kind}", nodes, reason) for kind, nodes, reason in tried)
        if move is None:
            reason = tried[-1][2] if tried else "no candidate"
            return PoolDecision(now_s, self.name, (), (), (reason,), others, unplaced), quiet
        found_s = memory.found_s if memory.move == move else now_s
        if now_s - found_s < self.validation_s:
            waits = KarpenterMemory(move, found_s, chains, memory.longest_chain, memory.launched)
            reason = f"{move.reason}; validated in {short_duration(self.validation_s - (now_s - found_s))}"
            return PoolDecision(now_s, f"{self.name}:validation", (), (), (reason,), others, unplaced), waits
        removals = tuple(Removal(name, move.reason) for name in move.nodes)
        longest = memory.longest_chain
        launches: tuple[Launch, ...] = ()
        if move.replacement:
            chain = 1 + max(chains.get(name, 0) for name in move.nodes)
            longest = max(longest, chain)
            name = f"{self.pool}-{memory.launched + 1}"
            launches = (Launch(name, move.replacement, self.pool, move.reason, chain),)
            chains[name] = chain
        measures = {"savings_per_hour": move.savings, "longest_chain": float(longest)}
        if move.score is not None:
            measures["score"] = move.score
        rule = f"{self.name}:{move.kind}"
        decision = PoolDecision(now_s, rule, launches, removals, (move.reason,), others, unplaced, measures=measures)
        return decision, KarpenterMemory(None, 0.0, chains, longest, memory.launched + len(launches))


def _capacity(types: Iterable[NodeType]) -> dict[str, int]:
    total: dict[str, int] = {}
    for kind in types:
        take(total, {name: -amount for name, amount in kind.capacity.items()})
    return total
