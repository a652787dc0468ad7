"""Kueue's classical preemption in a run: `gputwin.simulation.quotas.classical`, compiled; its rules are described there."""

from __future__ import annotations

from gputwin.simulation.engine.compiled import compiled
from gputwin.simulation.engine.quotas.candidates import (
    add_victim,
    contest,
    goes_before,
    job_of,
    keep_back,
    may_go,
    put_back,
    remove,
)
from gputwin.simulation.engine.quotas.usage import fits, within_nominal
from gputwin.simulation.engine.state.cohorts import (
    ANCESTOR,
    BY_QUEUE,
    BY_RECLAIM,
    BY_RECLAIM_BORROWING,
    JOB_,
    NEVER,
    ONLY,
    RULE,
    Cohorts,
)
from gputwin.simulation.engine.state.records import Records, wide

_HIERARCHY, _PRIORITY, _OWN = range(3)
"""Groups of candidates, in the order in which they go."""


def classical_victims(cohorts: Cohorts, jobs: Records, j: int, q: int, s: int) -> int:
    """List whom to preempt for job j, of class s in queue q; return how many: 0 if preemption cannot help."""
    contest(cohorts, q, s)
    counts = _cohort_candidates(cohorts, jobs, j, q, s)
    hierarchy, count = counts
    priority = count - hierarchy
    total = count
    if cohorts.within[q] != NEVER:
        total = _candidates_of(cohorts, jobs, j, q, q, wide(-1), False, count)
    if total == 0:
        return wide(0)
    _sort(cohorts, jobs, q, hierarchy, count, total)
    may_borrow = cohorts.borrows[q] != 0
    above = False
    for r in range(cohorts.usage.shape[1]):
        above = above or (cohorts.contested[r] and cohorts.usage[q, r] >= cohorts.subtree[q, r])
    if (hierarchy == 0 and priority == 0) or (not may_borrow and above):
        return _attempt(cohorts, jobs, q, s, total, True)
    first = may_borrow or hierarchy > 0
    found = _attempt(cohorts, jobs, q, s, total, first)
    return found if found > 0 else _attempt(cohorts, jobs, q, s, total, not first)


compiled_classical_victims = compiled(classical_victims)


@compiled
def _attempt(cohorts: Cohorts, jobs: Records, q: int, s: int, total: int, may_borrow: bool) -> int:
    """List the fewest victims in the order of candidates with which a job of class s fits; usage is as before."""
    count, found = wide(0), wide(0)
    for i in range(total):
        k = wide(cohorts.order[i])
        if not _still_valid(cohorts, jobs, q, k, may_borrow):
            continue
        remove(cohorts, jobs, job_of(cohorts, k))
        count = add_victim(cohorts, count, job_of(cohorts, k), wide(cohorts.candidates[k, RULE]))
        if fits(cohorts, q, s, may_borrow):
            found = count = keep_back(cohorts, jobs, q, s, count, may_borrow)
            break
    put_back(cohorts, jobs, count)
    return found


@compiled
def _still_valid(cohorts: Cohorts, jobs: Records, q: int, k: int, may_borrow: bool) -> bool:
    """Return whether candidate k may go now: its queue and the cohorts up to the common ancestor still borrow."""
    n = cohorts.queue_of[jobs[job_of(cohorts, k)].tenant]
    if n == q:
        return True
    if may_borrow and cohorts.candidates[k, ONLY] != 0:
        return False
    while n >= 0 and n != cohorts.candidates[k, ANCESTOR]:
        if within_nominal(cohorts, n):
            return False
        n = cohorts.parent[n]
    return True


@compiled
def _cohort_candidates(cohorts: Cohorts, jobs: Records, j: int, q: int, s: int) -> tuple[int, int]:
    """List candidates of other queues: first those by advantage of the hierarchy; return their number, and that of all.

    From the queue to the root: once a node's own quota has room for what the nodes below it do not cover, what is above
    goes by advantage.
    """
    hierarchy, count = wide(0), wide(0)
    if cohorts.reclaims[q] == NEVER:
        return hierarchy, count
    for round_ in range(2):
        for r in range(cohorts.remaining.size):
            cohorts.remaining[r] = cohorts.amounts[s, r]
        advantage, below, root = _owns(cohorts, q), q, cohorts.parent[q]
        while root >= 0:
            if advantage == (round_ == 0):
                count = _collect(cohorts, jobs, j, q, root, below, advantage, count)
            advantage = _owns(cohorts, root) or advantage
            below, root = root, cohorts.parent[root]
        if round_ == 0:
            hierarchy = count
    return hierarchy, count


