"""Why jobs wait: every waiting second is charged to one cause, and the causes of a job sum to its wait.

Jobs of one shape are blocked by the same thing, so each shape has one clock per cause and only the clock of its present
cause runs. A job's share is what the clocks advanced between its submit and its start. Under strict head-of-line order
only the first job is blocked by the cluster, so it alone has a clock of its own and all others wait behind it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from gputwin.simulation.engine.compiled import compiled

from gputwin.simulation.engine.index import ALL, GPU_ONLY, NO_LIMIT, NO_LIMIT_NO_RDMA, Index
from gputwin.simulation.engine.state import Floats, Ints, Nodes, Requests, Shapes, SmallInts

CAUSE_NAMES = (
    "behind_other_job",
    "quota_or_fairness",
    "gpu_shortage",
    "gpu_model",
    "cpu_or_memory",
    "fragmentation",
    "max_per_node",
    "rdma",
    "node_startup",
    "outage",
)
BEHIND, QUOTA, GPU, GPU_MODEL, CPU_MEMORY, FRAGMENTATION, MAX_PER_NODE, RDMA, STARTUP, OUTAGE = range(10)
CAUSES = len(CAUSE_NAMES)


class Causes(NamedTuple):
    """Clocks per shape and cause, the present cause of each shape, and each job's share."""

    clock: Floats  # [s, cause]
    present: SmallInts  # [s]
    since: Floats  # [s]
    share: Floats  # [j, cause]: the clocks at submit while it waits, its share once it started
    head: Ints  # [1] job blocked at the head of the line; -1: none
    head_cause: Ints  # [1]
    head_since: Floats  # [1]
    head_clock: Floats  # [cause]


def make_causes(jobs: int, shapes: int) -> Causes:
    """Return clocks at zero."""
    return Causes(
        clock=np.zeros((shapes, CAUSES)),
        present=np.zeros(shapes, np.int32),
        since=np.zeros(shapes),
        share=np.zeros((jobs, CAUSES)),
        head=np.full(1, -1, np.int64),
        head_cause=np.zeros(1, np.int64),
        head_since=np.zeros(1),
        head_clock=np.zeros(CAUSES),
    )


@compiled
def blame(causes: Causes, s: int, cause: int, now: float) -> None:
    """Say that from now on jobs of shape s wait for `cause`."""
    causes.clock[s, causes.present[s]] += now - causes.since[s]
    causes.present[s] = cause
    causes.since[s] = now


@compiled
def begin_wait(causes: Causes, s: int, j: int, now: float) -> None:
    """Note the clocks when job j starts to wait."""
    for c in range(CAUSES):
        causes.share[j, c] = causes.clock[s, c]
    causes.share[j, causes.present[s]] += now - causes.since[s]


@compiled
def end_wait(causes: Causes, s: int, j: int, submit: float, now: float) -> None:
    """Turn the clocks noted for job j into its share of each cause; the shares sum to its wait exactly."""
    for c in range(CAUSES):
        passed = causes.clock[s, c] + (now - causes.since[s] if c == causes.present[s] else 0.0)
        causes.share[j, c] = max(passed - causes.share[j, c], 0.0)
    if causes.head[0] == j:
        causes.head_clock[causes.head_cause[0]] += now - causes.head_since[0]
        for c in range(CAUSES):
            causes.share[j, c] += causes.head_clock[c]
            causes.share[j, BEHIND] -= causes.head_clock[c]
        causes.head[0] = -1
    _settle(causes, j, now - submit)


@compiled
def _settle(causes: Causes, j: int, wait: float) -> None:
    """Put the rounding error of clock differences on the largest share."""
    for _ in range(4):
        total, largest = 0.0, 0
        for c in range(CAUSES):
            if causes.share[j, c] < 0.0:
                causes.share[j, c] = 0.0
            total += causes.share[j, c]
            if causes.share[j, c] > causes.share[j, largest]:
                largest = c
        if total == wait:
            return
        causes.share[j, largest] += wait - total


@compiled
def blame_head(causes: Causes, j: int, cause: int, now: float) -> None:
    """Say that job j, first in line, waits for `cause` from now on (it waited behind others before)."""
    if causes.head[0] != j:
        causes.head[0] = j
        causes.head_clock[:] = 0.0
    else:
        causes.head_clock[causes.head_cause[0]] += now - causes.head_since[0]
    causes.head_cause[0] = cause
    causes.head_since[0] = now


@compiled
def cause_of(nodes: Nodes, requests: Requests, shapes: Shapes, index: Index, s: int) -> int:
    """Return what keeps a job of shape s from starting now; its requests must be up to date in the index."""
    for g in range(shapes.first[s], shapes.first[s + 1]):
        r, size = shapes.request[g], shapes.size[g]
        if index.total[r, ALL] >= size:
            continue
        if requests.gpu_count[r] > 0:
            needed = size * requests.gpu_count[r] * requests.gpu_milli[r]
            allowed, everywhere = 0, 0
            for m in range(nodes.model_free.size):
                everywhere += nodes.model_free[m]
                if requests.allowed[r, m]:
                    allowed += nodes.model_free[m]
            if allowed < needed:
                return GPU_MODEL if everywhere >= needed else GPU
            if index.total[r, GPU_ONLY] < size:
                return FRAGMENTATION
        if index.total[r, NO_LIMIT] >= size:
            return MAX_PER_NODE
        if index.total[r, NO_LIMIT_NO_RDMA] >= size:
            return RDMA
        enough = (
            nodes.total_free[0] >= size * requests.cpu[r]
            and nodes.total_free[1] >= size * requests.memory[r]
            and nodes.total_free[2] >= size * requests.disk[r]
        )
        return FRAGMENTATION if requests.gpu_count[r] == 0 and enough else CPU_MEMORY
    # Each group would fit alone: together they get in each other's way.
    return FRAGMENTATION
