"""How far to leave the last value: as much of the way to another forecast as past errors prove to be worth it.

With e the error of the last value and d the step from it to another forecast, the forecast `last value + s·d` has the least
squared error at s = Σde / Σd² (Bates and Granger 1969; the regression is the encompassing test of Harvey, Leybourne and
Newbold 1998). Of that share only the lower end of its confidence interval is used: thin evidence gives zero, which is
the last value, and any share between 0 and twice the true one is better than the last value. A guard watches the
forecasts so made and goes back to the last value as soon as they lose what it allows. Losses are counted in the least
mean squared error that the last value had over any fifth of the bins so far: where errors have heavy tails, the mean of
all is that of a few bursts, and beside it the daily cost of a stale forecast looks small. A bin can lose more than it
can gain, so that a pattern which stops is left within a few bins. A step much larger than any whose outcome is known is
cut, since nothing is known of such steps.

Everything used for a row comes from rows whose targets were known at its origin.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from gputwin.forecasting.metrics import loss_standard_error
from gputwin.forecasting.series import Floats, Integers

FEWEST = 15
"""Forecasts that do not overlap, below which nothing is proven."""
CONFIDENCE = 0.975
"""Of the lower end of a share, one-sided."""
REVIEW = 24
"""Rows after which shares are estimated anew, at least."""
_REVIEWS = 80
_AS_GOOD = 0.9
"""Share of the greatest gain from which on an earlier column is preferred."""
_MOSTLY = 0.75
"""Lower end from which on the best estimate of a share is used instead of it."""
CREDIT = 4.0
"""Mean squared errors of the last value (`quiet_loss`) that may be lost before the guard goes back to it, at least."""
CREDIT_SHARE = 0.01
"""The same per bin so far: long series have more to lose and more to gain."""
EARNED = 0.75
"""Share of `CREDIT` that must be earned before the last value is left."""
_WINDOW = 100
_WINDOW_SHARE = 0.2
"""Bins over which the last value's least mean squared error counts: at least so many, or this share of all so far."""
_MOST_GAINED, _MOST_LOST = 1.0, 2.0
"""Most that one bin adds to the credit, and most that it takes: a single burst says little."""
_FARTHEST = 2.0
"""Longest step over the longest one whose outcome is known."""


class Standing(NamedTuple):
    """Column of the forecast to go towards, −1 for none, and how much of the way."""

    column: int
    share: float


LAST_VALUE = Standing(-1, 0.0)


class Walk(NamedTuple):
    """Per row: the forecast, and the column and share behind it; and what stands after the last row."""

    forecast: Floats
    column: Integers
    share: Floats
    now: Standing


def proven(steps: Floats, errors: Floats, lead: int) -> Standing:
    """Return what past rows prove: the column with the greatest gain at the lower end of its share, or nearly so.

    `steps` are rows × columns, forecast less last value, NaN where there was none; `errors` are those of the last
    value. Of columns that gain about as much per row the first is taken.
    """
    if len(errors) < FEWEST * lead:
        return LAST_VALUE
    made = np.isfinite(steps)
    step = np.where(made, steps, 0.0)
    size = (step**2).sum(axis=0)
    usable = (made.sum(axis=0) >= FEWEST * lead) & (size > 1e-12 * float((errors**2).sum()))
    if not usable.any():
        return LAST_VALUE
    columns = np.flatnonzero(usable)
    step, size = step[:, columns], size[columns]
    share = (step * errors[:, None]).sum(axis=0) / size
    rest = step * (errors[:, None] - share * step)
    # Levels that are held make errors alike for longer than the lead.
    lags = max(2 * lead, math.isqrt(len(errors)))
    spread = len(errors) * loss_standard_error(rest, lags + 1) / size
    low = np.clip(share - _quantile(_events(step, size, lead)) * spread, 0.0, 1.0)
    if not low.any():
        return LAST_VALUE
    gain = low**2 * size / made[:, columns].sum(axis=0)
    best = int(np.argmax(gain >= _AS_GOOD * gain.max()))
    # A share above half being proven, all the way is too; well above it, the best estimate is taken as it is.
    return Standing(int(columns[best]), float(min(share[best], 1.0) if low[best] > _MOSTLY else low[best]))


