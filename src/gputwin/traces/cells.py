"""Cells of a log as times, durations and amounts, in whatever of the usual forms they are written.

Plain numbers are read at once; only what is not one is looked at cell by cell, each distinct text once.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial

import polars as pl

from gputwin.core.errors import InputError, UserError, shorten
from gputwin.core.units import parse_slurm_duration
from gputwin.traces.quality import QualityLog
from gputwin.traces.walltime import to_unix_seconds


class Kind(StrEnum):
    """How the cells of a field are read."""

    TEXT = "text"
    TIME = "time"
    DURATION = "duration"
    COUNT = "count"
    GPUS = "gpus"
    CORES = "cores"
    BYTES = "bytes"
    STATUS = "status"


UNITS: dict[Kind, dict[str, float]] = {
    Kind.TIME: {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9},
    Kind.DURATION: {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "min": 60.0, "m": 60.0, "h": 3600.0, "d": 86400.0},
    Kind.GPUS: {"gpus": 1.0, "%": 0.01, "milli": 0.001},
    Kind.CORES: {"cores": 1.0, "%": 0.01, "milli": 0.001},
    Kind.BYTES: {
        **{"B": 1.0, "kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12},
        **{"KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30, "TiB": 2.0**40},
    },
}
"""Unit of a bare number -> how many of the base unit (s, GPUs, cores, bytes) it is."""


NOTHING = ("", "null", "none", "nan", "nat", "n/a", "na", "-", "unknown", "\\n")
"""What logs write where a time or a number is not known."""
LARGEST = 1e19
_LARGEST_SECONDS = 1e12
_EPOCH = datetime(1970, 1, 1)
_NAIVE = "%Y-%m-%d %H:%M:%S%.f"
_EPOCH_FROM, _EPOCH_TO = 1e9, 4.2e9
"""Unix seconds of the years 2001 to 2103: a number of that size is a date in s, times 1000 one in ms, and so on."""
_DAYS_ONLY = re.compile(r"(\d{1,6})-(\d{1,2})(?::(\d{1,2}))?")
_WORDED = re.compile(r"(\d{1,15}(?:\.\d{1,9})?)\s*([a-zµ]{1,12})", re.IGNORECASE)
_CLOCK_SECONDS = {
    **dict.fromkeys(("ns", "nanosecond", "nanoseconds"), 1e-9),
    **dict.fromkeys(("us", "µs", "microsecond", "microseconds"), 1e-6),
    **dict.fromkeys(("ms", "msec", "millisecond", "milliseconds"), 1e-3),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), 3600.0),
    **dict.fromkeys(("d", "day", "days"), 86400.0),
    **dict.fromkeys(("w", "week", "weeks"), 604800.0),
}
_AMOUNT = re.compile(r"([+-]?\d{1,18}(?:\.\d{0,18})?(?:[eE][+-]?\d{1,2})?)\s*([a-zA-Z%]{0,6})")
_SUFFIXES: dict[Kind, dict[str, float]] = {
    Kind.BYTES: {
        **{"b": 1.0, "byte": 1.0, "bytes": 1.0},
        **{u + s: 1000.0**p for p, u in enumerate("kmgtpe", start=1) for s in ("", "b")},
        **{u + s: 1024.0**p for p, u in enumerate("kmgtpe", start=1) for s in ("i", "ib")},
    },
    Kind.CORES: {"m": 0.001, "core": 1.0, "cores": 1.0, "cpu": 1.0, "cpus": 1.0, "vcpu": 1.0, "vcpus": 1.0, "%": 0.01},
    Kind.GPUS: {"m": 0.001, "gpu": 1.0, "gpus": 1.0, "%": 0.01},
    Kind.COUNT: {},
}
_WANTED = {
    Kind.TIME: "a time; write 2024-01-31 12:00:00, 2024-01-31T12:00:00Z or Unix seconds, or give the column's format",
    Kind.DURATION: "a duration; write seconds, 00:10:00, 1-02:03:04 or 2.5h",
    Kind.BYTES: "a size; write 8Gi, 16GB or a number",
    Kind.CORES: "a number of cores; write 4, 0.5 or 500m",
    Kind.GPUS: "a number of GPUs; write 8, 0.5 or 500m",
    Kind.COUNT: "a number",
}


@dataclass(frozen=True)
class Column:
    """One column's cells as text (`cell`) with the row each stands in (`_row`), and what to say about them."""

    cells: pl.DataFrame
    name: str
    label: str
    quality: QualityLog

    def numbers(self) -> pl.Series:
        """Return the cells that are plain finite numbers; null for the others."""
        number = self.cells["cell"].str.strip_chars().cast(pl.Float64, strict=False)
        return only(number, (number.abs() <= LARGEST).fill_null(False))

    def refuse(self, bad: pl.Series, problem: str) -> None:
        """Raise for the first bad cell, or count them as unknown where that is allowed (rule F03)."""
        rows = self.cells.filter(bad.fill_null(False))
        if rows.height and not self.quality.lenient:
            raise InputError(
                f"'{shorten(rows['cell'][0])}' is not {problem}",
                file=self.label,
                row=int(rows["_row"][0]),
                field=self.name,
                remedy="or pass --lenient to treat such cells as unknown",
            )
        self.quality.find("F03", self.label, rows.height, detail=self.name, examples=rows.rename({"cell": self.name}))


