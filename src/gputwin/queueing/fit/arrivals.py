"""The arrival process: rate over time, how bursty it is at each time scale, batches, and a two-state model of it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gputwin.core.errors import UserError
from gputwin.core.units import DAY, HOUR, WEEK
from gputwin.queueing.distributions import Floats

_LEAST_WINDOWS = 8


@dataclass(frozen=True)
class Mmpp:
    """A Markov-modulated Poisson process of two states: arrivals at one rate or the other, switching at random."""

    rates: tuple[float, float]
    """Per second, in the busy and the quiet state."""
    leaving: tuple[float, float]
    """Per second, out of each."""

    @property
    def mean_rate(self) -> float:
        """Return arrivals per second."""
        busy = self.leaving[1] / sum(self.leaving)
        return busy * self.rates[0] + (1 - busy) * self.rates[1]

    def dispersion(self, seconds: Floats) -> Floats:
        """Return the index of dispersion of counts over windows of these lengths (Heffes and Lucantoni, 1986)."""
        total = sum(self.leaving)
        busy = self.leaving[1] / total
        spread = 2 * busy * (1 - busy) * (self.rates[0] - self.rates[1]) ** 2 / (total * self.mean_rate)
        window = total * np.asarray(seconds)
        return np.asarray(1 + spread * (1 - (1 - np.exp(-window)) / window))

    def draw(self, rng: np.random.Generator, count: int) -> Floats:
        """Return the times of so many arrivals."""
        expected = count / self.mean_rate
        cycles = int(expected / (1 / self.leaving[0] + 1 / self.leaving[1]) * 1.2) + 50
        stays = np.column_stack([rng.exponential(1 / rate, cycles) for rate in self.leaving]).ravel()
        ends = np.cumsum(stays)
        begins = ends - stays
        numbers = rng.poisson(stays * np.tile(self.rates, cycles))
        times = np.repeat(begins, numbers) + rng.random(int(numbers.sum())) * np.repeat(stays, numbers)
        times = np.sort(times)
        if times.size < count:
            times = np.concatenate([times, ends[-1] + self.draw(rng, count - times.size)])
        return np.asarray(times[:count], np.float64)


@dataclass(frozen=True)
class Arrivals:
    """What arrivals look like."""

    jobs: int
    span: float
    """s from the first to the last."""
    rate: float
    """Per second."""
    gap_scv: float
    """Squared variation of the time between arrivals; 1 for Poisson."""
    windows: Floats
    """s."""
    dispersion: Floats
    """Variance over mean of the number of arrivals per window; 1 for Poisson at any length."""
    hourly: Floats
    """Rate in each hour of the day, per second, from the trace's origin on; empty for less than a day."""
    batch_mean: float
    """Arrivals per instant at which anything arrives."""
    batch_scv: float
    modulated: Mmpp | None

    @property
    def bursty(self) -> bool:
        """True where counts vary more than a Poisson process' at some scale, beyond chance."""
        return bool(self.dispersion.size and self.dispersion.max() > 1.5)

    def dispersion_at(self, seconds: float) -> float:
        """Return the index of dispersion at the window nearest to `seconds`."""
        if not self.windows.size:
            return self.gap_scv
        return float(self.dispersion[np.abs(np.log(self.windows / max(seconds, 1e-9))).argmin()])


def fit_arrivals(times: Floats) -> Arrivals:
    """Return the arrival process of these times, s."""
    x = np.sort(np.asarray(times, np.float64))
    x = x[np.isfinite(x)]
    if x.size < 2 or x[-1] <= x[0]:
        raise UserError(f"{x.size} arrivals at one instant have no rate; a trace needs arrivals at two times at least")
    span = float(x[-1] - x[0])
    gaps = np.diff(x)
    windows, dispersion = index_of_dispersion(x)
    instants, numbers = np.unique(x, return_counts=True)
    return Arrivals(
        jobs=int(x.size),
        span=span,
        rate=(x.size - 1) / span,
        gap_scv=float(gaps.var() / gaps.mean() ** 2),
        windows=windows,
        dispersion=dispersion,
        hourly=_hourly(x),
        batch_mean=x.size / instants.size,
        batch_scv=float(numbers.var() / numbers.mean() ** 2),
        modulated=fit_mmpp((x.size - 1) / span, windows, dispersion),
    )


