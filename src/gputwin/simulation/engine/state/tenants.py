"""Tenants: what each holds, has used and may have, and whose queues have to be looked at again.

Where a scenario asks for fairness, jobs of one shape of one tenant wait together (a class), since they share their fate.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputwin.simulation.engine.compiled import compiled, inlined
from gputwin.simulation.engine.quotas.running import count_job
from gputwin.simulation.engine.state.records import Floats, Ints, Records, SmallInts, uniform, wide
from gputwin.simulation.engine.state.share_tree import ShareTree

if TYPE_CHECKING:
    from gputwin.simulation.engine.world import World

QUOTA_RECLAIM, KUEUE_CLASSICAL, KUEUE_FAIR = range(1, 4)
"""How tenants take back what others borrow: SETTINGS.reclaims."""
CPU, MEMORY, GPU, GPU_MEMORY, RESOURCES = range(5)
"""Columns of resources: milli-CPU, MiB, milli-GPU, MiB of GPU memory; and how many there are."""


class Tenants(NamedTuple):
    """What rules of fairness are given; t is a tenant, s a class, r a resource."""

    held: Floats  # [t, r]
    capacity: Floats  # [r] of the whole cluster; infinite where it is not modelled
    weights: Floats  # [t, r]
    most: Floats  # [t, r] what a tenant may hold; infinite: no limit
    guaranteed: Floats  # [t] milli-GPUs it may take back from others; 0 where nothing is guaranteed
    demands: Floats  # [s, r] of one job
    part: Floats  # [s] the largest part of a capacity that one job asks for
    usage: Floats  # [t] parts of the cluster × s, decayed, at `since`
    since: Floats  # [t] s
    rate: Floats  # [t] parts of the cluster in use from `since` on
    half_life: Floats  # [1] s of usage; 0: it does not decay
    dampening: Floats  # [1] of the classic fair-share factor; 0: the factor is that of the fair tree
    period: Floats  # [1] s after which turns or priorities by usage are worked out again; 0: at each pass
    counted: Floats  # [t] usage when turns were last worked out, if something has changed since
    tag: Floats  # [t] virtual time at which its next job starts
    finish: Floats  # [t] virtual time at which its last started job ends
    virtual: Floats  # [1] virtual time: the highest tag of who has started
    next: Floats  # [t, SUBMIT, WORK, IDEAL] of its waiting job that goes first in order, where the rule asks for it
    ideal: (
        Floats  # [j] when a job would end if its tenant had its part of the cluster to itself, s; empty: not asked for
    )
    dominant: SmallInts  # [s] the resource of which one job asks for the largest part
    drawn_for: Floats  # [t] the tickets its present draw was made with; 0: it is to be drawn
    random: NDArray[np.uint64]  # [t] where its draws stand
    tree: ShareTree


SUBMIT, WORK, IDEAL, NEXT = range(4)
"""Columns of Tenants.next: when it was submitted, predicted work left and `ideal`, s; and how many there are."""
NO_TURNS, BY_TENANT, BY_NEXT_JOB, DRAWN, BY_TREE = range(5)
"""Whose turn it is (SETTINGS.turns): nobody's; by the rule's key; that after looking at the tenant's next job, or after a
draw too; by shares in a tree of tenants (`queue/tree_turns.py`)."""


class Turns(NamedTuple):
    """Which classes are whose, and what has to be looked at again."""

    first: Ints  # [t + 1] where a tenant's classes begin in `classes`
    classes: SmallInts
    waiting: Ints  # [t] jobs that wait
    dirty: SmallInts  # tenants whose turn or limits may have changed, in no order
    is_dirty: SmallInts  # [t]
    flipped: SmallInts  # classes held back or let go in the present pass
    flipped_in: Ints  # [s] the pass in which a class is listed there
    opened: SmallInts  # classes let go in the present pass
    counts: Ints  # lengths of these lists
    worked_out: Floats  # [1] when turns that change with time alone were last worked out, s
    recalculated: Floats  # [1] when priorities that change with time were last worked out, s
    last_started: SmallInts  # [t] its running job that started last; -1: none. Kept where jobs are taken back
    started_before: SmallInts  # [j] the running job of the same tenant that started before job j; -1: none
    started_after: SmallInts  # [j]
    next_victim: SmallInts  # [t] scratch of reclaim: which of its jobs goes next
    above: Floats  # [t] scratch of reclaim: milli-GPUs it borrows on trial


DIRTY, FLIPPED, OPENED, TURN_COUNTS = range(4)
"""Positions in Turns.counts."""


def make_turns(jobs: Records, shapes: int, tenants: int, reclaims: bool) -> Turns:
    """Return the classes of each tenant; no classes where there is no fairness. `reclaims`: who runs is listed."""
    of = np.zeros(shapes, np.int64)
    of[jobs["shape"]] = jobs["tenant"]
    first = np.searchsorted(np.sort(of), np.arange(tenants + 1))
    return Turns(
        first=first.astype(np.int64),
        classes=np.argsort(of, kind="stable").astype(np.int32),
        waiting=np.zeros(tenants, np.int64),
        dirty=np.zeros(tenants, np.int32),
        is_dirty=np.zeros(tenants, np.int32),
        # A pass that takes jobs back has two parts, in each of which a class may be listed.
        flipped=np.zeros(2 * shapes, np.int32),
        flipped_in=np.full(shapes, -1, np.int64),
        opened=np.zeros(2 * shapes, np.int32),
        counts=np.zeros(TURN_COUNTS, np.int64),
        worked_out=np.full(1, -np.inf),
        recalculated=np.full(1, -np.inf),
        last_started=np.full(tenants, -1, np.int32),
        started_before=np.full(jobs.size if reclaims else 1, -1, np.int32),
        started_after=np.full(jobs.size if reclaims else 1, -1, np.int32),
        next_victim=np.full(tenants, -1, np.int32),
        above=np.zeros(tenants),
    )


def usage_at(usage: float, since: float, rate: float, now: float, half_life: float) -> float:
    """Return the decayed usage at `now` of who had `usage` at `since` and held `rate` from then on."""
    elapsed = now - since
    if half_life <= 0.0:
        return usage + rate * elapsed
    faded = 0.5 ** (elapsed / half_life)
    return usage * faded + rate * half_life / 0.6931471805599453 * (1.0 - faded)


def worked_out_at(now: float, period: float) -> float:
    """Return when turns by usage were last worked out, s: at the last multiple of the period."""
    return now if period <= 0.0 else np.floor(now / period) * period


_usage_at = compiled(usage_at)
last_worked_out = compiled(worked_out_at)


@inlined
def usage_when(tenants: Tenants, t: int, at: float) -> float:
    """Return the decayed usage of tenant t at `at`, s: the time when usage was last worked out."""
    if tenants.since[t] > at:
        return tenants.counted[t]
    return _usage_at(tenants.usage[t], tenants.since[t], tenants.rate[t], at, tenants.half_life[0])


@inlined
def mark(turns: Turns, t: int) -> None:
    """Have tenant t looked at again in the next pass."""
    if turns.is_dirty[t] == 0:
        turns.is_dirty[t] = 1
        turns.dirty[turns.counts[DIRTY]] = t
        turns.counts[DIRTY] += 1


@compiled
def note_waiting(world: World, j: int) -> None:
    """Note that job j waits from now on; a tenant nobody of whom waited begins at the present virtual time."""
    tenants, turns, t = world.tenants, world.turns, wide(world.queue.jobs[j].tenant)
    if turns.waiting[t] == 0:
        tenants.tag[t] = max(tenants.virtual[0], tenants.finish[t])
    turns.waiting[t] += 1
    mark(turns, t)


@compiled
def charge(world: World, j: int, sign: int, now: float) -> None:
    """Count what job j holds as its tenant's, from now on (sign 1) or no longer (-1)."""
    tenants, job = world.tenants, world.queue.jobs[j]
    t, s = wide(job.tenant), wide(job.shape)
    for r in range(RESOURCES):
        tenants.held[t, r] += sign * tenants.demands[s, r]
    before = last_worked_out(now, tenants.period[0])
    if tenants.since[t] < before:
        tenants.counted[t] = _usage_at(
            tenants.usage[t], tenants.since[t], tenants.rate[t], before, tenants.half_life[0]
        )
    tenants.usage[t] = _usage_at(tenants.usage[t], tenants.since[t], tenants.rate[t], now, tenants.half_life[0])
    tenants.since[t] = now
    tenants.rate[t] += sign * tenants.part[s]
    if sign > 0:
        tenants.virtual[0] = max(tenants.virtual[0], tenants.tag[t])
        tenants.finish[t] = tenants.tag[t] + tenants.part[s] * job.predicted / tenants.weights[t, GPU]
        tenants.tag[t] = tenants.finish[t]
        tenants.drawn_for[t] = 0.0
    if world.settings[0].reclaims == QUOTA_RECLAIM:
        _list_running(world.turns, t, j, sign)
    elif world.settings[0].reclaims != 0:
        count_job(world.cohorts, j, t, s, sign)
    mark(world.turns, t)


