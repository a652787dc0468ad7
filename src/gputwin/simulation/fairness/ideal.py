"""When jobs would end if each tenant had its part of the cluster to itself: what finish-time fairness compares with."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gputwin.simulation.fairness.drf import Table


def ideal_ends(submit: Table, predicted: Table, work: Table, tenant: NDArray[np.integer], share: Table) -> Table:
    """Return when each job would end, s, on its tenant's own part of the cluster, in order of submission.

    `work` is part of the cluster × seconds, `share` each tenant's part of the cluster. The part serves its tenant's work
    as a fluid, one job after the other; no job ends before its predicted duration is over.
    """
    ends = np.zeros(submit.size)
    for t in range(share.size):
        (mine,) = np.nonzero(tenant == t)
        seconds = work[mine] / share[t]
        # Each begins when it is submitted or when the one before ends: end_j = sum up to j + max over i of its slack.
        until = np.cumsum(seconds)
        served = until + np.maximum.accumulate(submit[mine] - (until - seconds)) if mine.size else until
        ends[mine] = np.maximum(served, submit[mine] + predicted[mine])
    return ends
