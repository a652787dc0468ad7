"""What a recipe for a synthetic trace is: how to make its tables, and what its original is known to look like."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

import polars as pl

from gputwin.core.registry import Registry
from gputwin.traces.reader import Clock
from gputwin.traces.synthetic.distributions import Distribution


@dataclass(frozen=True)
class Reference:
    """How one marginal is distributed in the original trace, and where that is said."""

    marginal: str
    distribution: Distribution
    source: str


@dataclass(frozen=True)
class Published:
    """One figure published about the original trace, and where."""

    statistic: str
    value: float
    source: str


@dataclass(frozen=True)
class Load:
    """The load that the trace offers its cluster, as a share of all GPUs: what any whole week lies between, and why.

    `work` is what arrives per GPU and second, where run times are fitted to it.
    """

    lowest_week: float
    highest_week: float
    source: str
    work: float | None = None


@dataclass(frozen=True)
class Recipe:
    """One synthetic trace: `make(jobs, seed)` returns its `tasks` and `nodes` in canonical columns.

    `span(jobs)` is the time in s over which that many jobs arrive. Where it grows with the jobs, the cluster is that of
    the original and a smaller trace is a shorter one; where it does not, the cluster grows with the jobs. Either way a
    GPU is offered the same work per second.
    """

    name: str
    title: str
    span: Callable[[int], float]
    make: Callable[[int, int], dict[str, pl.DataFrame]]
    references: tuple[Reference, ...]
    load: Load
    published: tuple[Published, ...] = ()
    clock: Clock = Clock.RELATIVE
    zone: str = "UTC"
    has_instances: bool = False

    @property
    def utc_offset(self) -> float:
        """Return the zone's offset from UTC in s."""
        return utc_offset(self.zone)


def utc_offset(zone: str, unix_seconds: float = 0.0) -> float:
    """Return the offset of `zone` from UTC in s, at a moment; weekday clocks start in January 1970."""
    offset = datetime.fromtimestamp(unix_seconds, ZoneInfo(zone)).utcoffset()
    return offset.total_seconds() if offset else 0.0


RECIPES: Registry[Recipe] = Registry("synthetic trace", "gputwin.traces.synthetic")
