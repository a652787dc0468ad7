"""Hierarchical DRF: from the root down, the child with the lowest share, where blocked parts of the tree do not count.

Bhattacharya et al., Hierarchical Scheduling for Diverse Datacenter Workloads, SoCC 2013. Plain recursion of DRF starves:
it adds up what children hold (a child that holds much of one resource makes its siblings look served), and it waits for
the child with the lowest share even if nothing it can use is left. H-DRF scales the children's holdings to the lowest
share among those not blocked before adding them up, and passes over the blocked.

In a run a tenant is blocked if none of its jobs waits or fits; shares are worked out before each start
(`engine/passes/fair_tree.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputwin.simulation.fairness.drf import NEGLIGIBLE, Table
from gputwin.simulation.policy import FAIRNESS, FairnessRule


@dataclass(frozen=True)
class ShareTree:
    """Nodes in flat arrays, parents before children: index of the parent (−1 at the root) and weight among siblings."""

    parent: NDArray[np.int64]
    weight: Table

    def children(self) -> list[list[int]]:
        """Return the children of each node."""
        below: list[list[int]] = [[] for _ in self.parent]
        for n, p in enumerate(self.parent):
            if p >= 0:
                below[p].append(n)
        return below


class TreeShares(NamedTuple):
    """The weighted share of each node, and whether nothing below it can be given anything."""

    share: Table
    blocked: NDArray[np.bool_]


def hierarchical_shares(tree: ShareTree, held: Table, capacity: Table, blocked_leaf: NDArray[np.bool_]) -> TreeShares:
    """Return the shares by H-DRF; `held` has a row per node, filled at the leaves."""
    below = tree.children()
    parts = held / capacity
    share = np.zeros(tree.parent.size)
    blocked = blocked_leaf.copy()
    for n in range(tree.parent.size - 1, -1, -1):
        if below[n]:
            blocked[n] = all(blocked[c] for c in below[n])
            open_shares = [share[c] for c in below[n] if not blocked[c]]
            lowest = min(open_shares, default=min(share[c] for c in below[n]))
            scale = [lowest / share[c] if share[c] > 0 else 0.0 for c in below[n]]
            parts[n] = sum(s * parts[c] for s, c in zip(scale, below[n], strict=True))
        share[n] = parts[n].max() / tree.weight[n]
    return TreeShares(share, blocked)


def naive_shares(tree: ShareTree, held: Table, capacity: Table) -> TreeShares:
    """Return the shares of plain recursion: a node holds what its children hold, and none is ever passed over."""
    parts = held / capacity
    for n in range(tree.parent.size - 1, 0, -1):
        parts[tree.parent[n]] += parts[n]
    return TreeShares(parts.max(axis=1) / tree.weight, np.zeros(tree.parent.size, dtype=bool))


def fill_tree(
    tree: ShareTree,
    demands: Table,
    capacity: Table,
    tasks: NDArray[np.int64],
    *,
    naive: bool = False,
    held_before: Table | None = None,
) -> NDArray[np.int64]:
    """Return the tasks given to each leaf, one at a time, until nobody can be given more.

    `demands` and `tasks` have a row per node, used at the leaves. `held_before` is what leaves hold already. With
    `naive` plain recursion decides, which stops as soon as the leaf whose turn it is cannot be served.
    """
    below = tree.children()
    leaf = np.array([not b for b in below])
    held = np.zeros(demands.shape) if held_before is None else held_before.astype(float)
    count = np.zeros(tree.parent.size, dtype=np.int64)
    while True:
        free = capacity - held[leaf].sum(axis=0) + NEGLIGIBLE * capacity
        cannot = leaf & ((demands > free).any(axis=1) | (count >= tasks))
        if naive:
            shares = naive_shares(tree, np.where(leaf[:, None], held, 0.0), capacity)
            # Without demand left there is no turn to wait for; without room there is.
            shares = TreeShares(shares.share, _up(tree, below, leaf & (count >= tasks)))
        else:
            shares = hierarchical_shares(tree, np.where(leaf[:, None], held, 0.0), capacity, cannot)
        if shares.blocked[0]:
            return count
        n = 0
        while below[n]:
            n = min((c for c in below[n] if not shares.blocked[c]), key=lambda c: (shares.share[c], c))
        if cannot[n]:
            return count
        held[n] += demands[n]
        count[n] += 1


def _up(tree: ShareTree, below: list[list[int]], blocked: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which nodes have only blocked leaves below."""
    blocked = blocked.copy()
    for n in range(tree.parent.size - 1, -1, -1):
        if below[n]:
            blocked[n] = all(blocked[c] for c in below[n])
    return blocked


FAIRNESS.add(
    FairnessRule(
        "hdrf",
        "from the root of the tree of tenants down, the child with the lowest dominant share goes next; siblings' holdings "
        "are scaled to the least served one that can start a job; without groups it is drf",
        source="Bhattacharya et al., Hierarchical Scheduling for Diverse Datacenter Workloads, SoCC'13",
        turns_by="tree",
    )
)
