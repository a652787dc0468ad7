"""Everything one run consists of, in one NamedTuple: what the parts of the loop hand to each other."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputwin.simulation.engine.attribution import Causes
from gputwin.simulation.engine.events import Events
from gputwin.simulation.engine.index import Index
from gputwin.simulation.engine.queue import Queue
from gputwin.simulation.engine.series import Series
from gputwin.simulation.engine.state import Floats, Ints, Jobs, Knobs, Nodes, Requests, Shapes, SmallInts


class Slots(NamedTuple):
    """Where each instance is: one entry per instance of the workload. Links join what runs on one node."""

    node: SmallInts
    devices: Ints  # bit set
    request: SmallInts
    job: SmallInts
    next: SmallInts
    previous: SmallInts
    first_on_node: SmallInts  # [n]


class Runs(NamedTuple):
    """What became of each job, and who runs now."""

    start: Floats
    end: Floats
    believed_end: Floats  # when the scheduler thinks a running job ends
    outcome: NDArray[np.int8]
    running: SmallInts  # jobs that run, in no order
    running_at: SmallInts  # [j] position in `running`
    running_count: Ints  # [1]


class Reservation(NamedTuple):
    """When and where the first blocked job will start, as far as believed ends tell (EASY's shadow)."""

    job: Ints  # [1] -1: none
    time: Floats  # [1]
    count: Ints  # [1] instances reserved
    node: SmallInts
    devices: Ints
    request: SmallInts


class World(NamedTuple):
    """One run."""

    nodes: Nodes
    requests: Requests
    jobs: Jobs
    shapes: Shapes
    queue: Queue
    index: Index
    events: Events
    slots: Slots
    runs: Runs
    reservation: Reservation
    causes: Causes
    series: Series
    knobs: Knobs
    options: Ints


BACKFILL, GANG, TRACK_NODES, ATTRIBUTE = 0, 1, 2, 3
"""Positions in World.options."""
STRICT, GREEDY, EASY, CONSERVATIVE, LOSS = 0, 1, 2, 3, 4
"""What may overtake a job that does not fit: World.options[BACKFILL]."""
BY_SCORE, CONSOLIDATE, TOPOLOGY = 0, 1, 2
"""How the instances of a gang are spread: World.options[GANG]."""
WAITING, RUNNING, FINISHED, NEVER_FITS, LOST = 0, 1, 2, 3, 4
"""Outcomes of a job."""
