"""Wide tables of samples (one column per metric or per entity) as rows of the series table.

One raw row becomes many series rows, so rows without a usable time are dropped here, where they still count as one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from gputwin.traces.quality import QualityLog


def with_time(frame: pl.DataFrame, label: str, quality: QualityLog) -> pl.DataFrame:
    """Return the rows of `frame` whose `time` is known and not negative; the others are dropped and counted."""
    usable = frame["time"].is_finite() & (frame["time"] >= 0)
    usable = usable.fill_null(False)
    quality.find("Q01", label, int((~usable).sum()), detail="time", examples=frame.filter(~usable).select("_row"))
    return frame.filter(usable)


def metric_rows(frame: pl.DataFrame, metrics: Mapping[str, str], entity: pl.Expr) -> pl.DataFrame:
    """Return one series row per row of `frame` and column of `metrics` (column -> metric name)."""
    return (
        frame.select("_row", "time", entity.alias("entity"), **{new: pl.col(old) for old, new in metrics.items()})
        .unpivot(index=["_row", "time", "entity"], variable_name="metric", value_name="value")
        .select("_row", "time", "metric", "entity", "value")
    )


def entity_rows(frame: pl.DataFrame, metric: str, entities: Sequence[str]) -> pl.DataFrame:
    """Return one series row of `metric` per row of `frame` and column of `entities`."""
    return (
        frame.select("_row", "time", *entities)
        .unpivot(index=["_row", "time"], variable_name="entity", value_name="value")
        .select("_row", "time", pl.lit(metric).alias("metric"), "entity", "value")
    )
