"""Wall-clock times of a zone, turned into Unix seconds; clock changes are counted, not guessed away silently."""

from __future__ import annotations

import polars as pl

from gputwin.core.errors import InputError, shorten
from gputwin.traces.quality import QualityLog

WALL_FORMAT = "%Y-%m-%d %H:%M:%S"


def to_unix_seconds(
    frame: pl.DataFrame, column: str, zone: str, label: str, quality: QualityLog, format: str = WALL_FORMAT
) -> pl.DataFrame:
    """Return `frame` with the text times of `column`, read as wall-clock times of `zone`, as Unix seconds.

    An hour that occurs twice is taken as its first pass, a skipped one as if the clock had already changed: both
    are the earlier reading, and both are counted (rule F09). `frame` needs `_row` for the messages.
    """
    text = frame[column]
    wall = text.str.strip_chars().str.to_datetime(format, strict=False, time_unit="us")
    _check_parsed(frame, column, wall, label, quality)
    first = wall.dt.replace_time_zone(zone, ambiguous="earliest", non_existent="null")
    second = wall.dt.replace_time_zone(zone, ambiguous="latest", non_existent="null")
    skipped = first.is_null() & wall.is_not_null()
    moved = wall.dt.offset_by("-1h").dt.replace_time_zone(zone, ambiguous="earliest", non_existent="null")
    changed = skipped | (first != second).fill_null(False)
    quality.find("F09", label, int(changed.sum()), detail=column, examples=frame.filter(changed).select("_row", column))
    seconds = first.fill_null(moved).dt.epoch("us").cast(pl.Float64) / 1e6
    return frame.with_columns(seconds.alias(column))


def _check_parsed(frame: pl.DataFrame, column: str, wall: pl.Series, label: str, quality: QualityLog) -> None:
    bad = frame.filter(frame[column].is_not_null() & wall.is_null()).select("_row", column)
    if bad.is_empty():
        return
    if not quality.lenient:
        raise InputError(
            f"'{shorten(bad[column][0])}' is not a time",
            file=label,
            row=int(bad["_row"][0]),
            field=column,
            remedy="write it as 2017-10-07 01:12:09, or pass --lenient to treat such cells as unknown",
        )
    quality.find("F03", label, bad.height, detail=column, examples=bad)
