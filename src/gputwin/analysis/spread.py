"""How a quantity is spread: count, mean, quantiles, zeros and tail, whole and by group."""

from __future__ import annotations

from collections.abc import Sequence

import narwhals as nw
import polars as pl

from gputwin.analysis.frames import Frame, aggregate

QUANTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}
LARGEST = 0.01
"""The share of values that counts as the tail."""


def spread(frame: Frame, value: str, by: Sequence[str] = (), tail_above: float | None = None) -> pl.DataFrame:
    """Return the spread of a column in its own unit, one row per group.

    `count`, `mean`, `p50`, `p90`, `p95`, `p99`, `max`, `total`, `zero_share`; and `tail_share`, the share of the
    group's total that values above `tail_above` carry. Nulls are left out; quantiles interpolate linearly.
    """
    x = nw.col(value)
    known = frame.filter(~x.is_null())
    for column in by:
        known = known.filter(~nw.col(column).is_null())
    known = known.select(*by, value).with_columns(
        _zero=(x == 0).cast(nw.Int64), _tail=(x > (float("inf") if tail_above is None else tail_above)).cast(nw.Float64)
    )
    found = aggregate(
        known.with_columns(_tail=nw.col("_tail") * x),
        by,
        nw.len().alias("count"),
        x.mean().alias("mean"),
        *(x.quantile(q, "linear").alias(name) for name, q in QUANTILES.items()),
        x.max().alias("max"),
        x.sum().alias("total"),
        nw.col("_zero").sum().alias("zero_share"),
        nw.col("_tail").sum().alias("tail_share"),
    )
    total = pl.col("total")
    found = found.with_columns(
        pl.col("zero_share") / pl.col("count"), pl.when(total > 0).then(pl.col("tail_share") / total)
    )
    return found if tail_above is not None else found.drop("tail_share")


def tail_bound(frame: Frame, value: str) -> float | None:
    """Return the value above which the largest 1 % lie; None where none is known."""
    found = aggregate(frame, (), nw.col(value).quantile(1 - LARGEST, "linear").alias("bound"))
    return found["bound"][0]  # type: ignore[no-any-return]


def largest(frame: Frame, value: str, count: int) -> pl.DataFrame:
    """Return the `count` largest values, largest first, with their share of the total running up."""
    x = nw.col(value)
    known = frame.filter(~x.is_null()).select(value)
    found = aggregate(known.sort(value, descending=True).head(count), (), x).sort(value, descending=True)
    total = aggregate(known, (), x.sum().alias("total"))["total"][0] or 0.0
    share = found[value].cum_sum() / total if total else pl.Series([0.0] * found.height)
    return found.with_columns(share.alias("share_of_total"))
