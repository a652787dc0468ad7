"""Everything one run consists of, in one NamedTuple: what the parts of the loop hand to each other."""

from __future__ import annotations

from typing import NamedTuple

from gputwin.simulation.engine.attribution import Causes
from gputwin.simulation.engine.events import Events
from gputwin.simulation.engine.index import Index
from gputwin.simulation.engine.ledger import Ledger
from gputwin.simulation.engine.lives import Lives
from gputwin.simulation.engine.outages import Outages
from gputwin.simulation.engine.plans import Plans
from gputwin.simulation.engine.queue import Queue
from gputwin.simulation.engine.series import Series
from gputwin.simulation.engine.state import Floats, Ints, Knobs, Machines, Records, SmallInts


class World(NamedTuple):
    """One run. Jobs and shapes are in the queue; a reservation is kept for the first blocked job under EASY."""

    machines: Machines
    requests: Records
    groups: Records
    queue: Queue
    index: Index  # type: ignore[assignment]
    ledger: Ledger
    events: Events
    slots: Records
    links: Records
    first_end: Floats  # [n] the first believed end on each node; infinity: nothing runs (kept for backfilling only)
    running: SmallInts  # jobs that run, in no order (kept for backfilling only)
    reserved: Records  # SLOT: where the instances of the first blocked job will go
    reserved_from: Floats  # [1] when
    withheld: Floats  # what the reservation keeps from others, one row per reserved instance
    rows: SmallInts  # [n] the row of `withheld` that carries the node; -1: it is not reserved
    veils: SmallInts  # what is to be done with each row of `withheld`, see below
    endings: Events  # scratch of the reservation: running jobs by believed end
    freed: SmallInts  # scratch of the reservation: jobs freed on trial
    regions: Ints  # scratch of topology: room per rack or domain
    plans: Plans  # of conservative backfilling
    max_wait: Floats  # [1] s after which a waiting job goes before all others, with a reservation; infinity: never
    causes: Causes
    lives: Lives  # kept only in runs with change
    outages: Outages
    speeds: Floats  # [kind of job, GPU model]: work a second
    loop: Ints  # where the loop stands, so that it can be left and entered again
    clock: Floats  # [1] now, s
    series: Series
    knobs: Knobs
    options: Ints


(
    BACKFILL,
    GANG,
    TRACK,
    ATTRIBUTE,
    RUNNING_COUNT,
    RESERVED_JOB,
    RESERVED_COUNT,
    STARVING,
    LOOK_ONLY,
    CHANGES,
    PREEMPTS,
    RANKED,
    NEIGHBOURS,
    ELASTIC,
    CORRECTS,
    TOTALS,
    PASSES,
    HELD_BACK,
    OPTIONS,
) = range(19)
"""Positions in World.options.

Rules of the run: BACKFILL who may overtake, GANG how gangs are spread, TRACK who runs where is kept, ATTRIBUTE waits are
charged to causes, CHANGES jobs may be stopped, slowed or resized (their lives are kept),
PREEMPTS waiting jobs may make room, RANKED running jobs are kept in order of rank, NEIGHBOURS rates depend on who runs
beside a job, ELASTIC running jobs may be shrunk, CORRECTS who outlives its prediction is believed to run as long again,
TOTALS the room of every waiting shape is counted.
State: RUNNING_COUNT jobs that run, RESERVED_JOB who holds the reservation (-1: nobody), RESERVED_COUNT its instances,
STARVING waiting jobs that have reached the longest wait, LOOK_ONLY the pass only updates causes, PASSES how many passes
there were, HELD_BACK the last one held back shapes that had room."""
ARRIVAL, BUDGET, LOOP = range(3)
"""Positions in World.loop: the next job to be submitted, and after how many instants the loop returns to Python."""
STRICT, GREEDY, EASY, CONSERVATIVE, LOSS = range(5)
"""What may overtake a job that does not fit: World.options[BACKFILL]."""
BY_SCORE, CONSOLIDATE, TOPOLOGY = range(3)
"""How the instances of a gang are spread: World.options[GANG]."""
WAITS, RUNS, FINISHED, NEVER_FITS, LOST, GAVE_UP = range(6)
"""Outcomes of a job."""
STALE, NOTHING, SHOWN, HIDDEN = range(4)
"""What World.veils says of a row: to be worked out, withholds nothing, is not hidden now, is hidden now."""
