"""The driver of node pools: takes a run from decision to decision, starts, drains and reclaims nodes, and keeps a log."""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gputwin.autoscaling.nodes.observe import Observer, node_types
from gputwin.autoscaling.nodes.spec import KARPENTER_SETTINGS, Lane, Layout, NodePools
from gputwin.autoscaling.nodes.supply import SpotSupply
from gputwin.autoscaling.nodes.zones import ZonedNodes
from gputwin.autoscaling.pools.cluster_autoscaler import ClusterAutoscaler, NodeGroup
from gputwin.autoscaling.pools.interface import Launch, NodeType, PoolDecision
from gputwin.autoscaling.pools.karpenter import Karpenter
from gputwin.core.errors import UserError
from gputwin.core.rng import stream
from gputwin.simulation.engine.kernel import Stepper
from gputwin.simulation.engine.queue.jobs import WAITING
from gputwin.simulation.engine.state.records import BOOTING, OFF, UP
from gputwin.simulation.engine.world import ARRIVAL, World
from gputwin.simulation.node_commands import drain_nodes, start_nodes, stop_nodes

GIVE_UP_SECONDS = 7 * 86400.0
"""A run in which nothing runs or starts for so long, though jobs wait, is ended: no rule will serve them."""


@dataclass(frozen=True)
class NodeEvent:
    """A node started, removed, or reclaimed, and why."""

    time: float
    node: int
    type: str
    what: str
    """launched, removed, reclaimed or refused (no such node can be had; node −1)."""
    reason: str


@dataclass
class PoolLog:
    """What the driver did."""

    events: list[NodeEvent] = field(default_factory=list)
    decisions: int = 0
    longest_chain: int = 0
    asked: int = 0
    """Decisions at which jobs waited."""
    at_limit: Counter[str] = field(default_factory=Counter)
    """Those of them at which no more nodes of a type could be had, by type."""

    def count(self, what: str) -> int:
        """Return how many nodes were launched, removed, reclaimed or refused."""
        return sum(event.what == what for event in self.events)