def index_of_dispersion(times: Floats) -> tuple[Floats, Floats]:
    """Return window lengths, s, and variance over mean of the number of arrivals in such windows.

    Cox and Lewis, The Statistical Analysis of Series of Events, 1966, section 4.5. Poisson arrivals give 1 at any
    length; what grows with the length is burstiness or a rate that changes.
    """
    first, span = float(times[0]), float(times[-1] - times[0])
    shortest = max(span / times.size, 1e-9)
    count = max(int(math.log2(span / _LEAST_WINDOWS / shortest)) + 1, 0) if span > 0 else 0
    windows = np.asarray(shortest * 2.0 ** np.arange(count), np.float64)
    values = []
    for window in windows:
        bins = int(span / window)
        numbers = np.histogram(times, bins, (first, first + bins * window))[0]
        values.append(numbers.var() / numbers.mean())
    return windows, np.array(values, np.float64)


def fit_mmpp(rate: float, windows: Floats, dispersion: Floats) -> Mmpp | None:
    """Return the two-state process whose dispersion curve is nearest; None where arrivals are not burstier than Poisson.

    Heffes and Lucantoni, "A Markov Modulated Characterization of Packetized Voice and Data Traffic", 1986: its index
    of dispersion is 1 + A(1 − (1 − e^(−rt))/(rt)). A and r are fitted to the curve; the one freedom left is spent on
    states of equal weight, or, where that would need a negative rate, on a quiet state without arrivals.
    """
    if windows.size < 3 or dispersion.max() < 1.5:
        return None
    from scipy import optimize

    def misfit(logs: Floats) -> Floats:
        a, r = np.exp(logs)
        shape = 1 + a * (1 - (1 - np.exp(-r * windows)) / (r * windows))
        return np.asarray(np.log(shape) - np.log(np.maximum(dispersion, 1e-3)))

    start = np.log([max(dispersion.max() - 1, 0.1), 4 / windows[-1]])
    found = optimize.least_squares(misfit, start, bounds=(np.log([1e-6, 1e-3 / windows[-1]]), np.log([1e9, 1e6])))
    a, r = (float(v) for v in np.exp(found.x))
    # 2·p(1 − p)·Δ²/(r·rate) = a, with p the share of time busy and Δ the difference of the rates.
    busy = 0.5
    difference = math.sqrt(a * r * rate / (2 * busy * (1 - busy)))
    quiet = rate - busy * difference
    if quiet < 0:
        # All arrivals in the busy state: Δ = rate/p, so (1 − p)/p = a·r/(2·rate).
        busy = 1 / (1 + a * r / (2 * rate))
        difference, quiet = rate / busy, 0.0
    return Mmpp((quiet + difference, quiet), ((1 - busy) * r, busy * r))


def rate_curve(times: Floats, period: float = WEEK, step: float = HOUR) -> Floats:
    """Return arrivals per second in each step of a period, averaged over the trace; steps never seen are 0."""
    x = np.asarray(times, np.float64)
    first, last = float(x.min()), float(x.max())
    steps = round(period / step)
    at = np.minimum((x % period / step).astype(np.int64), steps - 1)
    edges = np.arange(math.floor(first / step), math.ceil(last / step) + 1) * step
    seen = np.zeros(steps)
    length = np.clip(edges[1:], first, last) - np.clip(edges[:-1], first, last)
    np.add.at(seen, (edges[:-1] % period / step + 0.5).astype(np.int64) % steps, length)
    number = np.bincount(at, minlength=steps).astype(np.float64)
    return np.divide(number, seen, out=np.zeros(steps), where=seen > 0)


def _hourly(times: Floats) -> Floats:
    return rate_curve(times, DAY) if times[-1] - times[0] >= DAY else np.zeros(0)
