"""A tree of tenants with weights: hierarchical DRF's shares, and Slurm's fair-share factors.

Nodes lie in flat arrays, the root first and parents before children; the leaves are the tenants.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gputwin.simulation.engine.compiled import compiled
from gputwin.simulation.engine.state.records import Floats, SmallInts, wide


class ShareTree(NamedTuple):
    """n is a node, t a tenant, r a resource."""

    parent: SmallInts  # [n]; -1: the root
    weight: Floats  # [n] among its siblings
    first: SmallInts  # [n + 1] where its children begin in `children`
    children: SmallInts
    leaf: SmallInts  # [t] its node
    parts: Floats  # [n, r] scratch: of the cluster, held below, as the parent counts it
    share: Floats  # [n] scratch: the weighted share
    job: SmallInts  # [n] scratch: the first job below that may start; -1: none
    used: Floats  # [n] scratch: usage below
    level: Floats  # [n] scratch: shares over usage, among its siblings
    ranked: SmallInts  # [t] tenants by level from the root down, the highest first; kept, since it changes little
    path: SmallInts  # [t, depth] nodes from below the root to its own; -1: the path has ended


def make_share_tree(parent: Sequence[int], weight: Sequence[float], leaf: Sequence[int], resources: int) -> ShareTree:
    """Return the tree of these nodes, of which nothing is held or used; `leaf` is the node of each tenant."""
    nodes, tenants = len(parent), len(leaf)
    above = np.array(parent, np.int32)
    paths = [_path(parent, n) for n in leaf]
    depth = max((len(p) for p in paths), default=0)
    return ShareTree(
        parent=above,
        weight=np.array(weight, np.float64),
        first=np.searchsorted(np.sort(above), np.arange(nodes + 1)).astype(np.int32),
        children=np.argsort(above, kind="stable").astype(np.int32),
        leaf=np.array(leaf, np.int32),
        parts=np.zeros((nodes, resources)),
        share=np.zeros(nodes),
        job=np.full(nodes, -1, np.int32),
        used=np.zeros(nodes),
        level=np.zeros(nodes),
        ranked=np.arange(tenants, dtype=np.int32),
        path=np.array([p + [-1] * (depth - len(p)) for p in paths], np.int32).reshape(tenants, depth),
    )


def _path(parent: Sequence[int], n: int) -> list[int]:
    return [] if parent[n] < 0 else [*_path(parent, parent[n]), n]


@compiled
def work_out_shares(tree: ShareTree, held: Floats, capacity: Floats) -> None:
    """Work out the weighted share of each node by H-DRF, given who may start (`job`, filled at the leaves).

    Children's holdings are scaled to the lowest share of those below whom somebody may start, then added up.
    """
    for t in range(tree.leaf.size):
        n = wide(tree.leaf[t])
        for r in range(capacity.size):
            tree.parts[n, r] = held[t, r] / capacity[r] if held[t, r] > 0.0 else 0.0
    for n in range(tree.parent.size - 1, -1, -1):
        if tree.first[n] < tree.first[n + 1]:
            _add_up(tree, n)
        largest = 0.0
        for r in range(capacity.size):
            largest = max(largest, tree.parts[n, r])
        tree.share[n] = largest / tree.weight[n]


@compiled
def _add_up(tree: ShareTree, n: int) -> None:
    lowest, lowest_of_all, job = np.inf, np.inf, wide(-1)
    for k in range(tree.first[n], tree.first[n + 1]):
        c = wide(tree.children[k])
        lowest_of_all = min(lowest_of_all, tree.share[c])
        if tree.job[c] >= 0:
            lowest = min(lowest, tree.share[c])
            job = wide(tree.job[c]) if job < 0 else min(job, wide(tree.job[c]))
    tree.job[n] = job
    if job < 0:
        lowest = lowest_of_all
    for r in range(tree.parts.shape[1]):
        tree.parts[n, r] = 0.0
    for k in range(tree.first[n], tree.first[n + 1]):
        c = wide(tree.children[k])
        if tree.share[c] > 0.0:
            for r in range(tree.parts.shape[1]):
                tree.parts[n, r] += lowest / tree.share[c] * tree.parts[c, r]


@compiled
def whose_turn(tree: ShareTree) -> int:
    """Return the first job below the leaf reached from the root by the lowest share; -1: nobody may start.

    Of equal shares, that of the job submitted first.
    """
    n = wide(0)
    while tree.job[n] >= 0 and tree.first[n] < tree.first[n + 1]:
        best = wide(-1)
        for k in range(tree.first[n], tree.first[n + 1]):
            c = wide(tree.children[k])
            if tree.job[c] < 0:
                continue
            lower = best < 0 or tree.share[c] < tree.share[best]
            if lower or (tree.share[c] == tree.share[best] and tree.job[c] < tree.job[best]):
                best = c
        n = best
    return wide(tree.job[n])


@compiled
def fair_tree_factors(tree: ShareTree, factors: Floats) -> None:
    """Write rank / tenants of each tenant by Slurm's fair tree; `used` is filled at the leaves.

    Tenants go by the levels (shares over usage among siblings) on their path; equal paths, and one that begins the other,
    share a rank.
    """
    _sum_up_usage(tree)
    for n in range(1, tree.parent.size):
        p = wide(tree.parent[n])
        weights = 0.0
        for k in range(tree.first[p], tree.first[p + 1]):
            weights += tree.weight[tree.children[k]]
        used = tree.used[n]
        tree.level[n] = np.inf if used <= 0.0 else tree.weight[n] / weights / (used / tree.used[p])
    count = tree.leaf.size
    for i in range(1, count):
        t, k = tree.ranked[i], i
        while k > 0 and _goes_before(tree, wide(t), wide(tree.ranked[k - 1])):
            tree.ranked[k] = tree.ranked[k - 1]
            k -= 1
        tree.ranked[k] = t
    rank = count
    for i in range(count):
        if i > 0 and not _are_tied(tree, wide(tree.ranked[i - 1]), wide(tree.ranked[i])):
            rank = count - i
        factors[tree.ranked[i]] = rank / count


@compiled
def _sum_up_usage(tree: ShareTree) -> None:
    for n in range(tree.parent.size):
        if tree.first[n] < tree.first[n + 1]:
            tree.used[n] = 0.0
    for n in range(tree.parent.size - 1, 0, -1):
        tree.used[tree.parent[n]] += tree.used[n]


@compiled
def _goes_before(tree: ShareTree, a: int, b: int) -> bool:
    """Return whether tenant a goes before b: a higher level where their paths part, or the shorter path."""
    for d in range(tree.path.shape[1]):
        n, m = wide(tree.path[a, d]), wide(tree.path[b, d])
        if n < 0 or m < 0:
            return n < 0 and m >= 0
        if tree.level[n] != tree.level[m]:
            return tree.level[n] > tree.level[m]
    return False


@compiled
def _are_tied(tree: ShareTree, a: int, b: int) -> bool:
    for d in range(tree.path.shape[1]):
        n, m = wide(tree.path[a, d]), wide(tree.path[b, d])
        if n < 0 or m < 0:
            return True
        if tree.level[n] != tree.level[m]:
            return False
    return True


@compiled
def classic_factors(tree: ShareTree, factors: Floats, dampening: float) -> None:
    """Write each tenant's classic factor 2^(−effective usage / shares / dampening); `used` is filled at the leaves."""
    _sum_up_usage(tree)
    total = tree.used[0]
    # Of the root, `share` is all and `level` (effective usage) is not asked for.
    tree.share[0] = 1.0
    for n in range(1, tree.parent.size):
        p = wide(tree.parent[n])
        weights = 0.0
        for k in range(tree.first[p], tree.first[p + 1]):
            weights += tree.weight[tree.children[k]]
        tree.share[n] = tree.share[p] * tree.weight[n] / weights
        own = tree.used[n] / total if total > 0.0 else 0.0
        tree.level[n] = own if p == 0 else own + (tree.level[p] - own) * tree.weight[n] / weights
    for t in range(tree.leaf.size):
        n = wide(tree.leaf[t])
        factors[t] = 2.0 ** (-tree.level[n] / tree.share[n] / dampening)
