"""How durations are shown: their distribution, and their spread by group."""

from __future__ import annotations

import polars as pl

from gputwin.analysis.dimensions import BY_NAME
from gputwin.analysis.words import duration
from gputwin.core.units import format_duration, percent
from gputwin.report import aggregates, charts, figures
from gputwin.report.page import FigurePart, Kind, Part, Prose, TablePart

MOST_GROUPS = 12
DOTTED = ("role", "gpu_request", "gpu_model", "workload", "tenant", "qos", "job_class", "application", "user")
"""The dimensions that get a figure; all get a table."""
_MOST_FIGURES = 4


def duration_parts(id_: str, title: str, what: str, of: str, values: pl.Series) -> list[Part]:
    """Return the figure of durations' distribution, a sentence where all are zero, nothing where none is known."""
    values = values.filter(values.is_finite())
    if values.is_empty():
        return []
    frame = aggregates.distribution(values)
    if not (frame["value"] > 0).any():
        return [Prose(f"{title}: all {values.len():,} known values are zero.")]
    quantiles = {f"p{q}": float(values.quantile(q / 100, "linear") or 0.0) for q in (50, 95, 99)}
    zero = float((values == 0).mean() or 0.0)  # type: ignore[arg-type]
    caption = (
        f"{title} of {values.len():,} {of}: mean {format_duration(float(values.mean()))}, "  # type: ignore[arg-type]
        + ", ".join(f"{name} {format_duration(value)}" for name, value in quantiles.items())
        + f", longest {format_duration(float(values.max()))}."  # type: ignore[arg-type]
        + (f" {percent(zero, 1)} are zero." if zero else "")
    )
    figure = figures.distribution(frame, quantiles, what, of)
    return [FigurePart(id_, f"{title} distribution", figure, caption, frame, half=True)]


def group_parts(prefix: str, what: str, by: pl.DataFrame | None) -> list[Part]:
    """Return mean with interval, median and 95th percentile of a duration by the main dimensions, then all as tables."""
    if by is None or by.is_empty():
        return []
    names = by["dimension"].unique(maintain_order=True).to_list()
    parts: list[Part] = []
    for name in [n for n in DOTTED if n in names][:_MOST_FIGURES]:
        frame = shown_groups(by, name)
        if not (frame["mean"] > 0).any():
            continue
        top = frame.sort("mean").row(-1, named=True)
        caption = (
            "Mean with its 95 % interval, median and 95th percentile. The mean is longest for "
            f"{BY_NAME[name].tasks_of(top['group'])}: {duration(top['mean'])}, {top['count']:,} tasks. "
            "Zeros have no place on a log axis."
        )
        figure = charts.dots(frame, {"mean": "mean", "p50": "median", "p95": "95th percentile"}, what)
        title = f"{what[:1].upper()}{what[1:]} by {BY_NAME[name].title}"
        parts.append(FigurePart(f"{prefix}-by-{name.replace('_', '-')}", title, figure, caption, frame, half=True))
    return [*parts, *(_table(what, by, name) for name in names)]


def shown_groups(by: pl.DataFrame, name: str) -> pl.DataFrame:
    """Return the groups of a dimension, the twelve largest where there are more, in their own order."""
    groups = by.filter(pl.col("dimension") == name).with_row_index("_order")
    if groups.height > MOST_GROUPS and name not in ("hour", "weekday", "gpu_request", "gang_size"):
        groups = groups.sort("count", descending=True).head(MOST_GROUPS)
    return groups.drop("_order")


def _table(what: str, by: pl.DataFrame, name: str) -> TablePart:
    groups = shown_groups(by, name)
    rows = [
        (
            r["group"],
            f"{r['count']:,}",
            duration(r["mean"]),
            "–" if r["low"] is None else f"{duration(r['low'])} – {duration(r['high'])}",
            *(duration(r[c]) for c in ("p50", "p95", "p99")),
            percent(r["zero_share"], 1),
            "–" if r["tail_share"] is None else percent(r["tail_share"], 1),
            percent(r["share_of_total"], 1),
        )
        for r in groups.to_dicts()
    ]
    names = ("tasks", "mean", "95 % interval", "median", "p95", "p99", "zero", "in the tail", f"of all {what}")
    kinds = {BY_NAME[name].title: Kind.TEXT} | dict.fromkeys(names, Kind.NUMBER)
    left = by.filter(pl.col("dimension") == name).height - groups.height
    note = f"{left:,} smaller groups are not listed." if left else ""
    return TablePart(f"{what[:1].upper()}{what[1:]} by {BY_NAME[name].title}", kinds, tuple(rows), note)
