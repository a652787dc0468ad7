"""Kueue's fair sharing in a run: `gputwin.simulation.quotas.fair`, compiled; its rules are described there."""

from __future__ import annotations

from gputwin.simulation.engine.compiled import compiled
from gputwin.simulation.engine.quotas.candidates import (
    add_victim,
    contest,
    goes_before,
    keep_back,
    may_go,
    put_back,
    remove,
)
from gputwin.simulation.engine.quotas.usage import fits, give_back, share, take, within_nominal
from gputwin.simulation.engine.state.cohorts import (
    BY_QUEUE,
    BY_RECLAIM,
    BY_SHARE,
    CURSOR,
    DROPPED,
    NEVER,
    ON_PATH,
    Cohorts,
)
from gputwin.simulation.engine.state.records import Records, wide

_BEGIN, _END = range(2)


def fair_victims(cohorts: Cohorts, jobs: Records, j: int, q: int, s: int) -> int:
    """List whom to preempt for job j, of class s in queue q; return how many: 0 if the strategies allow too little."""
    contest(cohorts, q, s)
    if _list_candidates(cohorts, jobs, j, q) == 0:
        return wide(0)
    take(cohorts, q, s)
    by_final, by_initial = cohorts.final_share[0] != 0, cohorts.final_share[1] != 0
    count, found = _by_first(cohorts, jobs, q, s, by_final)
    if not found and by_final and by_initial:
        count, found = _by_initial(cohorts, jobs, q, s, count)
    give_back(cohorts, q, s)
    if found:
        needed = keep_back(cohorts, jobs, q, s, count, True)
        put_back(cohorts, jobs, needed)
        return needed
    put_back(cohorts, jobs, count)
    return wide(0)


compiled_fair_victims = compiled(fair_victims)


@compiled
def _accepted(cohorts: Cohorts, q: int, s: int) -> bool:
    """Return whether the incoming job, which usage counts, fits now."""
    give_back(cohorts, q, s)
    enough = fits(cohorts, q, s, True)
    take(cohorts, q, s)
    return enough


@compiled
def _by_first(cohorts: Cohorts, jobs: Records, q: int, s: int, by_final: bool) -> tuple[int, bool]:
    """Take victims by the first strategy; those it refuses are left in their queues' lists. Returns (how many, enough)."""
    entitled, count, order, marks, ranges = (
        within_nominal(cohorts, q),
        wide(0),
        cohorts.order,
        cohorts.marks,
        cohorts.ranges,
    )
    for n in range(marks.shape[0]):
        marks[n, DROPPED], marks[n, CURSOR] = 0, ranges[n, _BEGIN]
    enough = False
    while not enough:
        n = _next_queue(cohorts, jobs, q)
        if n < 0:
            break
        if n == q or entitled:
            v = wide(order[marks[n, CURSOR]])
            marks[n, CURSOR] += 1
            remove(cohorts, jobs, v)
            count = add_victim(cohorts, count, v, wide(BY_QUEUE if n == q else BY_RECLAIM))
            enough = _accepted(cohorts, q, s)
            continue
        mine, theirs = _rivals(cohorts, q, n)
        own, before = share(cohorts, mine), share(cohorts, theirs)
        while marks[n, CURSOR] < ranges[n, _END]:
            v = wide(order[marks[n, CURSOR]])
            marks[n, CURSOR] += 1
            remove(cohorts, jobs, v)
            after = share(cohorts, theirs)
            if by_final:
                passes = own[0] < after[0] or (own[0] == after[0] and own[1] <= after[1])
            else:
                passes = own[0] < before[0] or (own[0] == before[0] and own[1] < before[1])
            if passes:
                count = add_victim(cohorts, count, v, wide(BY_SHARE))
                enough = _accepted(cohorts, q, s)
                break
            take(cohorts, n, wide(jobs[v].shape))
            _skip(cohorts, n, v)
    return count, enough


@compiled
def _skip(cohorts: Cohorts, n: int, v: int) -> None:
    """Keep job v of queue n for the second strategy: in front of its queue's list, which has been read up to there."""
    at = cohorts.ranges[n, _BEGIN] + cohorts.skipped[n]
    cohorts.order[at] = v
    cohorts.skipped[n] += 1


@compiled
def _by_initial(cohorts: Cohorts, jobs: Records, q: int, s: int, count: int) -> tuple[int, bool]:
    """Take at most one more victim of each queue whose share is above the preemptor's. Returns (how many, enough)."""
    marks, ranges = cohorts.marks, cohorts.ranges
    for n in range(marks.shape[0]):
        marks[n, DROPPED], marks[n, CURSOR] = 0, ranges[n, _BEGIN]
        ranges[n, _END] = ranges[n, _BEGIN] + cohorts.skipped[n]
    enough = False
    while not enough:
        n = _next_queue(cohorts, jobs, q)
        if n < 0:
            break
        mine, theirs = _rivals(cohorts, q, n)
        v = wide(cohorts.order[marks[n, CURSOR]])
        marks[n, CURSOR] += 1
        marks[n, DROPPED] = 1
        own, their = share(cohorts, mine), share(cohorts, theirs)
        if own[0] < their[0] or (own[0] == their[0] and own[1] < their[1]):
            remove(cohorts, jobs, v)
            count = add_victim(cohorts, count, v, wide(BY_SHARE))
            enough = _accepted(cohorts, q, s)
    return count, enough