@compiled
def draw_turn(tenants: Tenants, t: int, s: int) -> None:
    """Draw when tenant t, whose next job is of class s, has its turn: after an exponential time of mean 1/tickets.

    The first of such times is a tenant's with chance tickets / all tickets, and those of the others are then as good as
    drawn anew (they have no memory). So only who has had its turn, or whose tickets change, draws again.
    """
    tickets = tenants.weights[t, tenants.dominant[s]]
    if tenants.drawn_for[t] != tickets:
        tenants.drawn_for[t] = tickets
        tenants.tag[t] = tenants.virtual[0] - math.log(1.0 - uniform(tenants.random, t)) / tickets


@compiled
def _list_running(turns: Turns, t: int, j: int, sign: int) -> None:
    """Enter job j, which starts, into the list of its tenant's running jobs (sign 1), or take it out (-1)."""
    if sign > 0:
        latest = wide(turns.last_started[t])
        turns.started_before[j], turns.started_after[j] = latest, -1
        if latest >= 0:
            turns.started_after[latest] = j
        turns.last_started[t] = j
        return
    before, after = wide(turns.started_before[j]), wide(turns.started_after[j])
    if before >= 0:
        turns.started_after[before] = after
    if after >= 0:
        turns.started_before[after] = before
    else:
        turns.last_started[t] = before
