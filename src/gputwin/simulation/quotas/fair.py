"""Kueue's fair sharing: preempt from who borrows the most, as long as that makes shares more equal (KEP-1714).

From the root down, the child with the highest dominant share is entered until a queue is found. Its workloads are
victims by the first strategy they pass, comparing the shares of the two subtrees below the common ancestor:
"LessThanOrEqualToFinalShare" (the preemptor with the new workload ≤ the target without the victim) or
"LessThanInitialShare" (< the target as it is). A queue that stays within its own quota reclaims without comparing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from gputwin.core.errors import UserError
from gputwin.simulation.quotas.shares import Share
from gputwin.simulation.quotas.tree import QuotaTree
from gputwin.simulation.quotas.workloads import FAIR_SHARING, RECLAIM, WITHIN_QUEUE, Contention, Victim, Workload

Strategy = Callable[[Share, Share, Share], bool]

FINAL_SHARE = "LessThanOrEqualToFinalShare"
INITIAL_SHARE = "LessThanInitialShare"
STRATEGIES: dict[str, Strategy] = {
    FINAL_SHARE: lambda preemptor, before, after: preemptor.order <= after.order,
    INITIAL_SHARE: lambda preemptor, before, after: preemptor.order < before.order,
}


def fair_victims(
    tree: QuotaTree,
    admitted: Iterable[Workload],
    incoming: Workload,
    strategies: Sequence[str] = (FINAL_SHARE, INITIAL_SHARE),
    again: bool = False,
) -> list[Victim]:
    """Return whom to preempt for `incoming`; empty if no preemption that the strategies allow makes it fit.

    `again`: after victims in its own queue have lowered its share, ask the first strategy once more (Kueue's feature
    FairSharingReevaluatePreemptionCandidates, off by default).
    """
    for name in strategies:
        if name not in STRATEGIES:
            raise UserError(f"no preemption strategy '{name}'; there are: {', '.join(STRATEGIES)}")
    if not strategies or (len(strategies) > 1 and tuple(strategies) != (FINAL_SHARE, INITIAL_SHARE)):
        raise UserError(f"preemption strategies: give one, or {FINAL_SHARE} and then {INITIAL_SHARE}")
    state = Contention(tree, admitted, incoming)
    candidates = _candidates(state)
    victims: list[Victim] = []
    for victim in _pick(state, candidates, strategies, again):
        victims.append(victim)
        state.remove(state.incoming)
        if state.fits(may_borrow=True):
            return state.keep_back(victims, may_borrow=True)
        state.put_back(state.incoming)
    return []


def _pick(state: Contention, candidates: list[Workload], strategies: Sequence[str], again: bool) -> Iterator[Victim]:
    """Yield victims, already removed from the usage, which counts the incoming workload."""
    state.put_back(state.incoming)
    first = STRATEGIES[strategies[0]]
    skipped: list[Workload] = []
    own = False
    for victim in _by_first_strategy(state, candidates, first, skipped):
        own = own or victim.reason == WITHIN_QUEUE
        yield victim
    if again and own:
        candidates, skipped = skipped, []
        yield from _by_first_strategy(state, candidates, first, skipped)
    if len(strategies) > 1:
        yield from _by_initial_share(state, skipped)


def _candidates(state: Contention) -> list[Workload]:
    """Return the workloads the policy lets go, of its own queue and of queues of its tree that borrow, in order."""
    found: list[Workload] = []
    root = (state.queue, *state.tree.path(state.queue))[-1]
    for queue, workloads in state.workloads.items():
        if queue != state.queue:
            above = state.tree.path(queue)
            if not above or above[-1] != root or state.within_nominal(queue):
                continue
        found += [w for w in workloads if state.uses_contested(w) and state.may_preempt(w)]
    return sorted(found, key=state.order)


def _by_first_strategy(
    state: Contention, candidates: list[Workload], strategy: Strategy, skipped: list[Workload]
) -> Iterator[Victim]:
    entitled = state.within_nominal(state.queue)
    targets = _Targets(state, candidates)
    while (queue := targets.next()) is not None:
        waiting = targets.workloads[queue]
        if queue == state.queue or entitled:
            workload = waiting.pop(0)
            state.remove(workload)
            yield Victim(workload, WITHIN_QUEUE if queue == state.queue else RECLAIM)
            continue
        mine, theirs = targets.rivals(queue)
        preemptor, before = state.share(mine), state.share(theirs)
        while waiting:
            workload = waiting.pop(0)
            state.remove(workload)
            if strategy(preemptor, before, state.share(theirs)):
                yield Victim(workload, FAIR_SHARING)
                break
            state.put_back(workload)
            skipped.append(workload)


def _by_initial_share(state: Contention, candidates: list[Workload]) -> Iterator[Victim]:
    """Yield at most one victim of each queue whose share is above the preemptor's."""
    targets = _Targets(state, candidates)
    while (queue := targets.next()) is not None:
        mine, theirs = targets.rivals(queue)
        workload = targets.workloads[queue].pop(0)
        targets.dropped.add(queue)
        if STRATEGIES[INITIAL_SHARE](state.share(mine), state.share(theirs), Share(0.0, "", 1.0, False)):
            state.remove(workload)
            yield Victim(workload, FAIR_SHARING)


class _Targets:
    """Which queue to preempt from next: from the root down, the child with the highest share that has candidates."""

    def __init__(self, state: Contention, candidates: list[Workload]) -> None:
        self.state = state
        self.workloads: dict[int, list[Workload]] = {}
        for workload in candidates:
            self.workloads.setdefault(state.tree.queue(workload.queue), []).append(workload)
        self.ancestors = state.tree.path(state.queue)
        self.dropped: set[int] = set()

    def next(self) -> int | None:
        """Return the next queue; None if there is no candidate left."""
        if not self.ancestors:
            return self.state.queue if self.workloads.get(self.state.queue) else None
        root = self.ancestors[-1]
        while root not in self.dropped:
            queue = self._below(root)
            if queue is not None:
                return queue
        return None

    def _below(self, cohort: int) -> int | None:
        """Return the queue found below `cohort`; None if only nodes without candidates were dropped."""
        best: int | None = None
        best_key: tuple[object, ...] = ()
        for child in self.state.tree.children[cohort]:
            if child in self.dropped:
                continue
            share = self.state.share(child)
            is_queue = self.state.tree.nodes[child].is_queue
            own = child == self.state.queue or child in self.ancestors
            if (not share.borrowing and not own) or (is_queue and not self.workloads.get(child)):
                self.dropped.add(child)
                continue
            # Equal shares: cohorts before queues, and among queues the one whose first candidate goes first.
            head = self.state.order(self.workloads[child][0]) if is_queue else self.state.tree.nodes[child].name
            infinite, value = share.order
            key = (-infinite, -value, is_queue, head)
            if best is None or key < best_key:
                best, best_key = child, key
        if best is None:
            self.dropped.add(cohort)
            return None
        return best if self.state.tree.nodes[best].is_queue else self._below(best)

    def rivals(self, queue: int) -> tuple[int, int]:
        """Return the nodes just below the common ancestor: on the preemptor's side and on that of `queue`."""
        mine = [self.state.queue, *self.ancestors]
        theirs = [queue, *self.state.tree.path(queue)]
        common = next(n for n in theirs if n in self.ancestors)
        return mine[mine.index(common) - 1], theirs[theirs.index(common) - 1]