@compiled
def _list_candidates(cohorts: Cohorts, jobs: Records, j: int, q: int) -> int:
    """List the jobs that may go, queue by queue, in order within each; return how many there are."""
    marks, ranges, order = cohorts.marks, cohorts.ranges, cohorts.order
    for n in range(marks.shape[0]):
        marks[n, ON_PATH] = 0
        ranges[n, _BEGIN] = ranges[n, _END] = 0
        cohorts.skipped[n] = 0
    root = q
    while cohorts.parent[root] >= 0:
        root = cohorts.parent[root]
        marks[root, ON_PATH] = 1
    count = wide(0)
    for n in range(marks.shape[0]):
        if cohorts.is_queue[n] == 0:
            continue
        if n == q:
            if cohorts.within[q] == NEVER:
                continue
        elif (
            cohorts.reclaims[q] == NEVER
            or root == q
            or not _is_below(cohorts, wide(n), root)
            or within_nominal(cohorts, wide(n))
        ):
            continue
        begin, v = count, wide(cohorts.latest[n])
        while v >= 0:
            if may_go(cohorts, jobs, j, q, v, wide(n)):
                at = count
                while at > begin and goes_before(cohorts, jobs, q, v, wide(order[at - 1])):
                    order[at] = order[at - 1]
                    at -= 1
                order[at] = v
                count += 1
            v = wide(cohorts.before[v])
        ranges[n, _BEGIN], ranges[n, _END] = begin, count
    return count


@compiled
def _is_below(cohorts: Cohorts, n: int, root: int) -> bool:
    while cohorts.parent[n] >= 0:
        n = cohorts.parent[n]
    return n == root


@compiled
def _next_queue(cohorts: Cohorts, jobs: Records, q: int) -> int:
    """Return the queue to preempt from next: from the root down, the child with the highest share that has candidates."""
    marks, ranges, root = cohorts.marks, cohorts.ranges, q
    while cohorts.parent[root] >= 0:
        root = cohorts.parent[root]
    if root == q:
        return q if marks[q, CURSOR] < ranges[q, _END] else wide(-1)
    while marks[root, DROPPED] == 0:
        n = root
        while n >= 0 and cohorts.is_queue[n] == 0:
            child = _highest_child(cohorts, jobs, q, n)
            if child < 0:
                marks[n, DROPPED] = 1
            n = child
        if n >= 0:
            return n
    return wide(-1)


@compiled
def _highest_child(cohorts: Cohorts, jobs: Records, q: int, n: int) -> int:
    """Return the child of cohort n that has the highest share and may have candidates; -1 for none, as it drops others."""
    marks, ranges, best = cohorts.marks, cohorts.ranges, wide(-1)
    highest = (wide(0), 0.0, False)
    for i in range(cohorts.first_child[n], cohorts.first_child[n + 1]):
        child = cohorts.children[i]
        if marks[child, DROPPED] != 0:
            continue
        found = share(cohorts, child)
        own = child == q or marks[child, ON_PATH] != 0
        empty = cohorts.is_queue[child] != 0 and marks[child, CURSOR] >= ranges[child, _END]
        if (not found[2] and not own) or empty:
            marks[child, DROPPED] = 1
            continue
        if best < 0 or _goes_first(cohorts, jobs, q, child, found[0], found[1], best, highest[0], highest[1]):
            best, highest = child, found
    return best


@compiled
def _goes_first(
    cohorts: Cohorts,
    jobs: Records,
    q: int,
    a: int,
    infinite_a: int,
    share_a: float,
    b: int,
    infinite_b: int,
    share_b: float,
) -> bool:
    """Return whether node a is entered before its sibling b: higher share, cohorts before queues, then who goes first."""
    if infinite_a != infinite_b:
        return infinite_a > infinite_b
    if share_a != share_b:
        return share_a > share_b
    if cohorts.is_queue[a] != cohorts.is_queue[b]:
        return cohorts.is_queue[a] < cohorts.is_queue[b]
    if cohorts.is_queue[a] == 0:
        return cohorts.name_rank[a] < cohorts.name_rank[b]
    order, marks = cohorts.order, cohorts.marks
    return goes_before(cohorts, jobs, q, wide(order[marks[a, CURSOR]]), wide(order[marks[b, CURSOR]]))


@compiled
def _rivals(cohorts: Cohorts, q: int, n: int) -> tuple[int, int]:
    """Return the nodes just below the common ancestor of queues q and n, on either side."""
    theirs = n
    while cohorts.marks[cohorts.parent[theirs], ON_PATH] == 0:
        theirs = cohorts.parent[theirs]
    common, mine = cohorts.parent[theirs], q
    while cohorts.parent[mine] != common:
        mine = cohorts.parent[mine]
    return mine, theirs
