"""What the nodes of a run cost: hours paid by node type and purchase kind, allocated to jobs or idle.

A node is paid from the moment it is started until it is off, booting and draining included. Of each hour the share of the
node's GPUs that jobs hold (of its CPU, on nodes without GPUs) is allocated; the rest is idle. Both add up to what is paid.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gputwin.autoscaling.cost import Cost, Instances, Prices, Purchase, bill
from gputwin.autoscaling.nodes.spec import Layout
from gputwin.autoscaling.spot.hazard import Series
from gputwin.core.units import HOUR
from gputwin.simulation.engine.state.outages import LOGGED
from gputwin.simulation.engine.state.records import OFF
from gputwin.simulation.run import Run
from gputwin.simulation.segments import placements_of, segments_of

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class NodeBill:
    """Node-seconds paid and allocated within the window, by node, and the cost of them."""

    paid_seconds: Floats
    allocated_seconds: Floats
    cost: Cost
    spot_cost: float
    window: tuple[float, float]

    @property
    def mean_nodes(self) -> float:
        """Return how many nodes were paid for on average."""
        return float(self.paid_seconds.sum() / max(self.window[1] - self.window[0], 1e-9))


def bill_nodes(run: Run, layout: Layout, window: tuple[float, float], spot_prices: Series | None = None) -> NodeBill:
    """Return the bill of a run between the two times, s; prices of spot nodes move with `spot_prices`, around their own."""
    paid = paid_seconds(run, window)
    allocated = allocated_seconds(run, window)
    spot_paid, spot_allocated = paid, allocated
    if spot_prices is not None:
        relative, begin = spot_prices.relative(), window[0]

        def at_price(time: Floats) -> Floats:
            return relative.integral(time - begin)

        spot_paid, spot_allocated = paid_seconds(run, window, at_price), allocated_seconds(run, window, at_price)
    groups, prices = [], {}
    spot = 0.0
    for lane in layout.lanes:
        nodes = slice(lane.first, lane.first + lane.count)
        purchase = Purchase.SPOT if lane.is_spot else Purchase.ON_DEMAND
        prices[lane.type] = {purchase: lane.price}
        of_paid, of_allocated = (spot_paid, spot_allocated) if lane.is_spot else (paid, allocated)
        groups.append(Instances(of_paid[nodes], of_allocated[nodes], lane.type, purchase))
        spot += lane.price * float(of_paid[nodes].sum()) / HOUR if lane.is_spot else 0.0
    return NodeBill(paid, allocated, bill(groups, Prices(prices)), spot, window)


def paid_seconds(run: Run, window: tuple[float, float], clock: Callable[[Floats], Floats] = np.asarray) -> Floats:
    """Return for how long each node was not off, s of the `clock`: time itself, or one that runs as fast as the price."""
    nodes = run.world.machines.nodes.size
    outages = run.world.outages
    begin, end = clock(np.array(window)).tolist()
    log = outages.log[: outages.count[LOGGED]]
    times = clock(np.clip(log["time"], *window)).tolist()
    paid, on_since = np.zeros(nodes), np.full(nodes, begin)
    is_on = np.ones(nodes, np.bool_)
    for at, node, state in zip(times, log["node"].tolist(), log["state"].tolist(), strict=True):
        if state == OFF and is_on[node]:
            paid[node] += at - on_since[node]
            is_on[node] = False
        elif state != OFF and not is_on[node]:
            on_since[node], is_on[node] = at, True
    paid[is_on] += end - on_since[is_on]
    return paid


def allocated_seconds(run: Run, window: tuple[float, float], clock: Callable[[Floats], Floats] = np.asarray) -> Floats:
    """Return each node's seconds of the `clock` times the share of it that jobs held."""
    segments, placements = segments_of(run), placements_of(run)
    ends, starts = (np.clip(segments[name].to_numpy(), *window) for name in ("end_time", "start_time"))
    length = clock(ends) - clock(starts)
    node = placements["node"].to_numpy()
    machines = run.world.machines.nodes
    requests = run.workload.requests[placements["request"].to_numpy()]
    gpus, cpu = machines["gpu_count"][node], machines["cpu"][node]
    of_gpus = requests["gpu_count"] * requests["gpu_milli"] / 1000.0 / np.maximum(gpus, 1)
    share = np.where(gpus > 0, of_gpus, requests["cpu"] / np.maximum(cpu, 1))
    seconds = length[placements["segment"].to_numpy()] * share
    return np.bincount(node, seconds, machines.size).astype(np.float64)
