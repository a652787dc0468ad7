"""Kueue's admission in a run: queues in a tree of cohorts, who borrows last, and preemption within quotas.

A job starts if its queue's quota lets it through, with what it may borrow, and its instances find room. Whom the quota
refuses may preempt: victims are those of Kueue's search (`engine/quotas`), all of them, and only if the job has room on the
nodes once they are gone. In each pass:

1. Who would stay within its queue's own quota goes before who would borrow; among equals the run's order decides
   (`kueue-classical`), or the lowest dominant share with the job counted, cohort by cohort upwards (`kueue-fair`).
2. A job whose class lost a job to others in this pass does not preempt in it.
3. Where somebody was preempted, all are asked once more at the end whether they fit now.
"""

from __future__ import annotations

from typing import Any

from gputwin.simulation.engine.attribution.waiting import consider, end_pass
from gputwin.simulation.engine.compiled import compiled, inlined
from gputwin.simulation.engine.fit.questions import blocked_by
from gputwin.simulation.engine.fit.totals import KNOWN, NOBODY
from gputwin.simulation.engine.lifecycle import start_waiting
from gputwin.simulation.engine.passes.victims import stop_all
from gputwin.simulation.engine.placing.place import place
from gputwin.simulation.engine.queue.jobs import LISTED, before, first
from gputwin.simulation.engine.queue.shape_tree import ANYTHING
from gputwin.simulation.engine.quotas.classical import compiled_classical_victims
from gputwin.simulation.engine.quotas.fair import compiled_fair_victims
from gputwin.simulation.engine.quotas.usage import borrows_with, fits, give_back, share, take
from gputwin.simulation.engine.state.cohorts import NEVER
from gputwin.simulation.engine.state.records import wide
from gputwin.simulation.engine.state.tenants import KUEUE_FAIR
from gputwin.simulation.engine.world import World

_OUT, _IN = 0, 1
"""What a shape's `reach` says: whether it is among the candidates of the present pass."""


def kueue_pass(
    world: World, now: float, order: Any, promotion: Any, claim: Any, score: Any, devices: Any, turn: Any, gate: Any
) -> None:
    """Start whom quotas let through and nodes have room for, if need be in the place of others."""
    stopped = _admit(world, now, order, promotion, score, devices, True)
    if stopped:
        _admit(world, now, order, promotion, score, devices, False)
    _hold_back(world, now)


@compiled
def _admit(world: World, now: float, order: Any, promotion: Any, score: Any, devices: Any, preempts: bool) -> bool:
    """Admit jobs class by class; return whether jobs were stopped for others."""
    cohorts, queue, stopped = world.cohorts, world.queue, False
    world.counters[0].passes += 1
    count = _candidates(world, preempts)
    while count > 0:
        at = _lowest_share(world, count) if world.settings[0].reclaims == KUEUE_FAIR else _first(world, count)
        s = wide(queue.candidates[at])
        j = first(queue, s)
        placed = False
        if fits(cohorts, _queue(world, s), s, True):
            placed = blocked_by(world, s) == ANYTHING and place(world, j, score, devices)
        elif (
            preempts
            and cohorts.stopped_in[s] != world.counters[0].passes
            and _preempt(world, j, s, now, order, promotion, score, devices)
        ):
            stopped = True
            placed = place(world, j, score, devices)
        if placed:
            start_waiting(world, j, now)
            if queue.shapes[s].waiting > 0:
                continue
        count -= 1
        queue.candidates[at] = queue.candidates[count]
        queue.shapes[s].reach = _OUT
    return stopped


@inlined
def _queue(world: World, s: int) -> int:
    """Return the queue of class s, jobs of which wait."""
    return world.cohorts.queue_of[world.queue.jobs[first(world.queue, s)].tenant]


@compiled
def _candidates(world: World, preempts: bool) -> int:
    """Collect the classes that may start now, or preempt; return their number."""
    queue, cohorts, count = world.queue, world.cohorts, 0
    for k in range(queue.counts[LISTED]):
        s = wide(queue.listed[k])
        q = _queue(world, s)
        if fits(cohorts, q, s, True):
            may = blocked_by(world, s) == ANYTHING
        else:
            may = preempts and (cohorts.reclaims[q] != NEVER or (cohorts.within[q] != NEVER and cohorts.latest[q] >= 0))
        queue.shapes[s].reach = _IN if may else _OUT
        if may:
            queue.candidates[count] = s
            count += 1
    return count


