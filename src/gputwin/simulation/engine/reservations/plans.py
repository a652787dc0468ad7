"""What conservative backfilling keeps of its plans: each node's chain of moments, who waits, and who starts when."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gputwin.simulation.engine.state.events import Events, make_events
from gputwin.simulation.engine.state.records import Ints, Records, SmallInts

MOMENT = np.dtype(
    [
        ("time", np.float64),
        ("cpu", np.int64),  # free from then on, as are the others
        ("memory", np.int64),
        ("next", np.int32),  # in the chain of its node; -1: none
        ("whole", np.int32),  # devices entirely free
        ("share", np.int32),  # most milli-GPU free on one device
        ("gpu_free", np.int32),  # milli-GPU free over all devices
    ],
    align=True,
)


class Plans(NamedTuple):
    """Chains of moments (`timeline.py`), waiting jobs, and scratch of the planning."""

    moments: Records  # [2·slot]: when a planned instance begins; [2·slot + 1]: when it ends, planned or running
    first: SmallInts  # [n]: the first moment of each node; -1: none
    changed: SmallInts  # [n]: bit 0: more may be free than when all plans were last looked at; bit 1: since this look
    rooms: Ints  # [role, n]: scratch, instances that fit; the last column: on all nodes together
    cursor: SmallInts  # [n]: scratch, the moment at which to look at a node again
    unsure: SmallInts  # [n]: scratch, whether `rooms` is the room at one moment only
    entered: SmallInts  # [n]: scratch, whether the node is shown as it will be (see `trial.py`)
    starts: Events  # planned starts; an entry counts only if its job still waits and is planned for that time
    order: Events  # scratch: jobs to look at, in order
    waiting: SmallInts  # jobs that wait, in no order; a waiting job's `running_at` is its place here
    state: Ints


WAITING_JOBS, SEEN, CHANGED_NODES, STATES = range(4)
"""Positions in Plans.state: how many wait, the first job not yet seen, how many nodes are listed as changed."""


def make_plans(nodes: int, jobs: int, slots: int, roles: int) -> Plans:
    """Return no plans; `slots` 0: none will ever be made."""
    used = slots > 0
    return Plans(
        moments=np.zeros(max(2 * slots, 1), MOMENT),
        first=np.full(nodes if used else 1, -1, np.int32),
        changed=np.zeros(nodes if used else 1, np.int32),
        rooms=np.zeros((roles, nodes + 1) if used else (1, 1), np.int64),
        cursor=np.zeros(nodes if used else 1, np.int32),
        unsure=np.zeros(nodes if used else 1, np.int32),
        entered=np.zeros(nodes if used else 1, np.int32),
        starts=make_events(2 * jobs + 16 if used else 1),
        order=make_events(jobs if used else 1),
        waiting=np.zeros(jobs + nodes if used else 1, np.int32),
        state=np.zeros(STATES, np.int64),
    )