def only(values: pl.Series, where: pl.Series) -> pl.Series:
    """Return the values where `where` is true; null elsewhere."""
    return values.to_frame("v").select(pl.when(where).then(pl.col("v"))).to_series()


def known(cells: pl.DataFrame) -> pl.DataFrame:
    """Return the cells with those that say "not known" made null."""
    text = pl.col("cell").str.strip_chars()
    return cells.with_columns(pl.when(~text.str.to_lowercase().is_in(NOTHING)).then(text).alias("cell"))


def _parsed_once(cells: pl.Series, parse: Callable[[str], float | None]) -> pl.Series:
    """Return what `parse` makes of each cell, asked once per distinct text."""
    distinct = cells.drop_nulls().unique()
    results = {}
    for text in distinct.to_list():
        try:
            results[text] = parse(text)
        except (UserError, ValueError, OverflowError):
            results[text] = None
    values = pl.Series(list(results.values()), dtype=pl.Float64)
    return cells.replace_strict(
        pl.Series(list(results), dtype=pl.String), values, default=None, return_dtype=pl.Float64
    )


def amounts(column: Column, kind: Kind, unit: str) -> pl.Series:
    """Return durations in s, or amounts in their base unit; `unit` is that of bare numbers."""
    scale = UNITS.get(kind, {}).get(unit, 1.0)
    numbers = column.numbers() * scale
    rest = only(column.cells["cell"], numbers.is_null())
    if rest.null_count() < rest.len():
        parse = parse_span if kind == Kind.DURATION else partial(_amount, kind)
        numbers = numbers.fill_null(_parsed_once(rest, parse))
    column.refuse(numbers.is_null() & column.cells["cell"].is_not_null(), _WANTED[kind])
    return numbers


def _amount(kind: Kind, text: str) -> float | None:
    match = _AMOUNT.fullmatch(text)
    if not match:
        return None
    scale = _SUFFIXES[kind].get(match[2].lower())
    # Kubernetes writes milli as a small m; a capital one is mega.
    is_milli = match[2] == "m" and kind == Kind.BYTES
    value = None if scale is None or is_milli else float(match[1]) * scale
    return value if value is not None and abs(value) <= LARGEST else None


def parse_span(text: str) -> float | None:
    """Return seconds for "00:10:00", "1-02:03:04", "2.5h", "1h 30min" or "PT1H30M"; None for anything else."""
    text = text.strip()
    if match := _DAYS_ONLY.fullmatch(text):
        days, hours, minutes = (int(part or 0) for part in match.groups())
        return days * 86400.0 + hours * 3600.0 + minutes * 60.0
    if ":" in text:
        # Python and pandas print "1 day, 2:03:04" and "1 days 02:03:04".
        days_text, _, clock = text.rpartition(" ") if " " in text else ("", "", text)
        days_before = _worded(days_text.rstrip(", ")) if days_text else 0.0
        seconds = parse_slurm_duration(clock)
        return None if days_before is None or seconds is None else days_before + seconds
    if text[:1] == "P":
        text = text[1:].replace("T", " ").lower()
    return _worded(text)


def _worded(text: str) -> float | None:
    total, end = 0.0, 0
    for match in _WORDED.finditer(text):
        scale = _CLOCK_SECONDS.get(match[2]) or _CLOCK_SECONDS.get(match[2].lower())
        if text[end : match.start()].strip(" ,") or scale is None:
            return None
        total, end = total + float(match[1]) * scale, match.end()
    return total if end and not text[end:].strip() else None


@dataclass(frozen=True)
class Times:
    """Times of one column in seconds, and whether they are Unix seconds or count from some start of their own."""

    seconds: pl.Series
    is_absolute: bool
    is_zoneless: bool
    """Some are wall-clock times that name no zone."""


