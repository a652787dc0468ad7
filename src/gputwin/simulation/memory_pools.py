"""Requests for shares of a GPU as partitions of its memory, some of which only jobs of high priority may hold."""

from __future__ import annotations

import math

from gputwin.core.errors import UserError
from gputwin.simulation.cluster import Cluster
from gputwin.simulation.engine.state.records import WHOLE, Flags, Records

PARTITIONS = 8


def partition_mib(cluster: Cluster) -> float | None:
    """Return the MiB of one partition; None where GPU memory is not known. Of several sizes the smallest counts."""
    groups = [group for group in cluster.groups if group.gpus > 0]
    if not groups:
        raise UserError("sharing 'memory': the cluster has no GPUs")
    known = [group.gpu_memory_mib for group in groups if group.gpu_memory_mib is not None]
    return min(known) / PARTITIONS if len(known) == len(groups) else None


def partition_requests(requests: Records, is_high: Flags, reserved: int, mib: float | None) -> None:
    """Make memory of requests partitions, in place: the bits it covers, and where it may begin.

    Places of one size do not overlap. Low priority counts them from the first partition and ends before the reserved ones,
    high priority from the last one, so it takes the reserved ones first.
    """
    for request, high in zip(requests, is_high, strict=True):
        if request["gpu_count"] == 0:
            continue
        whole = request["gpu_milli"] == WHOLE
        parts = PARTITIONS if whole else _parts(int(request["gpu_milli"]), int(request["gpu_memory"]), mib)
        if whole or high:
            starts = range(PARTITIONS - parts, -1, -parts)
        else:
            starts = range(0, PARTITIONS - reserved - parts + 1, parts)
        if starts:
            request["gpu_memory"], request["starts"] = (1 << parts) - 1, sum(1 << start for start in starts)
        else:
            # It would reach beyond the last partition, which is never free: it never fits.
            request["gpu_memory"], request["starts"] = (1 << PARTITIONS) - 1, 1 << PARTITIONS - 1


def _parts(milli: int, memory_mib: int, mib: float | None) -> int:
    """Return how many partitions a share of a GPU needs."""
    asked = milli * PARTITIONS / WHOLE if mib is None or memory_mib == 0 else memory_mib / mib
    return min(max(math.ceil(asked - 1e-9), 1), PARTITIONS)
