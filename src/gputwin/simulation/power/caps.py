"""Caps on what a node or a rack draws: GPUs that are busy share what is left of it, by a power limit or by turns.

A cap covers servers, idle GPUs and busy ones. Busy GPUs may draw what remains, in equal parts above their idle: that part is
their power limit, so a cap is kept at every instant, and jobs are slowed as under that limit (`devices.GpuPower`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from gputwin.core.errors import UserError
from gputwin.simulation.engine.state.records import WHOLE, Machines
from gputwin.simulation.power.devices import SERVER_WATTS, SERVER_WATTS_PER_GPU, UNKNOWN, gpu_power

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
STEP_WATTS = 5.0
_MOST_WATTS = 2000.0
NODE_BUDGET, RACK_BUDGET, IDLE, TABLES = range(4)
"""Rows of `speed_rows`: what busy GPUs of each node, and of its rack, may draw together above idle, W; the idle of one
GPU of each node, W; and from there on, per GPU model, the slowdown under limits of 0, 5, 10, … W."""


@dataclass(frozen=True)
class PowerCaps:
    """What a node and a rack may draw at most, W, and power limits by GPU model; with `waits` jobs are not slowed: only
    as many GPUs are used as may draw their full limit.
    """

    node_watts: float = math.inf
    rack_watts: float = math.inf
    limits: Mapping[str, float] = field(default_factory=dict)
    waits: bool = False


@dataclass(frozen=True)
class Budget:
    """Per node: what busy GPUs of it, and of its rack, may draw together above idle, and the idle of a GPU, W."""

    node: Floats
    rack: Floats
    idle: Floats

    def limit(self, nodes: Ints, busy: Floats, busy_in_rack: Floats) -> Floats:
        """Return the power limit of each busy GPU on these nodes, W."""
        with np.errstate(divide="ignore", invalid="ignore"):
            each = np.minimum(self.node[nodes] / busy, self.rack[nodes] / busy_in_rack)
        return np.asarray(self.idle[nodes] + each)


def budget_of(caps: PowerCaps, models: Sequence[str | None], counts: Ints, racks: Ints) -> Budget:
    """Return what busy GPUs of each node may draw; a cap that idle nodes exceed is a user error. Rack -1: none."""
    idle = np.array([gpu_power(m).idle_watts for m in models])
    bare = SERVER_WATTS + SERVER_WATTS_PER_GPU * counts + idle * counts
    node = np.where(counts > 0, caps.node_watts - bare, math.inf)
    rack = np.full(counts.size, math.inf)
    if caps.rack_watts < math.inf:
        if (racks < 0).any():
            raise UserError("the rack cap needs the rack of each node; give nodes_per_rack or a column of racks")
        rack = caps.rack_watts - np.bincount(racks, bare)[racks]
    for name, cap, left in (("node", caps.node_watts, node), ("rack", caps.rack_watts, rack)):
        if (left <= 0).any():
            raise UserError(
                f"power cap of a {name} is {cap:g} W, and it draws {cap - left.min():g} W when idle; give more"
            )
    return Budget(node, rack, idle)


def speed_rows(caps: PowerCaps, models: tuple[str, ...], machines: Machines) -> Floats:
    """Return what `capped_speed` reads: budgets of nodes and slowdowns of GPU models."""
    nodes = machines.nodes
    _check_sequence(caps, nodes["rack"])
    budget = budget_of(caps, [models[m] for m in nodes["model"]], nodes["gpu_count"], nodes["rack"])
    points = int(_MOST_WATTS / STEP_WATTS) + 1
    rows = np.zeros((TABLES + len(models), max(nodes.size, points)))
    most = 1e12
    rows[NODE_BUDGET, : nodes.size] = np.minimum(budget.node, most)
    rows[RACK_BUDGET, : nodes.size] = np.minimum(budget.rack, most)
    rows[IDLE, : nodes.size] = budget.idle
    for m, model in enumerate(models):
        gpu, own = gpu_power(model), caps.limits.get(model, math.inf)
        limits = np.minimum(np.arange(points) * STEP_WATTS, own)
        rows[TABLES + m, :points] = [gpu.slowdown(max(limit, gpu.least_limit)) for limit in limits]
    counts = nodes["gpu_count"].astype(np.float64)
    in_rack = _sum_by(nodes["rack"], counts)
    full = budget.limit(np.arange(nodes.size), counts, in_rack)
    for n in np.flatnonzero(counts > 0).tolist():
        gpu = gpu_power(models[nodes["model"][n]])
        if full[n] < gpu.least_limit:
            raise UserError(
                f"power cap leaves each GPU of node {n} {full[n]:g} W when all are busy, and a GPU of "
                f"{'unknown model' if gpu is UNKNOWN else f'model {gpu.model}'} takes at least {gpu.least_limit:g}; "
                "give more, or over=wait"
            )
    return rows


def usable_gpus(caps: PowerCaps, models: tuple[str, ...], machines: Machines) -> Ints:
    """Return how many GPUs of each node can draw their full limit at the same time; racks are shared out in turn."""
    nodes = machines.nodes
    names = [models[m] for m in nodes["model"]]
    budget = budget_of(caps, names, nodes["gpu_count"], nodes["rack"])
    each = np.array([min(caps.limits.get(m, math.inf), gpu_power(m).limit_watts) for m in names]) - budget.idle
    usable: Ints = np.minimum(nodes["gpu_count"], np.floor(budget.node / each)).astype(np.int64)
    if caps.rack_watts < math.inf:
        for rack in np.unique(nodes["rack"]).tolist():
            members = np.flatnonzero(nodes["rack"] == rack)
            _share_out(members, usable, each, float(budget.rack[members[0]]))
    return usable


def _share_out(members: Ints, usable: Ints, each: Floats, watts: float) -> None:
    """Let the nodes of a rack use one GPU more in turn, each as many as it may, while the watts last."""
    wanted = usable[members].copy()
    usable[members] = 0
    for k in range(int(wanted.max(initial=0))):
        for n in members[wanted > k].tolist():
            if each[n] <= watts:
                usable[n] += 1
                watts -= each[n]


def use_only(machines: Machines, usable: Ints) -> None:
    """Let nodes have no more than these GPUs."""
    nodes = machines.nodes
    lost = (nodes["gpu_count"] - usable) * WHOLE
    np.subtract.at(machines.free, 4 + nodes["model"], lost)
    nodes["gpu_count"] = nodes["gpus_whole"] = usable
    nodes["gpu_free"] = usable * WHOLE
    machines.gpus[np.arange(machines.gpus.shape[1]) >= usable[:, None]] = 0


def _sum_by(racks: Ints, values: Floats) -> Floats:
    if (racks < 0).any():
        return values
    found: Floats = np.bincount(racks, values)[racks].astype(np.float64)
    return found


def _check_sequence(caps: PowerCaps, racks: Ints) -> None:
    if caps.rack_watts < math.inf and np.count_nonzero(np.diff(racks)) + 1 != np.unique(racks).size:
        raise UserError("the rack cap needs the nodes of each rack one after the other; sort the nodes by rack")
