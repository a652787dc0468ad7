"""Who may be preempted for an incoming job, in which order; and those of them that can be spared.

`gputwin.simulation.quotas.workloads`, compiled; that module describes the rules. The incoming job is a class s in queue
q with its number j, priority and time of submission in `jobs`.
"""

from __future__ import annotations

import numpy as np

from gputwin.simulation.engine.compiled import compiled, inlined
from gputwin.simulation.engine.quotas.usage import available, fits, give_back, take
from gputwin.simulation.engine.state.cohorts import ANY, JOB_, LOWER, LOWER_OR_NEWER, Cohorts
from gputwin.simulation.engine.state.records import Records, wide


@compiled
def contest(cohorts: Cohorts, q: int, s: int) -> None:
    """Note which resources a job of class s does not find free in queue q."""
    for r in range(cohorts.usage.shape[1]):
        asked = cohorts.amounts[s, r]
        cohorts.contested[r] = asked > 0.0 and asked > available(cohorts, q, wide(r))


@inlined
def may_go(cohorts: Cohorts, jobs: Records, j: int, q: int, v: int, n: int) -> bool:
    """Return whether job j of queue q may preempt job v of queue n, by what v holds, its priority and its age."""
    held = False
    for r in range(cohorts.usage.shape[1]):
        held = held or (cohorts.contested[r] and cohorts.amounts[jobs[v].shape, r] > 0.0)
    policy = cohorts.within[q] if n == q else cohorts.reclaims[q]
    lower = jobs[v].priority < jobs[j].priority
    newer = jobs[v].priority == jobs[j].priority and jobs[j].submit < jobs[v].submit
    allowed = policy == ANY or (lower and policy in (LOWER, LOWER_OR_NEWER)) or (newer and policy == LOWER_OR_NEWER)
    return held and allowed


@compiled
def goes_before(cohorts: Cohorts, jobs: Records, q: int, a: int, b: int) -> bool:
    """Return whether job a goes before job b where both are candidates of queue q.

    Already evicted first, then other queues' before one's own, of two local queues of one queue that of higher usage,
    lower priority, started later, and by number.
    """
    if cohorts.evicted[a] != cohorts.evicted[b]:
        return cohorts.evicted[a] > cohorts.evicted[b]
    queue_a, queue_b = cohorts.queue_of[jobs[a].tenant], cohorts.queue_of[jobs[b].tenant]
    if (queue_a == q) != (queue_b == q):
        return queue_b == q
    if queue_a == queue_b and cohorts.local_queue[a] != cohorts.local_queue[b]:
        used_a, used_b = cohorts.local_usage[a], cohorts.local_usage[b]
        if not np.isnan(used_a) and not np.isnan(used_b) and used_a != used_b:
            return used_a > used_b
    if jobs[a].priority != jobs[b].priority:
        return jobs[a].priority < jobs[b].priority
    if jobs[a].start != jobs[b].start:
        return jobs[a].start > jobs[b].start
    return a < b


@compiled
def keep_back(cohorts: Cohorts, jobs: Records, q: int, s: int, count: int, may_borrow: bool) -> int:
    """Spare the victims that a job of class s in queue q can do without, the last but one first; return how many are left.

    Usage counts none of those that are left.
    """
    victims, needed = cohorts.victims, wide(1)
    # Those still needed are moved to the end, in order.
    for k in range(count - 2, -1, -1):
        v, rule = wide(victims[k, 0]), victims[k, 1]
        queue = cohorts.queue_of[jobs[v].tenant]
        take(cohorts, queue, wide(jobs[v].shape))
        if not fits(cohorts, q, s, may_borrow):
            give_back(cohorts, queue, wide(jobs[v].shape))
            needed += 1
            victims[count - needed, 0], victims[count - needed, 1] = v, rule
    for k in range(needed):
        victims[k, 0], victims[k, 1] = victims[count - needed + k, 0], victims[count - needed + k, 1]
    return needed


@compiled
def remove(cohorts: Cohorts, jobs: Records, v: int) -> None:
    """Stop counting the running job v, on trial."""
    give_back(cohorts, cohorts.queue_of[jobs[v].tenant], wide(jobs[v].shape))


@compiled
def put_back(cohorts: Cohorts, jobs: Records, count: int) -> None:
    """Count the first `count` victims again."""
    for k in range(count):
        v = wide(cohorts.victims[k, 0])
        take(cohorts, cohorts.queue_of[jobs[v].tenant], wide(jobs[v].shape))


@inlined
def add_victim(cohorts: Cohorts, count: int, v: int, rule: int) -> int:
    """Enter job v as a victim; return the number of victims."""
    cohorts.victims[count, 0], cohorts.victims[count, 1] = v, rule
    return count + 1


@inlined
def job_of(cohorts: Cohorts, k: int) -> int:
    """Return the job of candidate k."""
    return wide(cohorts.candidates[k, JOB_])
