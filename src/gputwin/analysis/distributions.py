"""Distribution functions of groups side by side, from counts in narrow classes, so that any engine can make them."""

from __future__ import annotations

from collections.abc import Sequence

import narwhals as nw
import polars as pl

from gputwin.analysis.frames import Frame, aggregate

PER_DECADE = 24
PER_UNIT = 200


def distribution_by(frame: Frame, value: str, by: Sequence[str] = (), *, is_ratio: bool = False) -> pl.DataFrame:
    """Return the share of values at most `value`, by group: `by`, `count` of the group, `value`, `share`.

    Classes are a twenty-fourth of a decade wide (a two-hundredth for ratios); at their upper edges, the points given,
    shares are exact. Zeros are one class. Nulls and negative values are left out.
    """
    x = nw.col(value)
    known = frame.filter(~x.is_null() & (x >= 0))
    for column in by:
        known = known.filter(~nw.col(column).is_null())
    if is_ratio:
        known = known.with_columns(_class=(x * PER_UNIT).ceil().cast(nw.Int64))
    else:
        # Zero has no logarithm: it counts as a millionth of a second, and is told apart afterwards.
        steps = (nw.when(x > 0).then(x).otherwise(nw.lit(1e-6)).log(10) * PER_DECADE).round(9).ceil()
        known = known.with_columns(_class=steps.cast(nw.Int64))
    found = aggregate(known, [*by, "_class"], nw.len().alias("_n"))
    at = pl.col("_class")
    edge = at / PER_UNIT if is_ratio else pl.when(at <= -6 * PER_DECADE).then(0.0).otherwise(10.0 ** (at / PER_DECADE))
    total = pl.col("_n").sum().over(by) if by else pl.col("_n").sum()
    running = pl.col("_n").cum_sum().over(by) if by else pl.col("_n").cum_sum()
    return found.select(*by, total.alias("count"), edge.alias("value"), (running / total).alias("share"))