def times(column: Column, unit: str, zone: str | None) -> Times:
    """Return the cells as seconds. Numbers are dates or not by their size, unless their `unit` is given."""
    if unit.startswith("%"):
        return _formatted(column, unit, zone)
    numbers = column.numbers()
    rest = only(column.cells["cell"], numbers.is_null())
    scale = UNITS[Kind.TIME][unit] if unit else _number_scale(numbers)
    numbers = numbers * scale
    column.refuse(numbers.abs() > _LARGEST_SECONDS, _WANTED[Kind.TIME])
    numbers = only(numbers, (numbers.abs() <= _LARGEST_SECONDS).fill_null(False))
    has_numbers, has_text = numbers.is_not_null().any(), rest.null_count() < rest.len()
    is_date = bool(has_numbers and float(numbers.max() or 0.0) >= _EPOCH_FROM)  # type: ignore[arg-type]
    if not has_text:
        return Times(numbers, is_date, False)
    if has_numbers and not is_date:
        # Small numbers and dates do not mix: the rarer are the mistake.
        texts = rest.is_not_null()
        if texts.sum() <= numbers.is_not_null().sum():
            column.refuse(texts, _WANTED[Kind.TIME])
            return Times(numbers, False, False)
        column.refuse(numbers.is_not_null(), _WANTED[Kind.TIME])
        numbers = numbers.clear(numbers.len())
    aware = _parsed_once(rest, _aware_seconds)
    naive_text = only(rest, aware.is_null())
    wall = _parsed_once(naive_text, _naive_seconds)
    column.refuse(naive_text.is_not_null() & wall.is_null(), _WANTED[Kind.TIME])
    local = _localised(column, (wall * 1e6).round().cast(pl.Int64).cast(pl.Datetime("us")), zone)
    return Times(numbers.fill_null(aware).fill_null(local), True, bool(wall.is_not_null().any()))


def _formatted(column: Column, form: str, zone: str | None) -> Times:
    try:
        wall = column.cells["cell"].str.to_datetime(form, strict=False, time_unit="us")
    except pl.exceptions.PolarsError:
        raise UserError(f"'{shorten(form)}' is no format of times; write one like %d/%m/%Y %H:%M:%S") from None
    column.refuse(wall.is_null() & column.cells["cell"].is_not_null(), f"a time of the format {form}")
    if isinstance(wall.dtype, pl.Datetime) and wall.dtype.time_zone is not None:
        return Times(wall.dt.epoch("us").cast(pl.Float64) / 1e6, True, False)
    return Times(_localised(column, wall, zone), True, bool(wall.is_not_null().any()))


def _localised(column: Column, wall: pl.Series, zone: str | None) -> pl.Series:
    """Return wall-clock times of `zone` (UTC where none is given) as Unix seconds; clock changes are counted."""
    text = wall.dt.to_string("%Y-%m-%d %H:%M:%S%.6f").alias(column.name)
    frame = pl.DataFrame([column.cells["_row"], text])
    return to_unix_seconds(frame, column.name, zone or "UTC", column.label, column.quality, _NAIVE)[column.name]


def _number_scale(numbers: pl.Series) -> float:
    """Return the seconds in one unit of the column's numbers: by size Unix s, ms, us or ns; else 1."""
    present = numbers.filter(numbers > 0)
    middle = present.median() if present.len() else None
    for scale in UNITS[Kind.TIME].values():
        if isinstance(middle, float) and _EPOCH_FROM <= middle * scale <= _EPOCH_TO:
            return scale
    return 1.0


def _iso(text: str) -> datetime | None:
    if len(text) < 8 or not text[:4].isdigit():
        return None
    # "2024-01-31 12:00:00 UTC" and " +0000" are common; Python's ISO form has no space there.
    compact = text.removesuffix(" UTC") + ("+00:00" if text.endswith(" UTC") else "")
    head, _, last = compact.rpartition(" ")
    compact = head + last if last[:1] in ("+", "-") and head else compact
    try:
        return datetime.fromisoformat(compact.replace("/", "-", 2))
    except ValueError:
        return None


def _aware_seconds(text: str) -> float | None:
    moment = _iso(text)
    return moment.timestamp() if moment is not None and moment.tzinfo is not None else None


def _naive_seconds(text: str) -> float | None:
    moment = _iso(text)
    if moment is None or moment.tzinfo is not None:
        return None
    return (moment - _EPOCH) / timedelta(seconds=1)
