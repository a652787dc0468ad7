"""Two traces on one clock: a model remembers when jobs ended, so new jobs must be placed on the clock it learned on.

Each trace counts seconds from a zero of its own. Where both say what their zero is in wall-clock time, that decides.
Parts of one recording share its zero. Otherwise something must be assumed, and `Alignment.assumption` says what.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass

import numpy as np
import polars as pl

from gputwin.core.units import WEEK
from gputwin.profiling.jobs import History
from gputwin.traces.dataset import Trace, TraceMeta
from gputwin.traces.measures import ARRIVAL
from gputwin.traces.reader import Clock

_TIMES = ("submit_time", "start_time", "end_time")


@dataclass(frozen=True)
class Recording:
    """Which clock a model's history is on, and where the history ends, s on that clock."""

    fingerprint: str
    source: str
    identity: str
    """The same for parts of one recording; empty where that is unknown."""
    clock: str
    origin_unix_seconds: float | None
    last_arrival: float
    last_end: float
    """When the last outcome became known."""

    @classmethod
    def of(cls, meta: TraceMeta, history: History) -> Recording:
        """Return where and when a history was recorded."""
        arrival, end = history.jobs.arrival, history.outcomes.end
        last = float(np.max(arrival[np.isfinite(arrival)], initial=0.0))
        return cls(
            meta.fingerprint,
            meta.source,
            _identity(meta),
            str(meta.clock),
            meta.origin_unix_seconds,
            last,
            float(np.max(end[np.isfinite(end)], initial=last)),
        )


@dataclass(frozen=True)
class Alignment:
    """What to add to a trace's times to have them on the clock of a model's history, and the grounds for it."""

    shift_seconds: float
    assumption: str | None

    def apply(self, tasks: pl.DataFrame) -> pl.DataFrame:
        """Return a task table with its times on the model's clock."""
        return tasks.with_columns(pl.col(_TIMES) + self.shift_seconds) if self.shift_seconds else tasks


def align(recorded: Recording, trace: Trace) -> Alignment:
    """Return how the times of a trace relate to those of a recording."""
    meta = trace.meta
    absolute = recorded.clock == meta.clock == Clock.ABSOLUTE
    if absolute and recorded.origin_unix_seconds is not None and meta.origin_unix_seconds is not None:
        return Alignment(meta.origin_unix_seconds - recorded.origin_unix_seconds, None)
    if recorded.fingerprint == meta.fingerprint or (recorded.identity and recorded.identity == _identity(meta)):
        return Alignment(0.0, None)
    return _assumed(recorded, trace)


def _assumed(recorded: Recording, trace: Trace) -> Alignment:
    """Return the alignment of traces that do not both say when they were recorded."""
    first = trace.tasks.select(ARRIVAL.min()).item()
    known = "the model's trace and this one do not both give the date of their times, so it is assumed that"
    if first is None:
        return Alignment(0.0, f"{known} they count from the same instant")
    if recorded.source == trace.meta.source and recorded.clock == trace.meta.clock and first >= recorded.last_arrival:
        return Alignment(0.0, f"{known} they count from the same instant, since these jobs come after the model's")
    shift = max(recorded.last_end, recorded.last_arrival) - first
    if recorded.clock == trace.meta.clock == Clock.WEEKDAY:
        weeks = math.ceil(shift / WEEK)
        return Alignment(weeks * WEEK, f"{known} these jobs came on the same weekdays, after the model's had ended")
    return Alignment(shift, f"{known} these jobs came when the model's had ended")


def _identity(meta: TraceMeta) -> str:
    """Return what parts of one recording have in common: its source and raw files, or how it was generated."""
    files = sorted(file.sha256 for file in meta.inputs)
    if not files and not meta.source.startswith("synthetic:"):
        return ""
    return hashlib.sha256("\n".join([meta.source, *files]).encode()).hexdigest()
