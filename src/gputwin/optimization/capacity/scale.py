"""A cluster made larger or smaller one node at a time, its mix of node types kept."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import replace

from gputwin.core.errors import UserError
from gputwin.simulation.cluster import MOST_NODES, Cluster

Counts = tuple[int, ...]


def with_counts(cluster: Cluster, counts: Sequence[int]) -> Cluster:
    """Return the cluster with so many nodes in each group; groups of none keep their place in the counts alone."""
    groups = tuple(replace(g, count=n) for g, n in zip(cluster.groups, counts, strict=True) if n)
    if not groups:
        raise UserError("a cluster needs at least one node")
    return replace(cluster, groups=groups, node_ids=None)


def mix_of(cluster: Cluster, nodes: int) -> Counts:
    """Return the nodes of each group for `nodes` in all, in the proportions of the cluster, at least one of each.

    By Webster's method (Balinski and Young, Fair Representation, 1982), which never takes a node from a group when the
    total grows: the cluster of n + 1 nodes is that of n and one more.
    """
    wanted = [g.count for g in cluster.groups]
    least = len(wanted)
    if not least <= nodes <= MOST_NODES:
        raise UserError(
            f"a cluster of {least} node types has between {least:,} and {MOST_NODES:,} nodes, not {nodes:,}"
        )
    # A head start near the end result, from which the same steps lead on.
    share = max(nodes - least, 0) / sum(wanted)
    counts = [max(1, int(w * share * (1 - 1e-9)) - 1) for w in wanted]
    heap = [(-w / (2 * n + 1), i) for i, (w, n) in enumerate(zip(wanted, counts, strict=True))]
    heapq.heapify(heap)
    for _ in range(nodes - sum(counts)):
        _, i = heap[0]
        counts[i] += 1
        heapq.heapreplace(heap, (-wanted[i] / (2 * counts[i] + 1), i))
    return tuple(counts)
