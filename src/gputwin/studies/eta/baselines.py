"""The obvious answers to "when will it start": the user's last waits, and the waits of jobs of its size.

Both see what had started by then. Of a job that has waited already, only waits that lasted longer count.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gputwin.profiling.jobs import Floats, Ints
from gputwin.studies.eta.points import LEVELS, Points
from gputwin.studies.eta.record import Record

LAST_WAITS = 30
SIZE_WAITS = 500
FEWEST = 10


def by_user(record: Record, points: Points) -> Floats:
    """Return [point, level]: the user's last wait between quantiles of the user's last 30; of all users where fewer."""
    return _by(record, points, record.users, LAST_WAITS, lambda waits: waits[-1])


def by_size(record: Record, points: Points) -> Floats:
    """Return [point, level]: the median wait of the last 500 jobs of about the size, between their quantiles."""
    sizes = np.floor(np.log2(np.maximum(record.instances, 1))).astype(np.int64)
    return _by(record, points, sizes, SIZE_WAITS, lambda waits: float(np.median(waits)))


def _by(record: Record, points: Points, key: Ints, most: int, middle: Callable[[Floats], float]) -> Floats:
    order = np.argsort(record.start, kind="stable")
    order = order[np.isfinite(record.start[order])]
    start, wait = record.start[order], (record.start - record.submit)[order]
    groups = {int(k): np.flatnonzero(key[order] == k) for k in np.unique(key[points.job])}
    everyone = np.arange(order.size)
    result = np.full((points.size, len(LEVELS)), np.nan)
    for i in range(points.size):
        known = np.searchsorted(start, points.at[i], side="right")
        for rows, least in ((groups[int(key[points.job[i]])], FEWEST), (everyone, 1)):
            seen = rows[: np.searchsorted(rows, known)]
            waits = wait[seen]
            waits = waits[waits >= points.waited[i]][-most:] - points.waited[i]
            if waits.size >= least:
                low, high = np.quantile(waits, (LEVELS[0], LEVELS[-1]))
                result[i] = low, middle(waits), high
                break
        else:
            # Nobody has waited as long: as long again, give or take.
            result[i] = 0.0, points.waited[i], 9.0 * points.waited[i]
    return result
