"""How likely a running spot node is lost, over time: constant, following its price, or as in a record of preemptions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gputwin.core.errors import InputError, UserError
from gputwin.core.units import HOUR

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Series:
    """A value from each of `times` (s, rising from 0) until the next; repeated after `span_seconds`."""

    times: Floats
    values: Floats
    span_seconds: float

    def __post_init__(self) -> None:
        times, values = self.times, self.values
        if times.size == 0 or times.size != values.size or times[0] != 0 or (np.diff(times) <= 0).any():
            raise UserError("a series needs a value for each of its times, which rise from 0")
        if not self.span_seconds > times[-1] or not (np.isfinite(values) & (values >= 0)).all():
            raise UserError("the values of a series are 0 or more, and it ends after its last time")

    @cached_property
    def _sums(self) -> Floats:
        return np.concatenate([[0.0], np.cumsum(self.values * np.diff(np.append(self.times, self.span_seconds)))])

    @property
    def mean(self) -> float:
        """Return the mean over time."""
        return float(self._sums[-1] / self.span_seconds)

    def integral(self, time: Floats | float) -> Floats:
        """Return the integral from 0 to each time."""
        rounds, into = np.divmod(np.asarray(time, np.float64), self.span_seconds)
        at = np.searchsorted(self.times, into, "right") - 1
        return np.asarray(rounds * self._sums[-1] + self._sums[at] + self.values[at] * (into - self.times[at]))

    def time_of(self, area: float) -> float:
        """Return when the integral reaches `area`, s; infinite where the values are 0."""
        if self._sums[-1] <= 0:
            return np.inf
        rounds, rest = divmod(area, float(self._sums[-1]))
        at = int(np.searchsorted(self._sums, rest, "right")) - 1
        into = self.times[at] + (rest - self._sums[at]) / self.values[at] if rest > self._sums[at] else self.times[at]
        return float(rounds * self.span_seconds + into)

    def relative(self, power: float = 1.0) -> Series:
        """Return the values to a power, divided so that their mean is 1."""
        powered = Series(self.times, self.values**power, self.span_seconds)
        if not powered.mean > 0:
            raise UserError("prices that are all 0 say nothing; give some above 0")
        return Series(self.times, powered.values / powered.mean, self.span_seconds)


@dataclass(frozen=True)
class Hazard:
    """Losses of a running node per hour, over time (s from the beginning of the run)."""

    per_hour: Series

    def lost_at(self, start: float, draw: float) -> float:
        """Return when a node started at `start` is lost, s; `draw` is from the exponential distribution of mean 1."""
        return self.per_hour.time_of(float(self.per_hour.integral(start)) + draw * HOUR)

    def expected_losses(self, start: Floats | float, end: Floats | float) -> Floats:
        """Return the mean number of losses of a node between two times, if it is replaced at once."""
        return (self.per_hour.integral(end) - self.per_hour.integral(start)) / HOUR


def constant(per_hour: float) -> Hazard:
    """Return the hazard that never changes."""
    return Hazard(Series(np.zeros(1), np.array([per_hour]), HOUR))


def by_price(per_hour: float, prices: Series, power: float = 1.0) -> Hazard:
    """Return a hazard of mean `per_hour` that follows the price to a power: where nodes are dear, others want them."""
    relative = prices.relative(power)
    return Hazard(Series(prices.times, per_hour * relative.values, prices.span_seconds))


def by_record(held: Sequence[Series], bin_seconds: float = 6 * HOUR) -> Hazard:
    """Return the hazard of a record of preemptions: nodes held over time by zone; where that falls, nodes were lost.

    Losses ÷ node-hours in each bin, over all zones; the mean of the record where no node was held.
    """
    span = max(series.span_seconds for series in held)
    bins = max(int(np.ceil(span / bin_seconds)), 1)
    edges = np.minimum(np.arange(bins + 1) * bin_seconds, span)
    lost, hours = np.zeros(bins), np.zeros(bins)
    for series in held:
        falls = np.flatnonzero(np.diff(series.values) < 0) + 1
        at = np.minimum((series.times[falls] / bin_seconds).astype(np.int64), bins - 1)
        lost += np.bincount(at, weights=-np.diff(series.values)[falls - 1], minlength=bins)
        hours += np.diff(series.integral(np.minimum(edges, series.span_seconds * (1 - 1e-12)))) / HOUR
    if not hours.sum() > 0:
        raise UserError("the record of preemptions has no node that was held")
    mean = float(lost.sum() / hours.sum())
    rates = np.where(hours > 0, lost / np.maximum(hours, 1e-9), mean)
    return Hazard(Series(edges[:-1].astype(np.float64), rates, float(span)))


def read_prices(path: Path) -> Series:
    """Return the prices of a CSV with the columns time_seconds and price_per_hour; the last holds for the mean gap."""
    import polars as pl

    from gputwin.traces.framefile import read_given_csv

    frame = read_given_csv(path, remedy="give a CSV of prices")
    for name in ("time_seconds", "price_per_hour"):
        if name not in frame.columns or not frame[name].dtype.is_numeric() or frame[name].null_count():
            raise InputError("column missing or not of numbers", file=path, field=name)
    frame = frame.sort("time_seconds")
    times = frame["time_seconds"].cast(pl.Float64).to_numpy()
    if times.size < 2:
        raise InputError("fewer than two prices", file=path, remedy="give prices over time")
    gap = (times[-1] - times[0]) / (times.size - 1)
    try:
        return Series(times - times[0], frame["price_per_hour"].cast(pl.Float64).to_numpy(), times[-1] - times[0] + gap)
    except UserError as error:
        raise InputError(str(error), file=path, field="price_per_hour") from None
