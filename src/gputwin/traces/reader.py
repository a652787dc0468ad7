"""What a reader is: a name, the files it knows, and one function from those files to draft tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import polars as pl

from gputwin.core.registry import Registry
from gputwin.traces.quality import QualityLog
from gputwin.traces.sources import Source
from gputwin.traces.tabular import CsvKind


class Clock(StrEnum):
    """What the trace's times mean."""

    ABSOLUTE = "absolute"
    """Readers give Unix seconds; ingest moves them so that the trace starts at zero and records the origin."""
    WEEKDAY = "weekday"
    """Time of day and day of week are true in the trace's zone (time 0 is Thursday 00:00 UTC), dates are not."""
    RELATIVE = "relative"
    """Only differences mean something."""


@dataclass(frozen=True)
class Input:
    """A file and which of its reader's kinds it is."""

    source: Source
    kind: str


Frame = pl.DataFrame | Callable[[], pl.DataFrame | Iterator[pl.DataFrame]]


@dataclass(frozen=True)
class Draft:
    """A reader's result: canonical columns in any order, absent ones left out; `_row` optional.

    A table may be given as a function, so that only one large table is in memory at a time; the function may also
    yield a table in parts, so that one without a key (usage, series) is never in memory as a whole.
    """

    tables: Mapping[str, Frame]
    clock: Clock = Clock.RELATIVE
    zone: str = "UTC"
    files: Mapping[str, str] = field(default_factory=dict)
    """Texts to keep in the trace's directory, by file name."""


@dataclass(frozen=True)
class Reader:
    """One trace format. `recognise` names the kind of a file that is no CSV of `csv_kinds`, or gives None."""

    name: str
    title: str
    csv_kinds: tuple[CsvKind, ...]
    read: Callable[[Sequence[Input], QualityLog], Draft]
    recognise: Callable[[Source], str | None] = field(default=lambda source: None)
    read_in_zone: Callable[[Sequence[Input], QualityLog, str], Draft] | None = None
    """The same for wall-clock times of a zone, where the files name none; None where their times are known without."""

    def kind_of(self, source: Source) -> str | None:
        """Return which kind of file of this format `source` is, or None."""
        if kind := self.recognise(source):
            return kind
        for csv_kind in self.csv_kinds:
            if csv_kind.matches(source):
                return csv_kind.kind
        return None


READERS: Registry[Reader] = Registry("trace format", "gputwin.traces.readers")
