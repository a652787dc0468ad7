"""Everything one run consists of, in one NamedTuple: what the parts of the loop hand to each other."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gputwin.simulation.engine.attribution.causes import Causes
from gputwin.simulation.engine.fit.index import Index
from gputwin.simulation.engine.fit.totals import FitTotals
from gputwin.simulation.engine.queue.jobs import Queue
from gputwin.simulation.engine.reservations.plans import Plans
from gputwin.simulation.engine.state.cohorts import Cohorts
from gputwin.simulation.engine.state.events import Events
from gputwin.simulation.engine.state.lives import Lives
from gputwin.simulation.engine.state.outages import Outages
from gputwin.simulation.engine.state.records import Floats, Ints, Knobs, Machines, Records, SmallInts
from gputwin.simulation.engine.state.series import Series
from gputwin.simulation.engine.state.tenants import Tenants, Turns

SETTINGS = np.dtype(
    [
        ("backfill", np.int64),  # who may overtake a job that does not fit: STRICT, GREEDY, …
        ("gang", np.int64),  # how the instances of a gang are spread: BY_SCORE, CONSOLIDATE or TOPOLOGY
        ("tracks", np.int64),  # who runs where is kept: IN_ANY_ORDER or BY_END; 0: it is not
        ("attributes", np.int64),  # waits are charged to causes
        ("changes", np.int64),  # jobs may be stopped, slowed or resized: their lives are kept
        ("preempts", np.int64),  # waiting jobs may make room
        ("ranked", np.int64),  # running jobs are kept in order of rank
        ("rated", np.int64),  # jobs may run faster or slower than at full speed
        ("neighbours", np.int64),  # rates depend on who runs on a job's node, or IN_RACK; 0: on nobody
        ("elastic", np.int64),  # running jobs may be shrunk
        ("corrects", np.int64),  # who outlives its prediction is believed to run as long again
        ("totals", np.int64),  # the room of every waiting shape is counted
        ("fair", np.int64),  # tenants are told apart: who holds what is counted
        ("turns", np.int64),  # the tenant whose turn it is goes next, see `state/tenants.py`; 0: tenants take no turns
        ("gates", np.int64),  # a job may be held back though it fits
        ("drifts", np.int64),  # turns change with time alone
        ("recalculates", np.int64),  # priorities of waiting jobs are worked out again from time to time
        ("reclaims", np.int64),  # tenants take back what others borrow: QUOTA_RECLAIM, …; 0: they do not
        ("victims", np.int64),  # whom a job may displace: BY_RANK, BY_BENEFIT or ON_BEST_NODE
        ("planned", np.int64),  # a planner says who runs, at rounds
        ("mig", np.int64),  # devices are cut into MIG instances
        ("delays", np.int64),  # waiting jobs hold out for a node or a rack for some time
    ],
    align=True,
)
COUNTERS = np.dtype(
    [
        ("running", np.int64),  # jobs that run
        ("reserved_job", np.int64),  # who holds the reservation; -1: nobody
        ("reserved", np.int64),  # instances reserved
        ("starving", np.int64),  # waiting jobs that have reached the longest wait
        ("look_only", np.int64),  # 1: the present pass only updates causes
        ("passes", np.int64),  # scheduling passes so far
        ("held_back", np.int64),  # 1: the last pass held back shapes that had room
    ],
    align=True,
)


class World(NamedTuple):
    """One run. Jobs and shapes are in the queue; a reservation is kept for the first blocked job under EASY."""

    machines: Machines
    requests: Records
    groups: Records
    queue: Queue
    index: Index  # type: ignore[assignment]
    totals: FitTotals
    events: Events
    slots: Records
    links: Records
    first_end: Floats  # [n] the first believed end on each node; infinity: nothing runs (kept for backfilling only)
    running: SmallInts  # jobs that run, in no order (kept for backfilling only)
    reserved: Records  # SLOT: where the instances of the first blocked job will go
    reserved_from: Floats  # [1] when
    withheld: Floats  # what the reservation keeps from others, one row per reserved instance
    rows: SmallInts  # [n] the row of `withheld` that carries the node; -1: it is not reserved
    masks: SmallInts  # what is to be done with each row of `withheld`, see below
    endings: Events  # scratch of the reservation: running jobs by believed end
    freed: SmallInts  # scratch of the reservation: jobs freed on trial
    regions: Ints  # scratch of topology: room per rack or domain
    plans: Plans  # of conservative backfilling
    max_wait: Floats  # [1] s after which a waiting job goes before all others, with a reservation; infinity: never
    causes: Causes
    lives: Lives  # kept only in runs with change
    outages: Outages
    tenants: Tenants  # kept only in runs with fairness
    planned: SmallInts  # of a planner: how many jobs start or change at this round, then each with its shape, in order
    turns: Turns
    cohorts: Cohorts  # kept only in runs with a tree of quotas
    speeds: Floats  # [kind of job, GPU model]: work a second
    loop: Ints  # where the loop stands, so that it can be left and entered again
    clock: Floats  # [1] now, s
    until: Floats  # [1] when the loop is to be left, s: after all that happens up to then; infinity: at the end
    series: Series
    knobs: Knobs
    settings: Records  # SETTINGS, one record: the rules of the run
    counters: Records  # COUNTERS, one record: how the run stands


ARRIVAL, BUDGET, LOOP = range(3)
"""Positions in World.loop: the next job to be submitted, and after how many instants the loop returns to Python."""
STRICT, GREEDY, EASY, CONSERVATIVE, LOSS, FAIR_STRICT, FAIR_GREEDY, FAIR_EASY = range(8)
"""What may overtake a job that does not fit: SETTINGS.backfill; the last two with fairness between tenants."""
IN_ANY_ORDER, BY_END = 1, 2
"""How the instances on a node are listed: SETTINGS.tracks."""
BY_RANK, BY_BENEFIT, ON_BEST_NODE = range(3)
"""Whom a job that does not fit may displace: SETTINGS.victims."""
ON_NODE, IN_RACK = 1, 2
"""Who changes the rate of a job: SETTINGS.neighbours."""
BY_SCORE, CONSOLIDATE, TOPOLOGY = range(3)
"""How the instances of a gang are spread: SETTINGS.gang."""
WAITS, RUNS, FINISHED, NEVER_FITS, LOST, GAVE_UP = range(6)
"""Outcomes of a job."""
STALE, NOTHING, SHOWN, HIDDEN = range(4)
"""What World.masks says of a row: to be worked out, withholds nothing, is not hidden now, is hidden now."""
