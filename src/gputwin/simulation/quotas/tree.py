"""A tree of quotas: cohorts inside, queues as leaves, and how much of each resource a queue may still take.

The rules are those of Kueue's hierarchical cohorts (design KEP-79): a node owns its nominal quota and what its children
lend it; its lending limit keeps the rest for itself (its guaranteed quota); its borrowing limit bounds what it takes from
above. Amounts are whole numbers in float64 (milli-CPU, bytes, GPUs), so that sums are exact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputwin.core.errors import UserError

Amounts = NDArray[np.float64]


class FlavorResource(NamedTuple):
    """One resource of one flavor: GPUs of the flavor "spot", say."""

    flavor: str
    resource: str


class Quota(NamedTuple):
    """The quota of one resource at one node; infinite limits mean none."""

    nominal: float = 0.0
    borrowing_limit: float = np.inf
    lending_limit: float = np.inf


@dataclass(frozen=True)
class PreemptionPolicy:
    """Whom a queue may preempt: Never, LowerPriority, LowerOrNewerEqualPriority or Any."""

    within_queue: str = "Never"
    reclaim_within_cohort: str = "Never"
    borrow_within_cohort: bool = False
    max_priority_threshold: int | None = None


@dataclass(frozen=True)
class QuotaNode:
    """A queue (a leaf, which has workloads) or a cohort (which has children)."""

    name: str
    parent: str | None = None
    quotas: Mapping[FlavorResource, Quota] = field(default_factory=dict)
    weight: float = 1.0
    is_queue: bool = True
    preemption: PreemptionPolicy = field(default_factory=PreemptionPolicy)


@dataclass(frozen=True)
class QuotaTree:
    """Nodes in flat arrays, parents before children, and one column per resource of a flavor."""

    nodes: tuple[QuotaNode, ...]
    resources: tuple[FlavorResource, ...]
    parent: NDArray[np.int64]
    """Index of the parent; −1 at a root."""
    children: tuple[tuple[int, ...], ...]
    subtree: Amounts
    """What a node owns: its nominal quota and what its children lend it."""
    guaranteed: Amounts
    """The part of `subtree` that is not lent to the parent."""
    borrowing: Amounts
    weight: Amounts

    def queue(self, name: str) -> int:
        """Return the index of the queue `name`."""
        for i, node in enumerate(self.nodes):
            if node.is_queue and node.name == name:
                return i
        known = ", ".join(node.name for node in self.nodes if node.is_queue)
        raise UserError(f"no queue '{name}' in the quotas; there are: {known or 'none'}")

    def path(self, n: int) -> list[int]:
        """Return the ancestors of node n, its parent first, the root last."""
        above = []
        n = int(self.parent[n])
        while n >= 0:
            above.append(n)
            n = int(self.parent[n])
        return above

    def no_usage(self) -> Amounts:
        """Return usage of nothing: a row per node, a column per resource."""
        return np.zeros(self.subtree.shape)


def build_tree(nodes: Sequence[QuotaNode], extra: Sequence[FlavorResource] = ()) -> QuotaTree:
    """Return the tree of these nodes; a parent that is only named becomes a cohort without quota of its own."""
    cohorts = {node.name: node for node in nodes if not node.is_queue}
    for node in nodes:
        if node.parent is not None and node.parent not in cohorts:
            cohorts[node.parent] = QuotaNode(node.parent, is_queue=False)
    queues = [node for node in nodes if node.is_queue]
    for kind, names in (("queue", [q.name for q in queues]), ("cohort", [c.name for c in nodes if not c.is_queue])):
        twice = {name for name in names if names.count(name) > 1}
        if twice:
            raise UserError(f"{kind} '{min(twice)}' is defined twice; keep one")
    ordered = [*_parents_first(cohorts), *queues]
    index = {node.name: i for i, node in enumerate(ordered) if not node.is_queue}
    parent = np.array([-1 if n.parent is None else index[n.parent] for n in ordered], dtype=np.int64)
    resources = tuple(sorted({fr for n in ordered for fr in n.quotas} | set(extra)))
    children = tuple(tuple(i for i, p in enumerate(parent) if p == n) for n in range(len(ordered)))
    quotas = [[n.quotas.get(fr, Quota()) for fr in resources] for n in ordered]
    size = (len(ordered), len(resources))
    subtree = np.array([[q.nominal for q in row] for row in quotas], dtype=float).reshape(size)
    lending = np.array([[q.lending_limit for q in row] for row in quotas], dtype=float).reshape(size)
    borrowing = np.array([[q.borrowing_limit for q in row] for row in quotas], dtype=float).reshape(size)
    guaranteed = np.zeros(size)
    for n in range(len(ordered) - 1, -1, -1):
        guaranteed[n] = np.maximum(0.0, subtree[n] - lending[n])
        if parent[n] >= 0:
            subtree[parent[n]] += subtree[n] - guaranteed[n]
    weight = np.array([n.weight for n in ordered], dtype=float)
    return QuotaTree(tuple(ordered), resources, parent, children, subtree, guaranteed, borrowing, weight)


def _parents_first(cohorts: Mapping[str, QuotaNode]) -> list[QuotaNode]:
    """Return the cohorts, each after its parent; a cycle is a user error."""
    ordered: list[QuotaNode] = []
    done: set[str] = set()
    for name in cohorts:
        chain: list[str] = []
        at: str | None = name
        while at is not None and at not in done:
            if at in chain:
                raise UserError(f"cohort '{at}' is its own ancestor ({' → '.join([*chain, at])}); break the cycle")
            chain.append(at)
            at = cohorts[at].parent
        done.update(chain)
        ordered.extend(cohorts[c] for c in reversed(chain))
    return ordered
