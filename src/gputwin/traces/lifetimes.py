"""When each task asked for and held its request within the record: the one rule for what was cut off at either end.

- The **record** lasts from the first to the last event of the task table.
- A task that ran when the record began (`was_running`) holds its request from the record's beginning on.
- A task alive when the record ended (`is_running`, or running without an end) holds its request until the record's end; one
  that `is_running` and has an end was last seen then (merged traces), and holds its request until then.
- A task whose start is not given is taken to start on arrival; one of which not even that is known has no known life.
- A task that ended holds its request for its runtime. One that began and of whose end nothing is known has no known life.

Averages over time are taken over the **window**: from the first arrival (the record's beginning, where tasks ran then
already) to the last arrival, since a log lists nobody who came later (to the record's end, where tasks were alive then
and less than a tenth of the time went by since the last arrival). Stray arrivals at either end are outside it: at most a
hundredth of them, where they take a tenth of the time or more and come at less than a tenth of the mean rate.

Written against narwhals, so that every engine that can hold the tasks follows the same rule.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl
from numpy.typing import NDArray

from gputwin.core.units import HOUR, WHOLE_GPU_MILLI, format_duration
from gputwin.traces.schema import Status

Floats = NDArray[np.float64]
TIMES = ("submit_time", "start_time", "end_time")
LIFE_COLUMNS = (
    *(*TIMES, "duration_seconds", "is_running", "was_running", "status"),
    *("instances", "gpu_count", "gpu_milli"),
)
"""Columns of the task table that lives and GPU-hours are made from."""
STRAY_SHARE = 0.01
"""Share of arrivals at either end that may be strays."""
STRAY_TIME = 0.1
"""Share of the time that strays must take up to be left out."""
STRAY_RATE = 0.1
"""Strays come at less than this share of the mean rate."""


@dataclass(frozen=True)
class Window:
    """The record's first and last event, and the part of it that averages over time are taken over; all in s."""

    first: float
    last: float
    begin: float
    until: float
    strays_before: int = 0
    """Tasks that arrived before the window."""
    strays_after: int = 0

    @property
    def seconds(self) -> float:
        """Return how long the window is, s."""
        return self.until - self.begin

    def notes(self) -> tuple[str, ...]:
        """Return what is outside the window, in words; nothing where no arrival is."""
        found = []
        for count, side, gap in (
            (self.strays_before, "before", self.begin - self.first),
            (self.strays_after, "after", self.last - self.until),
        ):
            if count:
                which = "a stray arrival" if count == 1 else f"{count:,} stray arrivals"
                found.append(
                    f"averages over time are over {format_duration(self.seconds)}: {which}, up to "
                    f"{format_duration(gap)} {side} that, left out"
                )
        return tuple(found)

    def sentences(self) -> tuple[str, ...]:
        """Return the notes as sentences."""
        return tuple(f"{note[:1].upper()}{note[1:]}." for note in self.notes())


def known_times(tasks: Any) -> nw.LazyFrame[Any]:
    """Return the tasks with times that are not finite made unknown."""
    frame = nw.from_native(tasks)
    lazy = frame if isinstance(frame, nw.LazyFrame) else frame.lazy()
    times = (*TIMES, "duration_seconds")
    return lazy.with_columns(**{c: nw.when(nw.col(c).is_finite()).then(nw.col(c)) for c in times})


def wait() -> nw.Expr:
    """Return s from submit to start; null unless both are known."""
    return nw.col("start_time") - nw.col("submit_time")


def runtime() -> nw.Expr:
    """Return s it ran; null while it runs, or where it began before the record."""
    return nw.when(~nw.col("is_running")).then(_seen_runtime())


def _seen_runtime() -> nw.Expr:
    """Return s it was seen to run, as far as the source says; of one that runs until it was last seen, if ever."""
    since_arrival = nw.when(nw.col("is_running")).then(nw.col("end_time") - nw.col("submit_time"))
    return nw.coalesce("duration_seconds", nw.col("end_time") - nw.col("start_time"), since_arrival)


def arrival() -> nw.Expr:
    """Return s; when it was asked for, as far as the source says; null where that was before the record."""
    return nw.coalesce("submit_time", "start_time")


def is_alive() -> nw.Expr:
    """Return whether it still runs when the record ends. One with an end is over, whatever its last status says."""
    runs = nw.col("is_running") | (nw.col("status").cast(nw.String) == Status.RUNNING.value)
    return runs & _seen_runtime().is_null() & nw.col("end_time").is_null()


def asked_from(window: Window) -> nw.Expr:
    """Return s; when it began to ask for its request: its arrival, or the record's beginning."""
    return nw.when(nw.col("was_running")).then(nw.lit(window.first)).otherwise(arrival())


def held_from(window: Window) -> nw.Expr:
    """Return s; when it began to hold its request."""
    begun = nw.coalesce("start_time", "submit_time")
    return nw.when(nw.col("was_running")).then(nw.lit(window.first)).otherwise(begun)


def held_seconds(window: Window) -> nw.Expr:
    """Return s it was seen to hold its request; null where that is not known or never was."""
    to_the_end = nw.lit(window.last) - held_from(window)
    older = nw.coalesce(nw.col("end_time") - window.first, nw.col("duration_seconds"))
    seen = nw.when(nw.col("was_running")).then(older).otherwise(_seen_runtime())
    known = nw.when(is_alive()).then(to_the_end).otherwise(seen)
    return nw.when(~held_from(window).is_null()).then(known)


def is_unknown(window: Window) -> nw.Expr:
    """Return whether nobody knows when it held its request, though it is not known to have waited to the end."""
    waited = (nw.col("status").cast(nw.String) == Status.WAITING.value) & nw.col("start_time").is_null()
    return held_seconds(window).is_null() & ~waited