class PoolDriver:
    """Drives one run: `drive` of `simulation.run.run`."""

    def __init__(self, pools: NodePools, layout: Layout, supply: SpotSupply | None = None, seed: int = 0) -> None:
        self.pools, self.layout, self.supply, self.seed = pools, layout, supply or SpotSupply(), seed
        self.log = PoolLog()
        self._wakes: list[tuple[float, int, str]] = []
        """(time, node, what is due then): 'stop' after a grace or notice, 'reclaim' by the hazard."""
        self._boots: dict[int, int] = {}
        self._life: dict[int, int] = {}
        self._names: dict[str, int] = {}
        self._refused: tuple[object, ...] = ()
        """Who waited, what could be had and which nodes were idle when nodes at work shown as full brought no launch."""

    def __call__(self, stepper: Stepper) -> None:
        """Take the run to where all jobs have started, or to where no rule helps those who wait."""
        world = stepper.world
        self._begin = now = float(world.queue.jobs["submit"][0])
        self._zoned = ZonedNodes(self.layout, self.supply)
        self._observer = Observer(self.layout, world, movable=self.pools.movable)
        self._types = node_types(self.layout, world)
        self._rule = self._make_rule(self._types)
        self._memory: Any = self._rule.start()
        decides, idle_since = now, now
        while not self._carried_out(stepper, now):
            if now >= decides:
                sent = self._decide(stepper, now)
                decides = now + self.pools.period_seconds
                if sent and self._carried_out(stepper, now):
                    return
            if self._is_settled(stepper.world):
                return
            if not self._is_stuck(stepper.world):
                idle_since = now
            elif now - idle_since > GIVE_UP_SECONDS:
                return
            now = self._next(now, decides)

    def _carried_out(self, stepper: Stepper, now: float) -> bool:
        """Run up to now, with all that is due then; return whether the run is over."""
        while True:
            if stepper.run_until(now):
                return True
            if not self._reclaim(stepper, now):
                return False

    def _next(self, now: float, decides: float) -> float:
        times = [decides, *(self._wakes[0][:1])] if self._wakes else [decides]
        times += [self._begin + zone.next_change(now - self._begin) for zone in self.supply.zones]
        return min(time for time in times if time > now)

    def _is_settled(self, world: World) -> bool:
        """Return whether all jobs have come and none waits: nodes that leave from now on are no longer counted."""
        return bool(world.loop[ARRIVAL] >= world.queue.jobs.size and world.queue.counts[WAITING] == 0)

    def _is_stuck(self, world: World) -> bool:
        no_more = world.loop[ARRIVAL] >= world.queue.jobs.size
        waits = world.queue.counts[WAITING] > 0
        return bool(no_more and waits and world.counters["running"][0] == 0)

    def _make_rule(self, types: tuple[NodeType, ...]) -> ClusterAutoscaler | Karpenter:
        try:
            if self.pools.rule == "karpenter":
                return Karpenter(types, **{**KARPENTER_SETTINGS, **self.pools.settings})
            groups = tuple(
                NodeGroup(k.name, k, 0, lane.count) for k, lane in zip(types, self.layout.lanes, strict=True)
            )
            return ClusterAutoscaler(groups, **{"expander": "price", "seed": self.seed, **self.pools.settings})
        except (TypeError, ValueError) as error:
            raise UserError(f"autoscaler settings of '{self.pools.rule}': {error}") from None

    # --- Decisions. ---

    def _decide(self, stepper: Stepper, now: float) -> bool:
        """Ask the rule and give its commands; return whether there was one."""
        world = stepper.world
        self.log.decisions += 1
        state = world.machines.nodes["state"]
        named = np.fromiter(self._observer.names, np.int64, len(self._observer.names))
        for node in named[state[named] == OFF].tolist():
            self._names.pop(self._observer.names.pop(node), None)
        starts = [lane.first for lane in self.layout.lanes]
        on = dict(
            zip(self._observer.types, np.add.reduceat(state != OFF, starts, dtype=np.int64).tolist(), strict=True)
        )
        room = {lane.type: self._launchable(state, lane, on, now) for lane in self.layout.lanes}
        rule = self._limited(room, on)
        seen = self._observer.observe(world, now)
        decision, memory = rule.decide(seen, self._memory)
        if seen.waiting and not decision.launches and not (state == BOOTING).any():
            # The rule thinks they fit on nodes on which the scheduler could not place them.
            idle = (state == UP) & (world.machines.nodes["first_slot"] < 0)
            asked = (tuple(task.name for task in seen.waiting), tuple(room.items()), idle.tobytes())
            if asked != self._refused:
                again, after = rule.decide(self._observer.observe(world, now, as_full=True), self._memory)
                if again.launches:
                    decision, memory = again, after
                else:
                    self._refused = asked
        self._memory = memory
        if seen.waiting:
            self.log.asked += 1
            self.log.at_limit.update(name for name, count in room.items() if count == 0)
        self.log.longest_chain = max(self.log.longest_chain, int(decision.measures.get("longest_chain", 0)))
        self._launch(stepper, now, decision.launches, room)
        self._remove(stepper, now, decision)
        return bool(decision.launches or decision.removals)

    def _limited(self, room: Mapping[str, int], on: Mapping[str, int]) -> ClusterAutoscaler | Karpenter:
        """Return the rule with what can be had just now; `on` counts the nodes of each lane that are not off."""
        if isinstance(self._rule, Karpenter):
            return replace(self._rule, unavailable=tuple(name for name, count in room.items() if count == 0))
        groups = (replace(g, maximum=on[g.name] + room[g.name]) for g in self._rule.groups)
        return replace(self._rule, groups=tuple(groups))

    def _launchable(self, state: Any, lane: Lane, on: Mapping[str, int], now: float) -> int:
        """Return how many more nodes of the lane can be had."""
        in_pool = sum(on[other.type] for other in self.layout.lanes if other.pool == lane.pool)
        room = min(lane.count - on[lane.type], max(self.layout.most[lane.pool] - in_pool, 0))
        if lane.is_spot and self.supply.zones and room:
            room = min(room, self._zoned.room(state, lane, now - self._begin))
        return room

    def _launch(self, stepper: Stepper, now: float, launches: tuple[Launch, ...], room: dict[str, int]) -> None:
        world = stepper.world
        delays: dict[int, float] = {}
        state = world.machines.nodes["state"]
        for lane in self.layout.lanes:
            wanted = [launch for launch in launches if launch.type == lane.type]
            if not wanted:
                continue
            if lane.is_spot and self.supply.zones:
                free = self._zoned.free(state, lane, now - self._begin)
            else:
                free = (lane.first + np.flatnonzero(state[lane.first : lane.first + lane.count] == OFF)).tolist()
            others = [o for o in self.layout.lanes if o.pool == lane.pool and o is not lane]
            taken = sum(o.first <= node < o.first + o.count for o in others for node in delays)
            free = free[: max(room[lane.type] - taken, 0)]
            for launch, node in zip(wanted, free, strict=False):
                delays[node] = self._boot_seconds(node)
                self._observer.names[node], self._names[launch.name] = launch.name, node
                self.log.events.append(NodeEvent(now, node, lane.type, "launched", launch.reason))
                self._life[node] = self._life.get(node, 0) + 1
                if lane.is_spot and self.supply.hazard is not None:
                    draw = self._random("hazard", node).exponential()
                    lost = self._begin + self.supply.hazard.lost_at(now - self._begin, draw)
                    heapq.heappush(self._wakes, (lost, node, f"reclaim {self._life[node]}"))
            for launch in wanted[len(free) :]:
                self.log.events.append(NodeEvent(now, -1, lane.type, "refused", launch.reason))
        start_nodes(stepper, now, delays)

    def _random(self, purpose: str, node: int) -> np.random.Generator:
        return stream(self.seed, purpose, node, self._life[node])

    def _boot_seconds(self, node: int) -> float:
        mean, sigma = self.pools.boot_seconds, self.pools.boot_sigma
        self._boots[node] = self._boots.get(node, 0) + 1
        if sigma == 0 or mean == 0:
            return mean
        draw = stream(self.seed, "boot", node, self._boots[node]).normal(-(sigma**2) / 2, sigma)
        return float(mean * math.exp(draw))

    def _remove(self, stepper: Stepper, now: float, decision: PoolDecision) -> None:
        state = stepper.world.machines.nodes["state"]
        leaving = []
        for removal in decision.removals:
            node = self._names.get(removal.name)
            if node is None:
                node = next((n for n, name in self._observer.names.items() if name == removal.name), None)
            if node is None or state[node] != UP:
                continue
            lane = self._observer.lane(node)
            self.log.events.append(NodeEvent(now, node, lane.type, "removed", removal.reason))
            leaving.append(node)
            heapq.heappush(self._wakes, (now + self.pools.grace_seconds, node, f"stop {self._life.get(node, 0)}"))
        drain_nodes(stepper, now, leaving)

    # --- Spot nodes that go. ---

    def _reclaim(self, stepper: Stepper, now: float) -> bool:
        """Stop nodes whose grace or notice is over, and give notice to spot nodes that are reclaimed now.

        Returns whether there was one.
        """
        due: list[int] = []
        stops: list[int] = []
        while self._wakes and self._wakes[0][0] <= now:
            _, node, what = heapq.heappop(self._wakes)
            kind, life = what.split()
            if int(life) == self._life.get(node, 0):
                (stops if kind == "stop" else due).append(node)
        stop_nodes(stepper, now, stops)
        state = stepper.world.machines.nodes["state"]
        for cell, nodes, most in self._zoned.excess(state, now - self._begin):
            on = [n for n in nodes if n not in due and n not in stops]
            if len(on) > most:
                picked = stream(self.seed, "reclaim", cell, round(now)).permutation(len(on))[: len(on) - most]
                due += [on[k] for k in sorted(picked)]
        due = [n for n in due if state[n] in (UP, BOOTING)]
        for node in due:
            self.log.events.append(NodeEvent(now, node, self._observer.lane(node).type, "reclaimed", "spot"))
            heapq.heappush(self._wakes, (now + self.supply.notice_seconds, node, f"stop {self._life.get(node, 0)}"))
        drain_nodes(stepper, now, due)
        stop_nodes(stepper, now, [n for n in due if state[n] == BOOTING])
        return bool(due or stops)
