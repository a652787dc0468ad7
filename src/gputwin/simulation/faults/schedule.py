"""All outages of a run as windows of nodes, drawn before it begins: the same whatever the scheduler does.

Nodes fail by themselves, by one of their GPUs (the whole node is then taken out for repair, as operators do), or with
their rack; logs and maintenance come on top. Windows of one node that overlap are one outage: a node is back when the last
of its causes has ended.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from gputwin.core.errors import UserError
from gputwin.core.rng import stream
from gputwin.simulation.cluster import Cluster
from gputwin.simulation.faults.log import read_failure_log
from gputwin.simulation.interruptions import Faults, Maintenance
from gputwin.simulation.workload import Workload

REACH = 3.0
"""Outages are drawn for so many times the time from the first submission to the last end without waits."""


def scheduled(faults: Faults, cluster: Cluster, workload: Workload, seed: int) -> Faults:
    """Return the faults as windows only; as they are, where single nodes fail at random and nothing else happens."""
    fleet = faults.fleet
    if fleet is None:
        return faults
    jobs = workload.jobs
    begin = min(workload.span[0], float(jobs["submit"][0]))
    ends = (jobs["submit"] + jobs["duration"])[np.isfinite(jobs["duration"])]
    until = begin + REACH * (max(float(ends.max(initial=begin)), workload.span[1]) - begin)
    nodes = cluster.nodes()
    windows = list(faults.maintenance)
    if fleet.log:
        windows += read_failure_log(Path(fleet.log), nodes["node_id"].to_list())
    random = stream(seed, "fleet faults")
    gpus = nodes["gpu_count"].fill_null(0).to_numpy()
    for n in range(nodes.height):
        for mean, shape in ((faults.mtbf_seconds, faults.shape), (fleet.gpu_mtbf_seconds / max(gpus[n], 1e-300), 1.0)):
            drawn = _failures(random, mean, shape, faults, faults.repair_seconds, begin, until)
            windows += [Maintenance(n, math.inf, down, up) for down, up in drawn]
    windows += _rack_outages(random, faults, nodes["rack"].to_list(), begin, until)
    windows += _rolling(faults, nodes.height, begin, until)
    return replace(faults, mtbf_seconds=math.inf, maintenance=merged(windows), fleet=None)


def _failures(
    random: np.random.Generator, mean: float, shape: float, faults: Faults, repair: float, begin: float, until: float
) -> Iterator[tuple[float, float]]:
    """Yield when something goes down and comes back, each failure drawn from the end of the last repair."""
    if mean == math.inf:
        return
    now = begin
    while True:
        now += mean / math.gamma(1.0 + 1.0 / shape) * random.weibull(shape)
        if now >= until:
            return
        back = now + _repair(random, faults, repair)
        yield now, back
        now = back


def _repair(random: np.random.Generator, faults: Faults, mean: float) -> float:
    """Return a time to repair of this mean, s, by the law of the faults."""
    if faults.repair == "fixed":
        return mean
    if faults.repair == "lognormal":
        return float(random.lognormal(math.log(mean) - faults.repair_sigma**2 / 2, faults.repair_sigma))
    shape = faults.repair_shape if faults.repair == "weibull" else 1.0
    return float(mean / math.gamma(1.0 + 1.0 / shape) * random.weibull(shape))


def _rack_outages(
    random: np.random.Generator, faults: Faults, racks: list[str | None], begin: float, until: float
) -> list[Maintenance]:
    fleet = faults.fleet
    if fleet is None or fleet.rack_mtbf_seconds == math.inf:
        return []
    names = sorted({rack for rack in racks if rack is not None})
    if not names:
        raise UserError("racks fail, but the cluster has none; give its node groups a rack or nodes_per_rack")
    windows = []
    for name in names:
        members = [n for n, rack in enumerate(racks) if rack == name]
        drawn = _failures(random, fleet.rack_mtbf_seconds, 1.0, faults, fleet.rack_repair_seconds, begin, until)
        windows += [Maintenance(n, math.inf, down, up) for down, up in drawn for n in members]
    return windows


def _rolling(faults: Faults, nodes: int, begin: float, until: float) -> list[Maintenance]:
    """Return maintenance that takes each node out once a period, one after the other."""
    fleet = faults.fleet
    if fleet is None or fleet.maintenance_period_seconds == math.inf:
        return []
    period, windows = fleet.maintenance_period_seconds, []
    for n in range(nodes):
        downs = np.arange(begin + period * (n + 1) / nodes, until, period)
        lasts, notice = fleet.maintenance_seconds, fleet.maintenance_notice_seconds
        windows += [Maintenance(n, max(down - notice, begin), down, down + lasts) for down in downs.tolist()]
    return windows


def merged(windows: list[Maintenance]) -> tuple[Maintenance, ...]:
    """Return the windows with those of a node that overlap or touch as one; its notice is that of the first."""
    found: list[Maintenance] = []
    for window in sorted(windows, key=lambda w: (w.node, w.down_time, w.up_time)):
        last = found[-1] if found else None
        if last is not None and last.node == window.node and window.down_time <= last.up_time:
            found[-1] = replace(last, up_time=max(last.up_time, window.up_time))
        else:
            found.append(window)
    return tuple(found)
