"""Who runs in each queue of a tree of quotas, and what it uses."""

from __future__ import annotations

from gputwin.simulation.engine.compiled import compiled
from gputwin.simulation.engine.quotas.usage import give_back, take
from gputwin.simulation.engine.state.cohorts import Cohorts
from gputwin.simulation.engine.state.records import wide


@compiled
def count_job(cohorts: Cohorts, j: int, t: int, s: int, sign: int) -> None:
    """Count job j, of tenant t and class s, in its queue (sign 1), or no longer (-1)."""
    n = cohorts.queue_of[t]
    if sign > 0:
        take(cohorts, n, s)
        latest = wide(cohorts.latest[n])
        cohorts.before[j], cohorts.after[j] = latest, -1
        if latest >= 0:
            cohorts.after[latest] = j
        cohorts.latest[n] = j
        return
    give_back(cohorts, n, s)
    before, after = wide(cohorts.before[j]), wide(cohorts.after[j])
    if before >= 0:
        cohorts.after[before] = after
    if after >= 0:
        cohorts.before[after] = before
    else:
        cohorts.latest[n] = before
