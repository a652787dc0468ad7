"""Frames of any engine in, small Polars frames out: the one place where an engine is asked for rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import polars as pl

Frame = nw.LazyFrame[Any]
"""A lazy frame of whatever engine holds the data."""

DIGITS = 12


def lazy(native: Any) -> Frame:
    """Return a native frame of any engine as a lazy narwhals frame; one that already is comes back as it is."""
    frame = nw.from_native(native)
    return frame if isinstance(frame, nw.LazyFrame) else frame.lazy()


def collect(frame: Frame, order: Sequence[str] = ()) -> pl.DataFrame:
    """Return the rows as a Polars frame, ordered, with the same types whichever engine made them."""
    found = frame.collect(backend="polars").to_polars()
    # DuckDB sums integers in 128 bits and hands them over as decimals.
    whole = [name for name, dtype in found.schema.items() if isinstance(dtype, pl.Decimal) and dtype.scale == 0]
    found = found.with_columns(pl.col(whole).cast(pl.Int64)).with_columns(
        pl.col(pl.Categorical, pl.Enum).cast(pl.String),
        pl.selectors.integer().cast(pl.Int64),
        pl.col(pl.Float32, pl.Decimal).cast(pl.Float64),
    )
    return found.sort(order, nulls_last=True) if order else found


def aggregate(frame: Frame, by: Sequence[str], *aggregates: nw.Expr) -> pl.DataFrame:
    """Return one row per group, ordered by the group; a single row where `by` is empty.

    Floats keep twelve digits: the order in which an engine adds them up shows in the digits after.
    """
    found = collect(frame.group_by(*by).agg(*aggregates), by) if by else collect(frame.select(*aggregates))
    return found.with_columns((pl.selectors.float() - pl.selectors.by_name(*by)).round_sig_figs(DIGITS))


def codes(value: nw.Expr, bounds: Sequence[float]) -> nw.Expr:
    """Return how many of the ascending bounds a value is above: 0 for at most the first; null stays null."""
    total = (value > bounds[0]).cast(nw.Int64)
    for bound in bounds[1:]:
        total = total + (value > bound).cast(nw.Int64)
    return total
