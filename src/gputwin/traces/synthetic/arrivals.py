"""When jobs arrive: a daily and weekly rhythm with gusts, and sittings in which one group submits several jobs.

The process is doubly stochastic. Sittings follow a Poisson process whose rate is the rhythm times a random, slowly
changing factor; within a sitting jobs follow one another within minutes. Both make counts per hour vary far more
than those of a Poisson process, as they do in every trace of this kind (NSDI'22 §3.2, ATC'19 §2.4).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gputwin.core.units import DAY, HOUR
from gputwin.traces.synthetic.distributions import Floats, Ints, spread_within

_FIRST_WEEKDAY = 3  # time 0 of a weekday clock is a Thursday; Monday is 0
_GUST_MEMORY = 0.8
_LARGE_GROUP = 2e-5  # of all work
_MOST_BY_ONE_GROUP = 0.1  # of the work that arrives while the group is active


@dataclass(frozen=True)
class Rhythm:
    """How the rate of sittings varies: by hour of day, by weekday from Monday, and by chance."""

    hours: tuple[float, ...]
    weekdays: tuple[float, ...] = (1.0,) * 7
    gusts: float = 0.3


@dataclass(frozen=True)
class Sittings:
    """How a group's jobs cluster: the chance that a job opens a new sitting, and the gap to the next job within one.

    `lifetime` is the part of the trace over which a group is active, its median; groups differ by `lifetime_spread`.
    """

    fresh: float
    gap_seconds: float
    lifetime: float
    lifetime_spread: float = 1.0


@dataclass(frozen=True)
class Window:
    """The time over which jobs arrive: its start and length in s, and the zone its days are in."""

    start: float
    span: float
    utc_offset: float = 0.0


def arrivals(
    rng: np.random.Generator, sizes: Ints, work: Floats, sittings: Sittings, rhythm: Rhythm, window: Window
) -> tuple[Ints, Ints]:
    """Return the submit second of each job in order of time, and the row it has when jobs are listed by group.

    `work` is what the jobs of each group occupy in all, in any unit. It arrives evenly but for the rhythm: the largest
    groups are active for longer, and large groups begin one after another along their cumulative work. Otherwise the few
    largest would decide in which week the cluster is full.
    """
    group = np.repeat(np.arange(len(sizes)), sizes)
    fresh = rng.random(len(group)) < sittings.fresh
    fresh[0] = True
    fresh[1:] |= group[1:] != group[:-1]
    owner = group[fresh]
    width = sittings.lifetime * np.exp(sittings.lifetime_spread * rng.standard_normal(len(sizes)))
    width = np.minimum(np.maximum(width, work / (_MOST_BY_ONE_GROUP * work.sum())), 1.0)
    begin = _spread_over_time(rng.random(len(sizes)), width, work)
    count = np.bincount(owner, minlength=len(sizes))
    number = np.arange(len(owner)) - (np.cumsum(count) - count)[owner]
    place = begin[owner] + width[owner] * (number + rng.random(len(owner))) / count[owner]
    place -= np.floor(place)  # who is active past the end was so at the beginning: the trace does not thin out there
    opened = _clock(rng, rhythm, window, place)[np.cumsum(fresh) - 1]
    later = opened + np.where(fresh, 0.0, rng.exponential(sittings.gap_seconds, size=len(group)))
    times = np.where(later < window.start + window.span, later, opened)
    return _by_time(times)


def _spread_over_time(begin: Floats, width: Floats, work: Floats) -> Floats:
    """Return when each group begins, as a share of the window; the large ones of about one width follow their work."""
    large = np.flatnonzero(work > _LARGE_GROUP * work.sum())
    begin[large] = spread_within(begin[large], work[large], np.ceil(-np.log2(width[large])))
    return begin


def _by_time(times: Floats) -> tuple[Ints, Ints]:
    """Return the whole seconds of `times` in ascending order, and the row each came from."""
    bits = len(times).bit_length()
    key = np.sort((times.astype(np.int64) << bits) | np.arange(len(times)))  # cheaper than a sort by index
    return key >> bits, key & ((1 << bits) - 1)


def _clock(rng: np.random.Generator, rhythm: Rhythm, window: Window, place: Floats) -> Floats:
    """Return the time at which the share `place` of all sittings has begun."""
    end = window.start + window.span
    edges = np.append(np.arange(window.start, end, HOUR), end)
    local = edges[:-1] + window.utc_offset
    by_hour = np.array(rhythm.hours)[(local % DAY // HOUR).astype(np.int64)]
    by_day = np.array(rhythm.weekdays)[((local // DAY + _FIRST_WEEKDAY) % 7).astype(np.int64)]
    rate = by_hour * by_day * _gusts(rng, len(local), rhythm.gusts)
    expected = np.concatenate([[0.0], np.cumsum(rate * np.diff(edges))])
    times: Floats = np.interp(place * expected[-1], expected, edges)
    return np.minimum(times, np.nextafter(end, window.start))


def _gusts(rng: np.random.Generator, hours: int, strength: float) -> Floats:
    """Return one factor per hour, correlated with those of the hours before; 1 on average over each day."""
    kernel = _GUST_MEMORY ** np.arange(24)
    noise = rng.standard_normal(hours + len(kernel) - 1)
    factor = np.exp(strength * np.convolve(noise, kernel / np.sqrt((kernel**2).sum()), mode="valid"))
    day = np.arange(hours) // 24
    gusts: Floats = factor * (np.bincount(day) / np.bincount(day, weights=factor))[day]
    return gusts
