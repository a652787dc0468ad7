"""Slurm's multifactor priority."""

from __future__ import annotations

import numpy as np

from gputwin.simulation.engine.state.records import Knobs, Records
from gputwin.simulation.policy import ORDERINGS, Ordering, positions
from gputwin.simulation.slurm.order import NAME, PARAMETERS
from gputwin.simulation.slurm.priority import MOST

AT = positions(PARAMETERS)


def key(jobs: Records, j: int, now: float, knobs: Knobs) -> float:
    """Return minus the priority: age and fair share as of now, and what does not change, in whole numbers."""
    waited = max(now - jobs[j].submit, 0.0)
    age = min(1.0, waited / knobs.order[AT.max_age]) if knobs.order[AT.max_age] > 0.0 else 1.0
    total = knobs.order[AT.age] * age + knobs.order[AT.fairshare] * knobs.shares[jobs[j].tenant] + knobs.ratings[j]
    return -np.floor(min(max(total, 1.0), MOST))


ORDERINGS.add(
    Ordering(
        NAME,
        "highest sum of weight × factor first: `age` (up to `max_age` s), `fairshare` (`fair_tree`, or classic with "
        "`dampening`; use halves every `half_life` s), `job_size`, `qos` (the trace's priority), `tres_…`; worked out every "
        "`period` s; `gputwin simulate --slurm-conf` takes the values of a slurm.conf",
        key,
        "Slurm's documentation: Multifactor Priority Plugin, Fair Tree, Classic Fair Share",
        PARAMETERS,
        dict.fromkeys(PARAMETERS, 0.0) | {"period": 1.0, "dampening": 1e-6},
        weighs_tenants=True,
    )
)