def observed(tasks: Any) -> Window:
    """Return the record and the window of a task table of any engine."""
    alive = is_alive() & (nw.col("was_running") | ~arrival().is_null())
    frame = known_times(tasks).select(
        *TIMES, "was_running", _arrival=arrival(), _last=arrival() + _seen_runtime(), _alive=alive.cast(nw.Int64)
    )
    bounds = [nw.col(c).min().alias(f"low{c}") for c in TIMES]
    bounds += [nw.col(c).max().alias(f"high{c}") for c in (*TIMES, "_last")]
    row = _collect(
        frame.select(
            *bounds,
            nw.col("_arrival").count().alias("count"),
            nw.col("was_running").cast(nw.Int64).sum().alias("older"),
            nw.col("_alive").sum().alias("alive"),
            *(
                nw.col("_arrival").quantile(q, "linear").alias(f"q{q}")
                for q in (0.0, STRAY_SHARE, 1 - STRAY_SHARE, 1.0)
            ),
        )
    ).row(0, named=True)
    first = min((v for k, v in row.items() if k.startswith("low") and v is not None), default=0.0)
    last = max((v for k, v in row.items() if k.startswith("high") and v is not None), default=first)
    if not row["count"]:
        return Window(first, last, first, max(last, first + 1.0))
    low, high = row["q0.0"], row["q1.0"]
    edges = frame.filter(
        (nw.col("_arrival") <= row[f"q{STRAY_SHARE}"]) | (nw.col("_arrival") >= row[f"q{1 - STRAY_SHARE}"])
    )
    times = np.sort(_collect(edges.select("_arrival"))["_arrival"].to_numpy())
    before = _strays(times[times <= row[f"q{STRAY_SHARE}"]] - low, row["count"], high - low)
    after = _strays((high - times[times >= row[f"q{1 - STRAY_SHARE}"]])[::-1], row["count"], high - low)
    begin = low + before[1] if before[0] else first if row["older"] else low
    until = high - after[1]
    if row["alive"] and not after[0] and last - high < STRAY_TIME * (high - low):
        until = last
    if not until > begin:
        until = last if last > begin else begin + 1.0
    return Window(first, last, begin, until, before[0], after[0])


def _strays(since_edge: Floats, count: int, span: float) -> tuple[int, float]:
    """Return how many arrivals at one edge are strays, and how far from the edge the first other one is, s.

    `since_edge` are the distances of the outermost arrivals from the edge, ascending.
    """
    if span <= 0 or since_edge.size == 0:
        return 0, 0.0
    outside = np.searchsorted(since_edge, since_edge, side="left")
    # The most time for the fewest arrivals, where each must take ten times its share of the time.
    gain = since_edge / span - outside / count / STRAY_RATE
    best = int(gain.argmax())
    return (int(outside[best]), float(since_edge[best])) if gain[best] >= STRAY_TIME else (0, 0.0)


def _collect(frame: nw.LazyFrame[Any]) -> pl.DataFrame:
    return frame.collect(backend="polars").to_polars()


def with_lives(tasks: pl.DataFrame, window: Window) -> pl.DataFrame:
    """Return the tasks with `asked_from`, `held_from` (s), `held_seconds`, `is_alive`, `is_unknown`, `gpus` of the gang."""
    frame = known_times(tasks).with_columns(
        asked_from=asked_from(window),
        held_from=held_from(window),
        held_seconds=held_seconds(window),
        is_alive=is_alive(),
        is_unknown=is_unknown(window),
        gpus=gpus(),
    )
    return _collect(frame)


def gpus() -> nw.Expr:
    """Return the GPUs that the whole gang asks for, in whole devices; null where the source does not say."""
    each = nw.col("gpu_count").cast(nw.Int64) * nw.col("gpu_milli").cast(nw.Int64).fill_null(WHOLE_GPU_MILLI)
    return each * nw.col("instances").cast(nw.Int64) / WHOLE_GPU_MILLI


def overlap(begin: Floats, end: Floats, first: float, last: float) -> Floats:
    """Return how long each of the intervals lies between `first` and `last`, s."""
    return np.asarray(np.clip(end, first, last) - np.clip(begin, first, last))


@dataclass(frozen=True)
class Held:
    """What the tasks held in all: GPU-hours over the whole record, and GPUs on average over the window."""

    window: Window
    gpu_hours: float | None
    """None where no task has its GPUs and its life."""
    gpus_mean: float | None
    gpus_most: float | None
    """At any one moment of the record."""
    tasks_alive: int
    """Tasks that run when the record ends."""
    tasks_unknown: int
    """Tasks of which nobody knows when they held their request."""


def held(tasks: pl.DataFrame) -> Held:
    """Return what the tasks held; of the task table only `LIFE_COLUMNS` are needed."""
    window = observed(tasks)
    lives = with_lives(tasks, window)
    known = lives.drop_nulls(["held_seconds", "gpus"])
    begin, ran, amount = (known[c].to_numpy() for c in ("held_from", "held_seconds", "gpus"))
    inside = float(overlap(begin, begin + ran, window.begin, window.until) @ amount)
    return Held(
        window,
        float(ran @ amount) / HOUR if known.height else None,
        inside / window.seconds if known.height else None,
        _most_at_once(begin, begin + ran, amount) if known.height else None,
        int(lives["is_alive"].sum()),
        int(lives["is_unknown"].sum()),
    )


def _most_at_once(begin: Floats, end: Floats, amount: Floats) -> float:
    """Return the most that is held at one moment; what ends at a moment is free for what begins then."""
    times, steps = np.concatenate([end, begin]), np.concatenate([-amount, amount])
    return max(float(np.cumsum(steps[np.argsort(times, kind="stable")]).max()), 0.0)