def _events(step: Floats, size: Floats, lead: int) -> Floats:
    """Return per column how many stretches of the lead's length carry the squared steps, as if all were equally long.

    Kish's effective size: where two bursts make most of the steps, the evidence is that of about two.
    """
    stretches = np.add.reduceat(step**2, np.arange(0, len(step), lead), axis=0)
    return np.asarray(size**2 / (stretches**2).sum(axis=0))


def _quantile(independent: Floats) -> Floats:
    """Return Student's quantiles for so many forecasts that do not overlap."""
    from scipy.special import stdtrit

    return np.asarray(stdtrit(np.maximum(independent - 1, 2.0), CONFIDENCE))


class Guard:
    """Whether the proposed forecasts are to be trusted: they must earn credit first, and are left when it is spent.

    Credit is what they gained on the last value, in its mean squared errors, never below zero nor above a limit: a
    cumulative-sum test (Page 1954). It goes on being counted while the last value is used, so that trust can return.
    """

    def __init__(self) -> None:
        self.base = 0.0
        self.most = CREDIT
        self.credit = 0.0
        self.trusts = False

    def see(self, last_loss: float, proposed_loss: float) -> None:
        """Take in the squared errors of the last value and of the proposed forecast at one bin; NaN is not known."""
        gain = last_loss - proposed_loss
        if gain == 0 or gain != gain:
            return
        counted = gain / self.base if self.base > 0 else gain * np.inf
        self.credit = min(max(self.credit + min(max(counted, -_MOST_LOST), _MOST_GAINED), 0.0), self.most)
        if self.credit <= 0:
            self.trusts = False
        elif self.credit >= EARNED * CREDIT:
            self.trusts = True


def walk(table: Floats, actual: Floats, last: Floats, lead: int) -> Walk:
    """Return the forecasts of consecutive origins, each from what was known at it.

    `table` is rows × columns of forecasts, `last` the last value at each row, `actual` NaN where not known.
    """
    rows = len(actual)
    steps, errors = table - last[:, None], actual - last
    proposed, made = last.copy(), last.copy()
    column, share = np.full(rows, -1, dtype=np.int64), np.zeros(rows)
    guard = Guard()
    every = max(REVIEW, -(-rows // _REVIEWS))
    for start in range(0, rows, every):
        now, guard.base = _review(steps, errors, start, lead)
        guard.most = max(CREDIT, CREDIT_SHARE * start)
        stop = min(start + every, rows)
        longest = _longest(steps, errors, now, start, lead)
        ahead = now.share * np.clip(steps[start:stop, now.column], -longest, longest)
        proposed[start:stop] += np.where(np.isfinite(ahead), ahead, 0.0)
        for row in range(start, stop):
            _look(guard, actual, last, proposed, row - lead)
            if guard.trusts:
                made[row], column[row], share[row] = proposed[row], now.column, now.share
    now, guard.base = _review(steps, errors, rows, lead)
    _look(guard, actual, last, proposed, rows - lead)
    return Walk(made, column, share, now if guard.trusts else LAST_VALUE)


def _review(steps: Floats, errors: Floats, origin: int, lead: int) -> tuple[Standing, float]:
    """Return what is proven at an origin, and the last value's squared error in its quietest time."""
    past = slice(0, max(origin - lead + 1, 0))
    known = np.isfinite(errors[past])
    if not known.any():
        return LAST_VALUE, 0.0
    return proven(steps[past][known], errors[past][known], lead), quiet_loss(errors[past][known])


def quiet_loss(errors: Floats) -> float:
    """Return the least mean of squares over a fifth of all errors in a row, a hundred at least (or all there are)."""
    total = np.concatenate([[0.0], np.cumsum(errors**2)])
    width = min(max(_WINDOW, int(_WINDOW_SHARE * len(errors))), len(errors))
    return float(max((total[width:] - total[:-width]).min() / width, 0.0))


def _longest(steps: Floats, errors: Floats, now: Standing, origin: int, lead: int) -> float:
    """Return how far a step may go at an origin, from the steps whose outcomes are known at it."""
    past = slice(0, max(origin - lead + 1, 0))
    tried = np.abs(steps[past, now.column][np.isfinite(errors[past])])
    return _FARTHEST * float(np.max(tried, initial=0.0, where=np.isfinite(tried)))


def _look(guard: Guard, actual: Floats, last: Floats, proposed: Floats, row: int) -> None:
    if row >= 0:
        guard.see((actual[row] - last[row]) ** 2, (actual[row] - proposed[row]) ** 2)
