"""What was measured over time: the metrics with most samples, side by side."""

from __future__ import annotations

import polars as pl

from gputwin.analysis.words import metric, times
from gputwin.core.units import short_duration
from gputwin.report import aggregates, figures
from gputwin.report.page import FigurePart, Kind, Section, TablePart, number
from gputwin.report.report_input import ReportInput

_MOST_ROWS = 60


def series(subject: ReportInput) -> Section | None:
    """Return the section on series; None for a trace without them."""
    scan = subject.trace.scan("series")
    frame = aggregates.metrics_over_time(scan, subject.timeline)
    if frame.is_empty():
        return None
    shown, known = frame["metric"].n_unique(), len(subject.description.metrics)
    steps = frame["time"].unique().sort().diff().drop_nulls()
    width = f" over {short_duration(float(steps.min()))}" if steps.len() else ""  # type: ignore[arg-type]
    caption = (
        f"{shown} of {known} metrics, those with most samples: {frame.height:,} means{width}, each over the "
        "entities sampled then."
    )
    timeline = subject.timeline.until(float(frame["time"].max()))  # type: ignore[arg-type]
    frame = frame.with_columns(timeline.shown(pl.col("time")).alias("at"))
    figure = figures.small_multiples(frame, timeline.axis)
    note = (
        "A metric's curve is the mean over entities (containers, virtual clusters, clients) of each entity's mean in "
        "the bin; bins without samples are left out and the line passes over them."
    )
    parts = (FigurePart("metrics", "Metrics over time", figure, caption, frame), _spread(scan))
    return Section("series", "Series", parts, (note,), conclusion=_conclusion(frame, known))


def _conclusion(frame: pl.DataFrame, known: int) -> str:
    """Return how many metrics there are, and which of those shown varies most over time."""
    many = f"{known} metric{'s' if known > 1 else ''} over time"
    means = frame.group_by("metric", maintain_order=True).agg(
        pl.col("value").mean(), pl.col("value").max().alias("most")
    )
    varied = means.filter((pl.col("value") > 0) & (pl.col("most") > pl.col("value")))
    if varied.is_empty():
        return f"{many}."
    top = varied.with_columns((pl.col("most") / pl.col("value")).alias("times")).sort("times").row(-1, named=True)
    return f"{many}; {metric(top['metric'])} varies most: at most {times(top['times'])} its mean."


def _spread(scan: pl.LazyFrame) -> TablePart:
    value = pl.col("value")
    totals = (
        scan.filter(value.is_finite())
        .group_by("metric")
        .agg(
            pl.len().alias("samples"),
            pl.col("entity").n_unique().alias("entities"),
            value.sort().mean().alias("mean"),
            *(value.quantile(q, "linear").alias(f"p{q * 100:.0f}") for q in (0.5, 0.95)),
            value.max().alias("max"),
        )
        .sort(["samples", "metric"], descending=[True, False])
        .collect()
    )
    rows = [
        (
            metric(r["metric"]),
            f"{r['samples']:,}",
            f"{r['entities']:,}",
            *(number(r[c]) for c in ("mean", "p50", "p95", "max")),
        )
        for r in totals.head(_MOST_ROWS).to_dicts()
    ]
    kinds = {"metric": Kind.TEXT} | dict.fromkeys(("samples", "entities", "mean", "p50", "p95", "max"), Kind.NUMBER)
    left = totals.height - len(rows)
    return TablePart("All metrics", kinds, tuple(rows), f"{left:,} more metrics are not listed." if left else "")
