"""Everything one run consists of, in one NamedTuple: what the parts of the loop hand to each other."""

from __future__ import annotations

from typing import NamedTuple

from gputwin.simulation.engine.attribution import Causes
from gputwin.simulation.engine.events import Events
from gputwin.simulation.engine.index import Index
from gputwin.simulation.engine.ledger import Ledger
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
    series: Series
    knobs: Knobs
    options: Ints


(
    BACKFILL,
    GANG,
    TRACK,
    ATTRIBUTE,
    DRAWS,
    RUNNING_COUNT,
    RESERVED_JOB,
    RESERVED_COUNT,
    STARVING,
    LOOK_ONLY,
    OPTIONS,
) = range(11)
"""Positions in World.options: how the run goes (DRAWS: scores are random draws), then how many run, who holds the
reservation (-1: nobody), how many waiting jobs have reached the longest wait, and whether the pass may start nobody."""
STRICT, GREEDY, EASY, CONSERVATIVE, LOSS = range(5)
"""What may overtake a job that does not fit: World.options[BACKFILL]."""
BY_SCORE, CONSOLIDATE, TOPOLOGY = range(3)
"""How the instances of a gang are spread: World.options[GANG]."""
WAITS, RUNS, FINISHED, NEVER_FITS, LOST = range(5)
"""Outcomes of a job."""
STALE, NOTHING, SHOWN, HIDDEN = range(4)
"""What World.veils says of a row: to be worked out, withholds nothing, is not hidden now, is hidden now."""
