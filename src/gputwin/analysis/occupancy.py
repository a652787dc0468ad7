"""How much was in force over time: exact time averages per bin from starts and ends alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import narwhals as nw
import numpy as np
import polars as pl

from gputwin.analysis.bins import Bins
from gputwin.analysis.frames import Frame, aggregate
from gputwin.analysis.words import unit_words
from gputwin.core.units import short_duration
from gputwin.traces.lifetimes import Window, overlap


def occupancy(
    frame: Frame,
    begin: str,
    end: str,
    amounts: Mapping[str, nw.Expr],
    bins: Bins,
    window: Window,
    by: Sequence[str] = (),
) -> pl.DataFrame:
    """Return the average of each amount in force in each bin: `begin` s, `seconds` of the bin in the window, `by`, amounts.

    A row is in force from `begin` to `end` s. Averages are over the part of the bin that lies in the window, so that
    they weigh by `seconds`. They are exact: what was in force at the bin's start, plus each start's and minus each end's
    amount times the part of the bin that is left. Groups of which nothing was ever in force have no rows.
    """
    known = frame.with_columns(**{c: nw.col(c).clip(window.begin, window.until) for c in (begin, end)})
    known = known.filter(~nw.col(begin).is_null() & ~nw.col(end).is_null() & (nw.col(end) > nw.col(begin)))
    seconds = overlap(bins.begins(), bins.begins() + bins.width, window.begin, window.until)
    part_seen = np.maximum(seconds / bins.width, 1e-12)
    known = known.with_columns(**{name: amount.cast(nw.Float64) for name, amount in amounts.items()})
    parts = [_steps(known, column, list(amounts), bins, by, sign) for column, sign in ((begin, 1.0), (end, -1.0))]
    steps = pl.concat(parts)
    groups = steps.select(by).unique().sort(by, nulls_last=True).rows() if by else [()]
    found = []
    for group in groups:
        own = steps
        for column, value in zip(by, group, strict=True):
            own = own.filter(pl.col(column).eq_missing(value))
        columns = {}
        for name in amounts:
            jump, part = np.zeros(bins.count), np.zeros(bins.count)
            np.add.at(jump, own["_bin"].to_numpy(), own[name].to_numpy())
            np.add.at(part, own["_bin"].to_numpy(), own[f"{name}_left"].to_numpy())
            before = np.concatenate([[0.0], np.cumsum(jump)[:-1]])
            level = np.where(np.abs(before + part) < 1e-9, 0.0, before + part)
            columns[name] = np.where(seconds > 0, level / part_seen, 0.0)
        labels = {c: pl.Series(c, [v] * bins.count, own.schema[c]) for c, v in zip(by, group, strict=True)}
        found.append(pl.DataFrame({"begin": bins.begins(), "seconds": seconds, **labels, **columns}))
    if not found:
        numbers = dict.fromkeys(("begin", "seconds"), pl.Float64)
        kinds = {column: steps.schema[column] for column in by}
        return pl.DataFrame(schema={**numbers, **kinds, **dict.fromkeys(amounts, pl.Float64)})
    return pl.concat(found)


def bin_words(over_time: pl.DataFrame) -> str:
    """Return the width of the bins as people say it: "day", "30 min"."""
    return unit_words(short_duration(float(over_time["seconds"].max())))  # type: ignore[arg-type]


def time_mean(over_time: pl.DataFrame, column: str) -> float:
    """Return the average of a column of `occupancy` over the window; 0 where nothing is known."""
    seconds = over_time["seconds"]
    total = float(seconds.filter(over_time[column].is_not_null()).sum())
    return float((over_time[column] * seconds).sum()) / total if total > 0 else 0.0


def _steps(known: Frame, column: str, names: list[str], bins: Bins, by: Sequence[str], sign: float) -> pl.DataFrame:
    """Return per bin the sum of amounts that begin (or end) in it, and that sum weighed by the part of the bin left."""
    place = (nw.col(column) - bins.start) / bins.width
    # What began before the first bin is in force from its start; what ends after the last never ends here.
    place = place.clip(0.0, float(bins.count))
    rows = known.with_columns(_place=place).filter(nw.col("_place") < bins.count)
    rows = rows.with_columns(_bin=nw.col("_place").floor().cast(nw.Int64))
    rows = rows.with_columns(_left=nw.col("_bin") + 1 - nw.col("_place"))
    rows = rows.with_columns(**{f"{name}_left": nw.col(name) * nw.col("_left") for name in names})
    sums = [nw.col(c).sum().alias(c) for name in names for c in (name, f"{name}_left")]
    found = aggregate(rows, [*by, "_bin"], *sums)
    return found.with_columns(pl.col(c) * sign for name in names for c in (name, f"{name}_left"))
