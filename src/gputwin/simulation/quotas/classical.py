"""Kueue's classical preemption in a tree of cohorts: whom to preempt so that a workload fits its queue's quota.

Candidates are of three kinds. Those over which the incoming workload has the advantage of the hierarchy (the quota it
needs is owned by a subtree it belongs to and they do not) go whatever borrowing follows; the others of the cohort go by
priority, and above the threshold of `borrowWithinCohort` only if the queue ends within its quota; then those of its own
queue. Each must belong to a queue that borrows, up to the common ancestor.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from gputwin.simulation.quotas.balance import local_room
from gputwin.simulation.quotas.tree import QuotaTree
from gputwin.simulation.quotas.workloads import (
    RECLAIM,
    RECLAIM_BORROWING,
    WITHIN_QUEUE,
    Contention,
    Victim,
    Workload,
)


class Candidate(NamedTuple):
    """A workload that may be preempted, and under which condition."""

    workload: Workload
    queue: int
    ancestor: int
    """The lowest common ancestor with the preempting queue; −1 for its own queue."""
    reason: str
    only_without_borrowing: bool = False


def classical_victims(tree: QuotaTree, admitted: Iterable[Workload], incoming: Workload) -> list[Victim]:
    """Return whom to preempt for `incoming`; empty if preemption cannot help."""
    state = Contention(tree, admitted, incoming)
    own = _own_candidates(state)
    by_hierarchy, by_priority = _cohort_candidates(state)
    candidates: list[Candidate] = []
    for evicted in (True, False):
        for group in (by_hierarchy, by_priority, own):
            group.sort(key=lambda c: state.order(c.workload))
            candidates += [c for c in group if c.workload.evicted == evicted]
    for may_borrow in _attempts(state, bool(by_hierarchy), bool(by_priority)):
        victims = _attempt(state, candidates, may_borrow)
        if victims:
            return victims
    return []


def _attempts(state: Contention, hierarchy: bool, priority: bool) -> tuple[bool, ...]:
    """Return in which order to try with and without borrowing."""
    borrow = state.policy.borrow_within_cohort
    below = not (state.contested & (state.usage[state.queue] >= state.tree.subtree[state.queue])).any()
    if not (hierarchy or priority) or (not borrow and not below):
        return (True,)
    if not borrow and not hierarchy:
        return False, True
    return True, False


def _attempt(state: Contention, candidates: list[Candidate], may_borrow: bool) -> list[Victim]:
    """Return the fewest victims in the order of candidates with which the workload fits; usage is as before."""
    victims: list[Victim] = []
    found: list[Victim] = []
    for candidate in candidates:
        if not _still_valid(state, candidate, may_borrow):
            continue
        state.remove(candidate.workload)
        victims.append(Victim(candidate.workload, candidate.reason))
        if state.fits(may_borrow):
            found = state.keep_back(victims, may_borrow)
            victims = found
            break
    for victim in victims:
        state.put_back(victim.workload)
    return found


def _still_valid(state: Contention, candidate: Candidate, may_borrow: bool) -> bool:
    """Return whether the candidate may go now: its queue and the cohorts up to the common ancestor still borrow."""
    if candidate.queue == state.queue:
        return True
    if may_borrow and candidate.only_without_borrowing:
        return False
    for n in (candidate.queue, *state.tree.path(candidate.queue)):
        if n == candidate.ancestor:
            return True
        if state.within_nominal(n):
            return False
    return True


def _own_candidates(state: Contention) -> list[Candidate]:
    if state.policy.within_queue == "Never":
        return []
    return _candidates_of(state, state.queue, -1, False)


def _cohort_candidates(state: Contention) -> tuple[list[Candidate], list[Candidate]]:
    """Return candidates by advantage of the hierarchy and by priority, walking from the queue to the root."""
    by_hierarchy: list[Candidate] = []
    by_priority: list[Candidate] = []
    if state.policy.reclaim_within_cohort == "Never":
        return by_hierarchy, by_priority
    remaining = state.request.copy()
    advantage = _owns(state, state.queue, remaining)
    done = state.queue
    for root in state.tree.path(state.queue):
        found = by_hierarchy if advantage else by_priority
        _collect(state, root, root, done, advantage, found)
        advantage = _owns(state, root, remaining) or advantage
        done = root
    return by_hierarchy, by_priority


def _owns(state: Contention, n: int, remaining: np.ndarray) -> bool:
    """Return whether node n's own quota has room for `remaining`, less what it covers by its guaranteed quota after."""
    wanted = remaining > 0.0
    enough = not bool((wanted & (state.usage[n] + remaining > state.tree.subtree[n])).any())
    for r in range(remaining.size):
        remaining[r] = max(0.0, remaining[r] - local_room(state.tree.guaranteed, state.usage, n, r))
    return enough


def _collect(state: Contention, n: int, ancestor: int, skip: int, advantage: bool, found: list[Candidate]) -> None:
    """Add the candidates below cohort n, without the subtree `skip` and without subtrees within their quota."""
    for child in state.tree.children[n]:
        if child in (skip, state.queue) or state.within_nominal(child):
            continue
        if state.tree.nodes[child].is_queue:
            found += _candidates_of(state, child, ancestor, advantage)
        else:
            _collect(state, child, ancestor, skip, advantage, found)


def _candidates_of(state: Contention, queue: int, ancestor: int, advantage: bool) -> list[Candidate]:
    found = []
    for workload in state.workloads.get(queue, []):
        if not state.uses_contested(workload) or not state.may_preempt(workload):
            continue
        if queue == state.queue:
            found.append(Candidate(workload, queue, ancestor, WITHIN_QUEUE))
        elif advantage or not _below_threshold(state, workload):
            found.append(Candidate(workload, queue, ancestor, RECLAIM, only_without_borrowing=not advantage))
        else:
            found.append(Candidate(workload, queue, ancestor, RECLAIM_BORROWING))
    return found


def _below_threshold(state: Contention, workload: Workload) -> bool:
    """Return whether the workload may go though the preempting queue borrows afterwards."""
    policy = state.policy
    if not policy.borrow_within_cohort or workload.priority >= state.incoming.priority:
        return False
    return policy.max_priority_threshold is None or workload.priority <= policy.max_priority_threshold
