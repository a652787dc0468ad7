"""What can be fixed before anything is searched: pairs that fill a node exactly, where size is all that counts."""

from __future__ import annotations

from gputwin.optimization.placement.master import Column
from gputwin.optimization.placement.problem import Problem


def exact_pairs(problem: Problem) -> list[Column]:
    """Return nodes that some optimal packing has: each of two instances that fill it to the last unit.

    With one resource and nothing else to keep, whatever another packing puts beside the larger of the two fits in the
    place of the smaller (Martello and Toth, "Lower Bounds and Reduction Procedures for the Bin Packing Problem", 1990).
    """
    if not is_by_size(problem):
        return []
    capacity = problem.types[0].capacity[0]
    left = problem.counts.tolist()
    by_size: dict[int, list[int]] = {}
    for g, group in enumerate(problem.groups):
        by_size.setdefault(group.requests[0][0], []).append(g)
    found: list[Column] = []
    for size in sorted(by_size, reverse=True):
        if 2 * size <= capacity:
            break
        for larger in by_size[size]:
            for smaller in by_size.get(capacity - size, []):
                pairs = min(left[larger], left[smaller])
                left[larger] -= pairs
                left[smaller] -= pairs
                found += [(0, tuple(sorted(((larger, 1), (smaller, 1)))))] * pairs
    return found


def is_by_size(problem: Problem) -> bool:
    """Return whether size is all that counts: one resource, one node type of which there is any number, no other rule."""
    if len(problem.resources) != 1 or len(problem.types) != 1 or problem.types[0].supply is not None:
        return False
    if problem.conflicts or problem.rack_limits or problem.has_shares or problem.types[0].cost <= 0:
        return False
    return all(
        len(g.requests) == 1 and g.max_per_node is None and g.missing_cost is None and g.node_types is None
        for g in problem.groups
    )
