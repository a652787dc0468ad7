"""What the cluster looked like over time: exact time-weighted means per bin, and fragmentation at each bin's end.

Fragmentation is the FGD paper's (Weng et al., ATC'23, section 3): the GPU share that jobs of the typical workload could
not use, weighted by their popularity. It is recomputed only for nodes that changed since the last bin.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from gputwin.simulation.engine.compiled import compiled

from gputwin.simulation.engine.index import Index
from gputwin.simulation.engine.state import Floats, Ints, Knobs, Nodes

CPU, MEMORY, DISK, RDMA, WAITING_JOBS, RUNNING_JOBS, FIXED = 0, 1, 2, 3, 4, 5, 6


class Series(NamedTuple):
    """Bins of `width` seconds from `begin`; values[bin] = fixed columns, then used milli-GPU per model."""

    begin: Floats  # [1]
    width: Floats  # [1]
    values: Floats  # [bin, FIXED + models]: integrals until the run ends, then means
    fragmentation: Floats  # [bin] milli-GPU at the bin's end
    bin: Ints  # [1]
    clock: Floats  # [1] time up to which values are integrated
    used: Floats  # [FIXED + models] present levels' capacities: used = capacity − free
    node_fragmentation: Floats  # [n]
    total_fragmentation: Floats  # [1]
    seen: Ints  # [1] log position


def make_series(begin: float, width: float, bins: int, capacity: Floats, nodes: int) -> Series:
    """Return empty bins; `capacity` are the totals of CPU, memory, disk, RDMA, then GPU per model."""
    levels = np.zeros(FIXED + capacity.size - 4)
    levels[:4] = capacity[:4]
    levels[FIXED:] = capacity[4:]
    return Series(
        begin=np.array([begin]),
        width=np.array([width]),
        values=np.zeros((bins, levels.size)),
        fragmentation=np.zeros(bins),
        bin=np.zeros(1, np.int64),
        clock=np.array([begin]),
        used=levels,
        node_fragmentation=np.zeros(nodes),
        total_fragmentation=np.zeros(1),
        seen=np.full(1, -1, np.int64),
    )


@compiled
def advance(series: Series, nodes: Nodes, index: Index, knobs: Knobs, waiting: int, running: int, now: float) -> None:
    """Integrate the present levels up to `now`, closing the bins passed on the way."""
    bins = series.values.shape[0]
    while series.bin[0] < bins:
        end = series.begin[0] + (series.bin[0] + 1) * series.width[0]
        until = min(end, now)
        passed = until - series.clock[0]
        if passed > 0:
            row = series.values[series.bin[0]]
            for k in range(4):
                row[k] += passed * (series.used[k] - nodes.total_free[k])
            row[WAITING_JOBS] += passed * waiting
            row[RUNNING_JOBS] += passed * running
            for m in range(nodes.model_free.size):
                row[FIXED + m] += passed * (series.used[FIXED + m] - nodes.model_free[m])
            series.clock[0] = until
        if end > now:
            return
        series.fragmentation[series.bin[0]] = fragmentation_now(series, nodes, index, knobs)
        series.bin[0] += 1


@compiled
def fragmentation_now(series: Series, nodes: Nodes, index: Index, knobs: Knobs) -> float:
    """Return the cluster's fragmented milli-GPU, recomputing only nodes that changed."""
    if knobs.typical_share.size == 0:
        return 0.0
    end, seen = index.log_end[0], series.seen[0]
    series.seen[0] = end
    if seen < 0 or end - seen > nodes.cpu.size:
        total = 0.0
        for n in range(nodes.cpu.size):
            series.node_fragmentation[n] = fragmentation(nodes, knobs, n)
            total += series.node_fragmentation[n]
        series.total_fragmentation[0] = total
    else:
        mask = index.log.size - 1
        for k in range(seen, end):
            n = index.log[k & mask]
            value = fragmentation(nodes, knobs, n)
            series.total_fragmentation[0] += value - series.node_fragmentation[n]
            series.node_fragmentation[n] = value
    return float(series.total_fragmentation[0])


@compiled
def fragmentation(nodes: Nodes, knobs: Knobs, n: int) -> float:
    """Return the milli-GPU of node n that the typical workload could not use, in expectation."""
    total = 0.0
    for k in range(knobs.typical_share.size):
        total += knobs.typical_share[k] * unusable(
            nodes, n, knobs.typical_cpu[k], knobs.typical_milli[k], knobs.typical_count[k]
        )
    return total


@compiled
def unusable(nodes: Nodes, n: int, cpu: int, milli: int, count: int) -> int:
    """Return the idle milli-GPU of node n that one job of (cpu, milli, count) cannot use."""
    idle = nodes.gpu_total_free[n]
    if count == 0 or nodes.cpu_free[n] < cpu:
        return int(idle)
    fitting, below = 0, 0
    for d in range(nodes.gpu_count[n]):
        free = nodes.gpu_free[n, d]
        if free >= milli:
            fitting += 1
        else:
            below += free
    return int(below) if fitting >= count else int(idle)
