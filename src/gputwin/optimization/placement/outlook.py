"""Who will come in the next period: the newcomers of a past period, chosen by a quantile; or, in hindsight, the truth.

A past period's newcomers are a forecast of the next one's that keeps their mix: who comes together came together before.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gputwin.core.units import DAY
from gputwin.optimization.placement.heuristics import Floats
from gputwin.optimization.placement.problem import Ints

_PAST_DAYS = 7
_MOST_PERIODS = 168


@dataclass(frozen=True)
class Lives:
    """Group, begin, end (s) and size of each instance; the size is a share of what is scarce."""

    group: Ints
    begin: Floats
    end: Floats
    size: Floats


def newcomers(lives: Lives, begin: float, end: float) -> Ints:
    """Return the instances that came after `begin` and are there at the period's fullest moment up to `end`.

    The fullest moment is that at which most has been added to what was there at `begin`; nobody where nothing was.
    What happens after `end` has no influence.
    """
    came = np.flatnonzero((lives.begin > begin) & (lives.begin <= end))
    if not came.size:
        return came
    left = np.flatnonzero((lives.end > begin) & (lives.end <= end))
    times = np.concatenate([lives.begin[came], lives.end[left]])
    change = np.concatenate([lives.size[came], -lives.size[left]])
    # At one moment those who leave make room before others come.
    order = np.lexsort((change, times))
    level = np.cumsum(change[order])
    fullest = int(np.argmax(level))
    if level[fullest] <= 0:
        return came[:0]
    moment = times[order][fullest]
    there: Ints = came[(lives.begin[came] <= moment) & (lives.end[came] > moment)]
    return there


def forecast(lives: Lives, now: float, period: float, quantile: float, since: float) -> Ints:
    """Return the instances of a past period to make room for: that at the quantile of what past periods added.

    Periods are those of the last seven days that ended by `now`, back to back; nobody without a past of three periods.
    """
    count = int(min((now - max(since, now - _PAST_DAYS * DAY)) // period, _MOST_PERIODS))
    if count < 3:
        return np.zeros(0, np.int64)
    past = [newcomers(lives, now - (k + 1) * period, now - k * period) for k in range(count)]
    added = [float(lives.size[who].sum()) for who in past]
    order = np.argsort(added, kind="stable")
    return past[int(order[min(int(np.ceil(quantile * count)) - 1, count - 1)])]
