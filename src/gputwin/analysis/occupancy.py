"""How much was in force over time: exact time averages per bin from starts and ends alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import narwhals as nw
import numpy as np
import polars as pl

from gputwin.analysis.bins import Bins
from gputwin.analysis.frames import Frame, aggregate


def occupancy(
    frame: Frame, begin: str, end: str, amounts: Mapping[str, nw.Expr], bins: Bins, by: Sequence[str] = ()
) -> pl.DataFrame:
    """Return the time average of each amount in force in each bin: `begin` s, `by`, one column per amount.

    A row is in force from `begin` to `end` s. Within a bin the average is exact: what was in force at its start, plus
    each start's and minus each end's amount times the part of the bin that is left.
    """
    known = frame.filter(~nw.col(begin).is_null() & ~nw.col(end).is_null() & (nw.col(end) > nw.col(begin)))
    known = known.filter((nw.col(end) > bins.start) & (nw.col(begin) < bins.start + bins.width * bins.count))
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
            columns[name] = np.where(np.abs(before + part) < 1e-9, 0.0, before + part)
        labels = {c: pl.Series(c, [v] * bins.count, own.schema[c]) for c, v in zip(by, group, strict=True)}
        found.append(pl.DataFrame({"begin": bins.begins(), **labels, **columns}))
    return pl.concat(found)


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
