"""What a pool rule is shown of a run: nodes that are on with what they carry, and jobs that wait."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputwin.autoscaling.nodes.spec import Lane, Layout
from gputwin.autoscaling.pools.columns import Axes
from gputwin.autoscaling.pools.interface import Node, NodeColumns, NodeType, PoolObservation, Rooms, Task
from gputwin.simulation.engine.state.records import BOOTING, DRAINING, FREE_MODELS, OFF, UP, WHOLE
from gputwin.simulation.engine.world import ARRIVAL, RUNS, WAITS, World

MOST_JOBS = 300
"""Waiting jobs shown to the rule, the first submitted first; the others are served by later decisions."""
_AMOUNTS = {"cpu_milli": "cpu", "memory_mib": "memory", "disk_mib": "disk", "rdma_percent": "rdma"}
_RESOURCES = (*_AMOUNTS, "gpu_milli", "gpu_whole")


def node_types(layout: Layout, world: World) -> tuple[NodeType, ...]:
    """Return the types one can buy, one per lane, with capacities as the engine counts them."""
    return tuple(NodeType(lane.type, lane.price, _capacity(world, lane.first), lane.is_spot) for lane in layout.lanes)


def _capacity(world: World, node: int) -> dict[str, int]:
    record = world.machines.nodes[node]
    gpus = int(record["gpu_count"])
    amounts = {name: int(record[own]) for name, own in _AMOUNTS.items()}
    return {**amounts, "gpu_milli": gpus * WHOLE, "gpu_whole": gpus}


class Observer:
    """Shows a run to a rule. Nodes whose use has not changed since the last time are shown as the same objects."""

    def __init__(self, layout: Layout, world: World, *, movable: bool) -> None:
        self.movable = movable
        self.names: dict[int, str] = {}
        """What the rule calls each node that is on."""
        nodes = world.machines.nodes
        self._lane_of = np.zeros(nodes.size, np.int64)
        for k, lane in enumerate(layout.lanes):
            self._lane_of[lane.first : lane.first + lane.count] = k
        self._lanes = layout.lanes
        self._static = np.zeros(nodes.size, np.bool_)
        self._static[list(layout.always_up)] = True
        self._used = np.full((nodes.size, len(_RESOURCES) + 1), -1, np.int64)
        self._shown: list[Node] = [Node("", "")] * nodes.size
        self._present, self._came = np.zeros(0, np.int64), 0
        """Jobs that wait or run, and how many have been submitted."""
        self._tasks: dict[int, tuple[list[Task], int]] = {}
        axes = Axes(node_types(layout, world))
        self._columns = [_RESOURCES.index(name) for name in axes.names]
        self._capacity = axes.capacities[self._lane_of]
        self._axes = axes
        self._types_of_request = _accepted(layout.lanes, world)

    @property
    def types(self) -> tuple[str, ...]:
        """Return the type of each lane."""
        return self._axes.types

    def lane(self, node: int) -> Lane:
        """Return the lane a node belongs to."""
        return self._lanes[int(self._lane_of[node])]

    def observe(self, world: World, now: float, *, as_full: bool = False) -> PoolObservation:
        """Return the pool now. `as_full`: nodes at work are shown without room, since the scheduler found none there."""
        waiting, least = self._waiting(world)
        on = np.flatnonzero(world.machines.nodes["state"] != OFF)
        nodes, gpus = world.machines.nodes[on], world.machines.gpus["free"][on]
        state, kind = nodes["state"], self._lane_of[on]
        used = np.stack(
            [
                *(nodes[own] - nodes[f"{own}_free"] for own in _AMOUNTS.values()),
                nodes["gpu_count"] * WHOLE - gpus.sum(axis=1),
                nodes["gpu_count"] - nodes["gpus_whole"],
                state,
            ],
            axis=1,
        )
        changed = np.flatnonzero((used != self._used[on]).any(axis=1))
        for n, use in zip(on[changed].tolist(), used[changed], strict=True):
            self._shown[n] = self._node(world, n, use, now)
        # A node that was off in between is another node, whatever it carries.
        self._used[:] = -1
        self._used[on] = used
        free = self._capacity[on] - used[:, self._columns]
        # Of a GPU that has less free than any job asks for, nothing is of use.
        free[:, self._axes.names.index("gpu_milli")] = np.where(gpus >= least, gpus, 0).sum(axis=1)
        not_up = state != UP
        free[not_up] = self._capacity[on[not_up]]
        at_work = (state == UP) & (nodes["first_slot"] >= 0)
        if as_full:
            free[at_work | ((state == UP) & self._static[on])] = 0
        types = self._axes.types
        shown = tuple(map(self._shown.__getitem__, on.tolist()))
        columns = NodeColumns(
            types,
            kind,
            types,
            kind,
            state != BOOTING,
            state == DRAINING,
            self._static[on] | (at_work & (not self.movable)),
        )
        return PoolObservation(now, shown, waiting, Rooms(self._axes.names, types, kind, free), columns)

    def _node(self, world: World, n: int, used: NDArray[np.int64], now: float) -> Node:
        state, lane = int(used[-1]), self.lane(n)
        name = self.names.setdefault(n, f"{lane.type}-first-{n}")
        tasks: tuple[Task, ...] = ()
        if state == UP and world.machines.nodes["first_slot"][n] >= 0:
            tasks = _tasks_on(world, n) if self.movable else (_all_in_one(used),)
        if self._static[n]:
            tasks = (*tasks, Task("kept", {}, is_pinned=True))
        return Node(name, lane.type, tasks, lane.type, state != BOOTING, state == DRAINING, now)

    def _waiting(self, world: World) -> tuple[tuple[Task, ...], int]:
        """Return the jobs that wait, a task per group, and the least share of a GPU that one of them asks for."""
        jobs = world.queue.jobs
        came, self._came = self._came, int(world.loop[ARRIVAL])
        present = np.concatenate([self._present, np.arange(came, self._came)])
        outcome = jobs["outcome"][present]
        waits = outcome == WAITS
        # Who has finished never waits again; who runs may, where its node leaves.
        self._present = present[waits | (outcome == RUNS)]
        rows = present[waits][:MOST_JOBS]
        tasks, least = [], WHOLE
        self._tasks = {j: self._tasks.get(j) or self._tasks_of(world, j) for j in rows.tolist()}
        for of_job, share in self._tasks.values():
            tasks += of_job
            least = min(least, share)
        return tuple(tasks), least

    def _tasks_of(self, world: World, j: int) -> tuple[list[Task], int]:
        """Return a job's tasks, one per group, and the least share of a GPU it asks for."""
        shape, groups = world.queue.shapes[world.queue.jobs["shape"][j]], world.groups
        tasks, least = [], WHOLE
        for g in range(int(shape["first_group"]), int(shape["first_group"] + shape["groups"])):
            r, size = int(groups["request"][g]), int(groups["size"][g])
            request = world.requests[r]
            if request["gpu_count"]:
                least = min(least, int(request["gpu_milli"]))
            tasks.append(Task(f"{j}.{g}", _needs(request), types=self._types_of_request[r], instances=size))
        return tasks, least


