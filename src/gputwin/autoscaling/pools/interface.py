"""What a pool rule sees (nodes, tasks on them, tasks that wait) and what it answers (nodes to start and to remove)."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputwin.autoscaling.decisions.interface import Alternative


@dataclass(frozen=True, slots=True)
class NodeType:
    """A kind of node one can buy. Capacities are whole numbers by resource: cpu_milli, memory_mib, gpu_milli."""

    name: str
    price_per_hour: float
    capacity: Mapping[str, int]
    is_spot: bool = False

    def __post_init__(self) -> None:
        if not self.price_per_hour >= 0:
            raise ValueError(f"the price of {self.name} must be at least 0, not {self.price_per_hour:g}")


@dataclass(frozen=True, slots=True)
class Task:
    """What runs on a node or waits for one."""

    name: str
    needs: Mapping[str, int]
    priority: int = 0
    deletion_cost: int = 0
    """The annotation pod-deletion-cost."""
    is_pinned: bool = False
    """It must not be moved (do-not-disrupt, or a disruption budget of its own at zero)."""
    types: tuple[str, ...] = ()
    """Node types it accepts; empty: all."""
    instances: int = 1
    """How many of these must start together; none starts unless all do."""


@dataclass(frozen=True)
class Node:
    """A node of the pool."""

    name: str
    type: str
    tasks: tuple[Task, ...] = ()
    group: str = ""
    """Its node group or pool."""
    is_ready: bool = True
    """False while it boots or is broken; its room counts all the same."""
    is_leaving: bool = False
    """It drains already; its room does not count."""
    changed_s: float = 0.0
    """When a task last came or went, or it started."""

    @functools.cached_property
    def is_pinned(self) -> bool:
        """Return whether a task on it must not be moved. Kept, since rules ask for every node at every decision."""
        return any(task.is_pinned for task in self.tasks)


@dataclass(frozen=True, slots=True)
class Rooms:
    """What is free on nodes: a row per node, a column per resource; and each node's type as a place in `type_names`."""

    names: tuple[str, ...]
    type_names: tuple[str, ...]
    types: NDArray[np.int64]
    free: NDArray[np.int64]

    def of(self, rows: Any) -> Rooms:
        """Return some rows, as a copy that can be filled."""
        return Rooms(self.names, self.type_names, self.types[rows], np.array(self.free[rows], order="C"))


@dataclass(frozen=True, slots=True)
class NodeColumns:
    """Nodes as columns, in their order: type and group as places in their names, and whether each is ready, leaving, …"""

    type_names: tuple[str, ...]
    types: NDArray[np.int64]
    group_names: tuple[str, ...]
    groups: NDArray[np.int64]
    is_ready: NDArray[np.bool_]
    is_leaving: NDArray[np.bool_]
    is_pinned: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class PoolObservation:
    """The pool at `time_s`."""

    time_s: float
    nodes: tuple[Node, ...] = ()
    waiting: tuple[Task, ...] = ()
    rooms: Rooms | None = field(default=None, compare=False, repr=False)
    """What is free on each of `nodes`, where the observer keeps it; otherwise their capacity less what their tasks need."""
    columns: NodeColumns | None = field(default=None, compare=False, repr=False)
    """`nodes` as columns, where the observer keeps them."""


@dataclass(frozen=True, slots=True)
class Launch:
    """A node to start."""

    name: str
    type: str
    group: str
    reason: str
    chain: int = 0
    """How many replacements led to this node, one after the other."""


@dataclass(frozen=True, slots=True)
class Removal:
    """A node to drain and stop."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class PoolDecision:
    """Nodes to start and to remove, which rule says so, why, and what others would have done."""

    time_s: float
    rule: str
    launches: tuple[Launch, ...] = ()
    removals: tuple[Removal, ...] = ()
    reasons: tuple[str, ...] = ()
    alternatives: tuple[Alternative, ...] = ()
    """What other choices would have launched (positive) or removed (negative), in nodes."""
    unplaced: tuple[str, ...] = ()
    """Tasks that no node of any type or limit can take."""
    held: bool = False
    measures: Mapping[str, float] = field(default_factory=dict)
