"""A tree of quotas as the engine keeps it: cohorts inside, queues as leaves, what each uses, and who runs in each queue."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gputwin.simulation.engine.state.records import Flags, Floats, Ints, SmallInts

NEVER, LOWER, LOWER_OR_NEWER, ANY = range(4)
"""Whom a queue may preempt: nobody, lower priorities, also newer workloads of the same, anybody."""
BY_QUEUE, BY_RECLAIM, BY_RECLAIM_BORROWING, BY_SHARE = range(4)
"""The rule that lets a victim go: see `gputwin.simulation.quotas.workloads`."""


class Cohorts(NamedTuple):
    """The tree, with parents before children; n is a node, r a resource of a flavor, s a class of jobs, j a job."""

    parent: Ints  # [n] -1 at a root
    first_child: Ints  # [n + 1] where a node's children begin in `children`
    children: Ints
    is_queue: Ints  # [n]
    name_rank: Ints  # [n] place of its name in the alphabet
    subtree: Floats  # [n, r] what a node owns
    guaranteed: Floats  # [n, r] the part it does not lend
    borrowing: Floats  # [n, r] what it may take from above
    usage: Floats  # [n, r]
    weight: Floats  # [n]
    resource_of: Ints  # [r] number of the resource, whatever the flavor, by name
    lendable: Floats  # [n, resource] the most that the parent could have
    within: Ints  # [n] whom a queue may preempt in itself
    reclaims: Ints  # [n] and in others
    borrows: Ints  # [n] 1: it may preempt though it borrows afterwards
    threshold: Floats  # [n] priorities up to which it may
    queue_of: Ints  # [t] the queue of a tenant's jobs
    amounts: Floats  # [s, r] what one job asks for
    final_share: Ints  # [2] 1: strategies of fair sharing in use: by final share, by initial share
    stopped_in: Ints  # [s] the last pass in which one of its jobs was stopped for another
    winner: SmallInts  # [n] scratch: the candidate that goes first of those below
    lowest: Floats  # [n, 2] scratch: its share
    latest: SmallInts  # [n] the job of a queue that started last; -1: none runs
    before: SmallInts  # [j] the job of the same queue that started before; -1: none
    after: SmallInts  # [j]
    evicted: SmallInts  # [j] 1: it is on its way out already
    local_queue: SmallInts  # [j]
    local_usage: Floats  # [j] what its local queue has used lately; not a number: that does not count
    contested: Flags  # [r] scratch, as all below: what an incoming job does not find free
    remaining: Floats  # [r]
    marks: SmallInts  # [n, 3] on the path of the preemptor; dropped; next candidate
    ranges: SmallInts  # [n, 2] where the candidates of a queue begin and end
    skipped: SmallInts  # [n] how many of them the first strategy refused
    stack: SmallInts  # [n]
    candidates: SmallInts  # [j, 4] job, common ancestor, rule, only without borrowing
    order: SmallInts  # [j] candidates in the order in which they go
    victims: SmallInts  # [j, 2] job, rule


ON_PATH, DROPPED, CURSOR = range(3)
"""Columns of Cohorts.marks."""
JOB_, ANCESTOR, RULE, ONLY = range(4)
"""Columns of Cohorts.candidates."""


def no_cohorts() -> Cohorts:
    """Return a tree without nodes, for runs that have none."""
    ints, small, floats = np.zeros(1, np.int64), np.zeros(1, np.int32), np.zeros(1)
    table, narrow = np.zeros((1, 1)), np.zeros((1, 4), np.int32)
    return Cohorts(
        parent=ints, first_child=ints, children=ints, is_queue=ints, name_rank=ints,
        subtree=table, guaranteed=table, borrowing=table, usage=table, weight=floats, resource_of=ints, lendable=table,
        within=ints, reclaims=ints, borrows=ints, threshold=floats, queue_of=ints, amounts=table, final_share=ints,
        stopped_in=ints, winner=small, lowest=table,
        latest=small, before=small, after=small, evicted=small, local_queue=small, local_usage=floats,
        contested=np.zeros(1, np.bool_), remaining=floats, marks=narrow, ranges=narrow, skipped=small, stack=small,
        candidates=narrow, order=small, victims=narrow,
    )  # fmt: skip