def _needs(request: Any) -> dict[str, int]:
    needs = {name: int(request[own]) for name, own in _AMOUNTS.items() if request[own]}
    if gpus := int(request["gpu_count"]):
        needs["gpu_milli"] = gpus * int(request["gpu_milli"])
        if request["gpu_milli"] == WHOLE:
            needs["gpu_whole"] = gpus
    return needs


def _all_in_one(used: NDArray[np.int64]) -> Task:
    """Return all that runs on a node as one task that cannot be moved."""
    amounts = dict(zip(_RESOURCES, used[:-1].tolist(), strict=True))
    return Task("jobs", amounts, is_pinned=True)


def _tasks_on(world: World, n: int) -> tuple[Task, ...]:
    tasks, slot = [], int(world.machines.nodes["first_slot"][n])
    while slot >= 0:
        request = world.requests[world.slots["request"][slot]]
        tasks.append(Task(f"{world.links['job'][slot]}.{slot}", _needs(request)))
        slot = int(world.links["next"][slot])
    return tuple(tasks)


def _accepted(lanes: tuple[Lane, ...], world: World) -> list[tuple[str, ...]]:
    """Return the types each request accepts; none: all."""
    model = world.machines.nodes["model"][[lane.first for lane in lanes]]
    assert world.index.allowed.shape[1] == world.machines.free.size - FREE_MODELS
    accepted = []
    for r in range(world.requests.size):
        able = world.index.allowed[r][model] | (world.requests["gpu_count"][r] == 0)
        accepted.append(() if able.all() else tuple(lane.type for lane, ok in zip(lanes, able, strict=True) if ok))
    return accepted
