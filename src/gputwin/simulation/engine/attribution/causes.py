"""Why jobs wait: every waiting second is charged to one cause, and the causes of a job sum to its wait.

Jobs of one shape are blocked by the same thing, so each shape has one clock per cause and only the clock of its present
cause runs. A job's share is what the clocks advanced between its submit and its start. Under strict head-of-line order
only the first job is blocked by the cluster, so it alone has a clock of its own and all others wait behind it.

A shape's cause is looked at again at the end of every scheduling pass.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gputwin.simulation.engine.compiled import compiled
from gputwin.simulation.engine.state.records import Floats, Ints, Records

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
    """Clocks per shape and cause, each job's share, and the clock of the job at the head of the line."""

    clock: Floats  # [s, cause]
    share: Floats  # [j, cause]: the clocks at submit while it waits, its share once it started
    head: Ints  # job blocked at the head of the line (-1: none), and its cause
    head_clock: Floats  # [cause], then since when its cause holds


def make_causes(jobs: int, shapes: int) -> Causes:
    """Return clocks at zero."""
    return Causes(
        np.zeros((shapes, CAUSES)), np.zeros((jobs, CAUSES)), np.array([-1, 0], np.int64), np.zeros(CAUSES + 1)
    )


@compiled
def blame(causes: Causes, shapes: Records, s: int, cause: int, now: float) -> None:
    """Say that from now on jobs of shape s wait for `cause`."""
    shape = shapes[s]
    causes.clock[s, shape.cause] += now - shape.since
    shape.cause = cause
    shape.since = now


@compiled
def begin_wait(causes: Causes, shapes: Records, s: int, j: int, now: float) -> None:
    """Note the clocks when job j starts to wait."""
    for c in range(CAUSES):
        causes.share[j, c] = causes.clock[s, c]
    causes.share[j, shapes[s].cause] += now - shapes[s].since


@compiled
def end_wait(causes: Causes, shapes: Records, s: int, j: int, submit: float, now: float) -> None:
    """Turn the clocks noted for job j into its share of each cause; the shares sum to its wait exactly."""
    for c in range(CAUSES):
        passed = causes.clock[s, c] + (now - shapes[s].since if c == shapes[s].cause else 0.0)
        causes.share[j, c] = max(passed - causes.share[j, c], 0.0)
    if causes.head[0] == j:
        causes.head_clock[causes.head[1]] += now - causes.head_clock[CAUSES]
        for c in range(CAUSES):
            causes.share[j, c] += causes.head_clock[c]
            causes.share[j, BEHIND] -= causes.head_clock[c]
        causes.head[0] = -1
    _settle(causes, j, now - submit)


@compiled
def _settle(causes: Causes, j: int, wait: float) -> None:
    """Put the rounding error of clock differences on the largest share, so that the sum is the wait."""
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
    old = causes.head[0]
    if old >= 0:
        causes.head_clock[causes.head[1]] += now - causes.head_clock[CAUSES]
    if old != j:
        if old >= 0:
            # Overtaken: what it waited for at the head is put into its noted clocks, and shows when it starts.
            for c in range(CAUSES):
                causes.share[old, c] -= causes.head_clock[c]
                causes.share[old, BEHIND] += causes.head_clock[c]
        causes.head[0] = j
        causes.head_clock[:] = 0.0
    causes.head[1] = cause
    causes.head_clock[CAUSES] = now
