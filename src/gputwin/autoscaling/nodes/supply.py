"""How many spot nodes can be had when, and how likely each is lost: availability, prices, and a hazard.

Availability (could a node be started now?) and preemption (when does a running node go?) are different processes. A trace
of availability limits how many nodes of a zone may be on: where it falls, nodes are reclaimed, and none is started until it
rises. A hazard (constant, following the price, or of a record) takes running nodes one by one and never refuses a new one.
Both may hold at once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gputwin.autoscaling.spot.hazard import Hazard, Series, by_price, by_record, constant
from gputwin.core.errors import InputError, UserError

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Zone:
    """The share of a zone's spot nodes that may be on, from each of `times` (s, rising) until the next."""

    name: str
    times: Floats
    shares: Floats
    span_seconds: float
    """The series is repeated after this long."""

    def share_at(self, time: float) -> float:
        """Return the share at `time`, s from the beginning of the run."""
        into = time % self.span_seconds
        return float(self.shares[np.searchsorted(self.times, into, "right") - 1])

    def next_change(self, time: float) -> float:
        """Return when the share next changes after `time`, s."""
        rounds, into = divmod(time, self.span_seconds)
        k = int(np.searchsorted(self.times, into, "right"))
        later = self.times[k] if k < self.times.size else self.span_seconds
        return float(rounds * self.span_seconds + later)

    @property
    def mean_share(self) -> float:
        """Return the mean share over time."""
        lengths = np.diff(np.append(self.times, self.span_seconds))
        return float((lengths * self.shares).sum() / self.span_seconds)


@dataclass(frozen=True)
class SpotSupply:
    """Zones among which spot nodes are dealt out in turn, the hazard of each node, and the notice it is given."""

    zones: tuple[Zone, ...] = ()
    hazard_per_hour: float = 0.0
    """Mean losses of a running node."""
    notice_seconds: float = 120.0
    prices: Series | None = None
    """Spot prices over time: each group's own price moves with them, around its mean, and so does the hazard."""
    price_power: float = 1.0
    """The hazard follows the price to this power; 0: it does not."""
    record: Hazard | None = None
    """The hazard of a record of preemptions, instead of `hazard_per_hour`."""

    def __post_init__(self) -> None:
        if not 0 <= self.hazard_per_hour < math.inf:
            raise UserError(f"the hazard of a spot node is {self.hazard_per_hour:g} an hour; give 0 or more")
        if not 0 <= self.notice_seconds < math.inf:
            raise UserError(f"notice is {self.notice_seconds:g} s; give 0 or more")
        if not 0 <= self.price_power < math.inf:
            raise UserError(f"the power of the price is {self.price_power:g}; give 0 or more")

    @cached_property
    def hazard(self) -> Hazard | None:
        """Return the hazard of a running node; None: none is lost but by availability."""
        if self.record is not None:
            return self.record
        if self.hazard_per_hour == 0:
            return None
        if self.prices is None:
            return constant(self.hazard_per_hour)
        return by_price(self.hazard_per_hour, self.prices, self.price_power)


def from_prices(times: Floats, prices: Floats, bid: float, span_seconds: float, name: str = "prices") -> Zone:
    """Return the zone whose nodes can be had while the price is at most the bid."""
    return Zone(name, times, (prices <= bid).astype(np.float64), span_seconds)


COLUMNS = ("kind", "nodes", "collection", "zone_instance", "gap_seconds", "tick", "value")


def read_zones(path: Path, *, kind: str = "availability", like: Sequence[str] = ()) -> tuple[Zone, ...]:
    """Return the zones of a run-length encoded file of availability: a value holds from its tick until the next.

    Columns: kind, nodes (as in 16-node: values count up to 16), collection, zone_instance, gap_seconds (of a tick), tick,
    value; the value END says that the record ends at that tick. Only zones whose collection or instance contains one of
    `like` are taken, if any is given.
    """
    import polars as pl

    from gputwin.traces.framefile import read_given_csv

    frame = read_given_csv(path, remedy="give a CSV of availability", text=("value",))
    missing = [name for name in COLUMNS if name not in frame.columns]
    if missing:
        raise InputError("column missing", file=path, field=missing[0], remedy=f"it needs {', '.join(COLUMNS)}")
    frame = frame.filter(pl.col("kind") == kind)
    zones = []
    for (nodes, collection, name), part in frame.group_by(
        ["nodes", "collection", "zone_instance"], maintain_order=True
    ):
        label = f"{collection}/{name}"
        if like and not any(text in label for text in like):
            continue
        gap = float(part["gap_seconds"][0])
        values = part.filter(pl.col("value") != "END")
        counts, ticks = values["value"].cast(pl.Float64, strict=False), values["tick"].to_numpy()
        if counts.null_count():
            wrong = values["value"].gather(counts.is_null().arg_true())[0]
            raise InputError(f"'{wrong}' is no number", file=path, field="value", remedy="give counts of nodes")
        end = part.filter(pl.col("value") == "END")["tick"]
        # A record without an end has a last run as long as runs are on average.
        last = float(end[0]) if end.len() else float(ticks[-1]) * (1 + 1 / max(ticks.size - 1, 1)) + 1
        zones.append(Zone(label, ticks * gap, counts.to_numpy() / int(str(nodes).split("-")[0]), last * gap))
    if not zones:
        raise InputError(f"no zone of kind '{kind}' fits {', '.join(like) or 'any name'}", file=path)
    return tuple(zones)


def read_record(path: Path, like: Sequence[str] = ()) -> Hazard:
    """Return the hazard of the preemptions in a file as `read_zones` takes it: rows of kind preemption count nodes held."""
    held = []
    for zone in read_zones(path, kind="preemption", like=like):
        times = zone.times - zone.times[0]
        held.append(Series(times, zone.shares, zone.span_seconds - float(zone.times[0])))
    return by_record(held)
