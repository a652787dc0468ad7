"""A tree of quotas as the engine keeps it (`engine/state/cohorts.py`), made from queues, cohorts and what jobs ask for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gputwin.simulation.engine.state.cohorts import ANY, LOWER, LOWER_OR_NEWER, NEVER, Cohorts
from gputwin.simulation.engine.state.records import Floats, Ints
from gputwin.simulation.quotas.balance import potential
from gputwin.simulation.quotas.fair import FINAL_SHARE, INITIAL_SHARE
from gputwin.simulation.quotas.tree import QuotaTree

_POLICIES = {"Never": NEVER, "LowerPriority": LOWER, "LowerOrNewerEqualPriority": LOWER_OR_NEWER, "Any": ANY}


def make_cohorts(
    tree: QuotaTree,
    queue_of: Ints,
    amounts: Floats,
    jobs: int,
    strategies: Sequence[str] = (FINAL_SHARE, INITIAL_SHARE),
) -> Cohorts:
    """Return the tree with no usage: `queue_of` is the node of each tenant, `amounts` what a job of each class asks for."""
    nodes, columns = tree.subtree.shape
    sizes = [len(children) for children in tree.children]
    names = sorted({resource for _, resource in tree.resources})
    lendable = np.zeros((nodes, len(names)))
    for n in range(nodes):
        for r, (_, resource) in enumerate(tree.resources):
            if tree.parent[n] >= 0:
                most = potential(tree.parent, tree.subtree, tree.guaranteed, tree.borrowing, int(tree.parent[n]), r)
                lendable[n, names.index(resource)] += most
    policies = [node.preemption for node in tree.nodes]
    thresholds = [p.max_priority_threshold for p in policies]
    by_name = np.argsort(np.argsort([node.name for node in tree.nodes], kind="stable"), kind="stable")
    return Cohorts(
        parent=tree.parent,
        first_child=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        children=np.array([c for children in tree.children for c in children], np.int64),
        is_queue=np.array([node.is_queue for node in tree.nodes], np.int64),
        name_rank=by_name.astype(np.int64),
        subtree=tree.subtree,
        guaranteed=tree.guaranteed,
        borrowing=tree.borrowing,
        usage=tree.no_usage(),
        weight=tree.weight,
        resource_of=np.array([names.index(resource) for _, resource in tree.resources], np.int64),
        lendable=lendable,
        within=np.array([_POLICIES[p.within_queue] for p in policies], np.int64),
        reclaims=np.array([_POLICIES[p.reclaim_within_cohort] for p in policies], np.int64),
        borrows=np.array([p.borrow_within_cohort for p in policies], np.int64),
        threshold=np.array([np.inf if t is None else float(t) for t in thresholds]),
        queue_of=queue_of.astype(np.int64),
        amounts=amounts,
        final_share=np.array([FINAL_SHARE in strategies, INITIAL_SHARE in strategies], np.int64),
        stopped_in=np.full(amounts.shape[0], -1, np.int64),
        winner=np.full(nodes, -1, np.int32),
        lowest=np.zeros((nodes, 2)),
        latest=np.full(nodes, -1, np.int32),
        before=np.full(jobs, -1, np.int32),
        after=np.full(jobs, -1, np.int32),
        evicted=np.zeros(jobs, np.int32),
        local_queue=np.zeros(jobs, np.int32),
        local_usage=np.full(jobs, np.nan),
        contested=np.zeros(columns, np.bool_),
        remaining=np.zeros(columns),
        marks=np.zeros((nodes, 3), np.int32),
        ranges=np.zeros((nodes, 2), np.int32),
        skipped=np.zeros(nodes, np.int32),
        stack=np.zeros(nodes + 1, np.int32),
        candidates=np.zeros((jobs + 1, 4), np.int32),
        order=np.zeros(jobs + 1, np.int32),
        victims=np.zeros((jobs + 1, 2), np.int32),
    )


def in_whole_units(cohorts: Cohorts, scale: Sequence[int]) -> Cohorts:
    """Return the same in units of which jobs ask for whole numbers: `scale` of them are one unit of each column.

    Whole numbers are added and taken away without rounding, so that usage after a trial is what it was before.
    """
    times = np.array(scale, np.float64)
    lendable = cohorts.lendable.copy()
    for r, resource in enumerate(cohorts.resource_of.tolist()):
        lendable[:, resource] = cohorts.lendable[:, resource] * times[r]
    return cohorts._replace(
        subtree=cohorts.subtree * times,
        guaranteed=cohorts.guaranteed * times,
        borrowing=cohorts.borrowing * times,
        amounts=np.rint(cohorts.amounts * times),
        lendable=lendable,
    )