@compiled
def _owns(cohorts: Cohorts, n: int) -> bool:
    """Return whether node n's own quota has room for what remains, less what it covers by its guaranteed quota after."""
    enough = True
    for r in range(cohorts.remaining.size):
        left = cohorts.remaining[r]
        enough = enough and not (left > 0.0 and cohorts.usage[n, r] + left > cohorts.subtree[n, r])
        cohorts.remaining[r] = max(0.0, left - max(0.0, cohorts.guaranteed[n, r] - cohorts.usage[n, r]))
    return enough


@compiled
def _collect(cohorts: Cohorts, jobs: Records, j: int, q: int, root: int, skip: int, advantage: bool, count: int) -> int:
    """Add the candidates below cohort `root`, without the subtree `skip` and without subtrees within their quota."""
    stack, top = cohorts.stack, 1
    stack[0] = root
    while top > 0:
        top -= 1
        n = wide(stack[top])
        for i in range(cohorts.first_child[n], cohorts.first_child[n + 1]):
            child = cohorts.children[i]
            if child in (skip, q) or within_nominal(cohorts, child):
                continue
            if cohorts.is_queue[child] != 0:
                count = _candidates_of(cohorts, jobs, j, q, child, root, advantage, count)
            else:
                stack[top] = child
                top += 1
    return count


@compiled
def _candidates_of(
    cohorts: Cohorts, jobs: Records, j: int, q: int, n: int, ancestor: int, advantage: bool, count: int
) -> int:
    """Add the jobs of queue n that may go; return the number of candidates."""
    v = wide(cohorts.latest[n])
    while v >= 0:
        if may_go(cohorts, jobs, j, q, v, n):
            below = cohorts.borrows[q] != 0 and jobs[v].priority < jobs[j].priority
            below = below and jobs[v].priority <= cohorts.threshold[q]
            rule, only = BY_QUEUE, 0
            if n != q and (advantage or not below):
                rule, only = BY_RECLAIM, 0 if advantage else 1
            elif n != q:
                rule = BY_RECLAIM_BORROWING
            row = cohorts.candidates[count]
            row[JOB_], row[ANCESTOR], row[RULE], row[ONLY] = v, ancestor, rule, only
            count += 1
        v = wide(cohorts.before[v])
    return count


@compiled
def _sort(cohorts: Cohorts, jobs: Records, q: int, hierarchy: int, others: int, total: int) -> None:
    """Put the candidates in order: evicted ones first; by group; within a group as `goes_before` says (Shell's sort)."""
    order = cohorts.order
    for k in range(total):
        order[k] = k
    gap = total // 2
    while gap > 0:
        for i in range(gap, total):
            k, at = wide(order[i]), i
            while at >= gap and _precedes(cohorts, jobs, q, hierarchy, others, k, wide(order[at - gap])):
                order[at] = order[at - gap]
                at -= gap
            order[at] = k
        gap //= 2


@compiled
def _precedes(cohorts: Cohorts, jobs: Records, q: int, hierarchy: int, others: int, a: int, b: int) -> bool:
    job_a, job_b = job_of(cohorts, a), job_of(cohorts, b)
    if cohorts.evicted[job_a] != cohorts.evicted[job_b]:
        return cohorts.evicted[job_a] > cohorts.evicted[job_b]
    group_a = _HIERARCHY if a < hierarchy else _PRIORITY if a < others else _OWN
    group_b = _HIERARCHY if b < hierarchy else _PRIORITY if b < others else _OWN
    if group_a != group_b:
        return group_a < group_b
    return goes_before(cohorts, jobs, q, job_a, job_b)
