"""The dominant share of a queue or cohort: what it borrows of what its parent could lend, over its weight.

This is Kueue's share (KEP-1714), not the DRF paper's: only usage above a node's own quota counts, so who stays within
its quota has share 0 whatever it uses.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from gputwin.simulation.quotas.balance import potential
from gputwin.simulation.quotas.tree import Amounts, QuotaTree

MOST = 2**63 - 1
"""The rounded share of a node of weight 0 that borrows."""


class Share(NamedTuple):
    """A dominant share. `ratio` is per mille of the lendable amount, before the weight."""

    ratio: float
    resource: str
    weight: float
    borrowing: bool

    @property
    def order(self) -> tuple[int, float]:
        """A value to compare shares by: nodes of weight 0 that borrow come last, by their ratio."""
        if self.borrowing and self.weight == 0.0:
            return 1, self.ratio
        return 0, self.ratio / self.weight if self.ratio else 0.0

    @property
    def rounded(self) -> int:
        """The weighted share in whole per mille, rounded up."""
        infinite, value = self.order
        return MOST if infinite else math.ceil(value)


def dominant_share(tree: QuotaTree, usage: Amounts, n: int) -> Share:
    """Return the dominant share of node n; a root has none to borrow from."""
    weight = float(tree.weight[n])
    above = int(tree.parent[n])
    if above < 0:
        return Share(0.0, "", weight, False)
    borrowed: dict[str, float] = {}
    lendable: dict[str, float] = {}
    for r, (_, resource) in enumerate(tree.resources):
        excess = usage[n, r] - tree.subtree[n, r]
        if excess > 0.0:
            borrowed[resource] = borrowed.get(resource, 0.0) + float(excess)
        most = potential(tree.parent, tree.subtree, tree.guaranteed, tree.borrowing, above, r)
        lendable[resource] = lendable.get(resource, 0.0) + float(most)
    best, name = 0.0, ""
    for resource in sorted(borrowed):
        if lendable[resource] > 0.0:
            ratio = borrowed[resource] * 1000.0 / lendable[resource]
            if ratio > best:
                best, name = ratio, resource
    return Share(best, name, weight, bool(borrowed))
