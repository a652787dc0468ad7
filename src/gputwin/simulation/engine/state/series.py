"""What the cluster looked like over time: exact time-weighted means per bin, and fragmentation at each bin's end.

Fragmentation is the FGD paper's (Weng et al., ATC'23, section 3): the GPU share that jobs of the typical workload could
not use, weighted by their popularity. It is recomputed only for nodes that changed since the last bin.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gputwin.simulation.engine.compiled import compiled, inlined
from gputwin.simulation.engine.fit.index import LOG_END, Index
from gputwin.simulation.engine.state.records import Floats, Ints, Knobs, Machines, wide

WAITING_JOBS, RUNNING_JOBS, FRAGMENTED, USED = 0, 1, 2, 3
"""Columns of Series.values; from USED on: CPU, memory, disk, RDMA, then milli-GPU per model."""


class Series(NamedTuple):
    """Bins of equal width from the first submission on."""

    values: Floats  # [bin, column]: integrals over the bin, but fragmentation at its end
    clock: Floats  # begin, width, time integrated up to, fragmented milli-GPU now; last event, job-seconds waited, run
    position: Ints  # present bin, log position up to which fragmentation is known (-1: never)
    capacity: Ints  # like Machines.free, of the empty cluster


BEGIN, WIDTH, NOW, TOTAL, LAST, WAITED, RAN = range(7)


def make_series(begin: float, width: float, bins: int, capacity: Ints) -> Series:
    """Return empty bins."""
    return Series(
        np.zeros((bins, USED + capacity.size)),
        np.array([begin, width, begin, 0.0, begin, 0.0, 0.0]),
        np.array([0, -1], np.int64),
        capacity.copy(),
    )


@inlined
def advance(
    series: Series, machines: Machines, index: Index, knobs: Knobs, waiting: int, running: int, now: float
) -> None:
    """Integrate the present levels up to `now`, closing the bins passed on the way."""
    clock, position = series.clock, series.position
    clock[WAITED] += (now - clock[LAST]) * waiting
    clock[RAN] += (now - clock[LAST]) * running
    clock[LAST] = now
    while position[0] < series.values.shape[0]:
        end = clock[BEGIN] + (position[0] + 1) * clock[WIDTH]
        until = min(end, now)
        passed = until - clock[NOW]
        if passed > 0:
            row = series.values[position[0]]
            row[WAITING_JOBS] += passed * waiting
            row[RUNNING_JOBS] += passed * running
            for k in range(series.capacity.size):
                row[USED + k] += passed * (series.capacity[k] - machines.free[k])
            clock[NOW] = until
        if end > now:
            return
        series.values[position[0], FRAGMENTED] = fragmentation_now(series, machines, index, knobs)
        position[0] += 1


@compiled
def fragmentation_now(series: Series, machines: Machines, index: Index, knobs: Knobs) -> float:
    """Return the cluster's fragmented milli-GPU, recomputing only nodes that changed."""
    if knobs.typical.size == 0:
        return 0.0
    nodes = machines.nodes
    end, seen = index.log_end[LOG_END], series.position[1]
    series.position[1] = end
    anew = seen < 0 or end - seen > nodes.size
    if anew:
        series.clock[TOTAL] = 0.0
        seen, end = 0, nodes.size
    mask = index.log.size - 1
    for k in range(seen, end):
        n = k if anew else index.log[k & mask]
        value = fragmentation(machines, knobs, n, wide(0), wide(0), wide(0))
        series.clock[TOTAL] += value - (0.0 if anew else nodes[n].fragmentation)
        nodes[n].fragmentation = value
    return series.clock[TOTAL]


@compiled
def fragmentation(machines: Machines, knobs: Knobs, n: int, devices: int, milli: int, cpu: int) -> float:
    """Return the milli-GPU of node n that the typical workload could not use, in expectation.

    As if somebody more held `milli` of each of `devices`, a bit set, and `cpu` there; nothing is changed.
    Summed as the authors do, since the order of additions decides ties between nodes: kinds that lack both CPU and GPUs,
    kinds that lack GPUs or leave a part idle, kinds that lack CPU, kinds without GPUs (with and without room), kinds that
    may not run on the node's model; within each, the most frequent first.
    """
    node, gpus = machines.nodes[n], machines.gpus
    cpu_free, idle = node.cpu_free - cpu, node.gpu_free
    for d in range(node.gpu_count if devices != 0 else 0):
        idle -= milli * (devices >> d & 1)
    if idle == 0:
        return 0.0
    lack_both = lack_gpu = lack_cpu = without = without_room = no_access = 0.0
    for k in range(knobs.typical.size):
        kind = knobs.typical[k]
        enough_cpu = cpu_free >= kind.cpu
        if kind.count == 0:
            if enough_cpu:
                without += kind.share * idle
            else:
                without_room += kind.share * idle
            continue
        if not kind.models >> node.model & 1:
            no_access += kind.share * idle
            continue
        fitting, below = 0, 0
        for d in range(node.gpu_count):
            free = gpus[n, d].free - milli * (devices >> d & 1)
            if free >= kind.milli:
                fitting += 1
            else:
                below += free
        if fitting >= kind.count:
            if enough_cpu:
                lack_gpu += kind.share * below
            else:
                lack_cpu += kind.share * idle
        elif enough_cpu:
            lack_gpu += kind.share * idle
        else:
            lack_both += kind.share * idle
    return lack_both + lack_gpu + lack_cpu + without + without_room + no_access