@compiled
def _first(world: World, count: int) -> int:
    """Return the candidate that goes first: who does not borrow before who does, then in order."""
    queue, best, best_borrows = world.queue, 0, False
    for k in range(count):
        s = wide(queue.candidates[k])
        borrows = borrows_with(world.cohorts, _queue(world, s), s)
        earlier = k == 0 or before(queue.jobs, first(queue, s), first(queue, wide(queue.candidates[best])))
        if k == 0 or (not borrows and best_borrows) or (borrows == best_borrows and earlier):
            best, best_borrows = k, borrows
    return best


@compiled
def _lowest_share(world: World, count: int) -> int:
    """Return the candidate with which shares stay lowest: the first job of each queue, then cohort by cohort upwards."""
    queue, cohorts = world.queue, world.cohorts
    for n in range(cohorts.winner.size):
        cohorts.winner[n] = -1
    for k in range(count):
        s = wide(queue.candidates[k])
        q = _queue(world, s)
        held = wide(cohorts.winner[q])
        if held < 0 or before(queue.jobs, first(queue, s), first(queue, wide(queue.candidates[held]))):
            cohorts.winner[q] = k
    best = wide(-1)
    for n in range(cohorts.winner.size - 1, -1, -1):
        k, parent = wide(cohorts.winner[n]), cohorts.parent[n]
        if k < 0:
            continue
        if parent < 0:
            if best < 0 or _goes_first(world, k, best):
                best = k
            continue
        other = wide(cohorts.winner[parent])
        mine = _share_with(world, wide(n), k)
        lower = other < 0 or mine[0] < cohorts.lowest[parent, 0]
        equal = other >= 0 and mine[0] == cohorts.lowest[parent, 0]
        lower = lower or (equal and mine[1] < cohorts.lowest[parent, 1])
        equal = equal and mine[1] == cohorts.lowest[parent, 1]
        if lower or (equal and _goes_first(world, k, other)):
            cohorts.winner[parent] = k
            cohorts.lowest[parent, 0], cohorts.lowest[parent, 1] = mine[0], mine[1]
    return best


@inlined
def _goes_first(world: World, a: int, b: int) -> bool:
    """Return whether the first job of candidate a goes before that of candidate b."""
    queue = world.queue
    return before(queue.jobs, first(queue, wide(queue.candidates[a])), first(queue, wide(queue.candidates[b])))


@compiled
def _share_with(world: World, n: int, k: int) -> tuple[float, float]:
    """Return the share of node n with candidate k, which is below it, counted."""
    s = wide(world.queue.candidates[k])
    q = _queue(world, s)
    take(world.cohorts, q, s)
    infinite, value, _ = share(world.cohorts, n)
    give_back(world.cohorts, q, s)
    return float(infinite), value


@compiled
def _preempt(world: World, j: int, s: int, now: float, order: Any, promotion: Any, score: Any, devices: Any) -> bool:
    """Stop whom Kueue would preempt for job j, if it has room then; False, and no change, if not."""
    cohorts, q = world.cohorts, _queue(world, s)
    if world.settings[0].reclaims == KUEUE_FAIR:
        count = compiled_fair_victims(cohorts, world.queue.jobs, j, q, s)
    else:
        count = compiled_classical_victims(cohorts, world.queue.jobs, j, q, s)
    if count == 0:
        return False
    for k in range(count):
        world.lives.victims[1 + k] = cohorts.victims[k, 0]
    if not stop_all(world, j, count, now, order, promotion, score, devices):
        return False
    for k in range(1, count + 1):
        cohorts.stopped_in[world.queue.jobs[world.lives.victims[k]].shape] = world.counters[0].passes
    return True


@compiled
def _hold_back(world: World, now: float) -> None:
    """Say of each waiting class whether its quota refuses it, and what it waits for."""
    queue, changed = world.queue, 0
    for k in range(queue.counts[LISTED]):
        s = wide(queue.listed[k])
        held_back = 0 if fits(world.cohorts, _queue(world, s), s, True) else 1
        if held_back != queue.shapes[s].held_back:
            queue.shapes[s].held_back = held_back
            queue.candidates[changed] = s
            changed += 1
    end_pass(world, NOBODY, now)
    for k in range(changed):
        s = wide(queue.candidates[k])
        if queue.shapes[s].joined == KNOWN:
            consider(world, s, now)
