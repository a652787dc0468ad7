"""Who asked: users, tenants or applications, whichever the trace distinguishes."""

from __future__ import annotations

import math

import numpy as np
import polars as pl

from gputwin.analysis.topic import Topic
from gputwin.analysis.words import share
from gputwin.analysis.workload import OWNERS
from gputwin.core.units import format_count, format_duration, percent
from gputwin.report import aggregates, charts, figures
from gputwin.report.page import FigurePart, Kind, Part, TablePart

_LARGEST = 10
_TOP_SHARE = 0.05
_ROUNDING = 1e-9


def owner_parts(topic: Topic) -> list[Part]:
    """Return what the largest users (tenants, applications) account for, tasks per owner, and the largest as a table."""
    who = next((name for name in OWNERS if topic.table(f"{name}s") is not None), None)
    if who is None:
        return []
    totals = topic.tables[f"{who}s"]
    curve = aggregates.concentration(totals)
    top = max(math.ceil(_TOP_SHARE * totals.height), 1)
    caption = (
        f"The largest {percent(top / totals.height, 1)} of {who}s ({top:,} of {totals.height:,}) submit "
        f"{percent(totals['task_share'].head(top).sum(), 1)} of the tasks"
    )
    if "gpu_hour_share" in curve.columns:
        hours = totals["gpu_hour_share"].sort(descending=True, nulls_last=True).head(top).sum()
        caption += f"; the same number of {who}s, ranked by GPU-hours, hold {percent(hours, 1)} of the GPU-hours"
    caption += "."
    if left := unnamed(who, totals):
        caption += f" {left}"
    title = f"How much the largest {who}s account for"
    figure = figures.concentration(curve, f"{who}s")
    return [
        FigurePart("owners", title, figure, caption, curve, half=True),
        _tasks_per_owner(who, totals),
        _largest(who, totals),
    ]


def _tasks_per_owner(who: str, totals: pl.DataFrame) -> FigurePart:
    sizes, counts = np.unique(totals["tasks"].to_numpy(), return_counts=True)
    shares = np.cumsum(counts) / totals.height
    frame = pl.DataFrame({"value": sizes.astype(np.float64), "share": shares}).select(pl.lit(who).alias("of"), pl.all())
    median = float(totals["tasks"].quantile(0.5, "linear") or 0.0)
    caption = (
        f"The median {who} submits {median:,.0f} tasks, the most active {aggregates.largest(totals['tasks']):,.0f}."
    )
    figure = charts.curves(frame, "of", f"tasks of a {who}", f"{who}s", scale="log")
    return FigurePart("tasks-per-owner", f"Tasks per {who}", figure, caption, frame, half=True)


def _largest(who: str, totals: pl.DataFrame) -> TablePart:
    rows = [
        (
            r["owner"],
            f"{r['tasks']:,}",
            percent(r["task_share"], 1),
            format_count(r["gpu_hours"]),
            "–" if r["gpu_hour_share"] is None else percent(r["gpu_hour_share"], 1),
            format_duration(r["median_wait"]),
        )
        for r in totals.head(_LARGEST).to_dicts()
    ]
    kinds = {
        who: Kind.CODE,
        "tasks": Kind.NUMBER,
        "of all tasks": Kind.NUMBER,
        "GPU-hours": Kind.NUMBER,
        "of all GPU-hours": Kind.NUMBER,
        "median wait": Kind.NUMBER,
    }
    return TablePart(f"The {len(rows)} {who}s with most tasks", kinds, tuple(rows), unnamed(who, totals))


def unnamed(who: str, totals: pl.DataFrame) -> str:
    """Return a sentence on the tasks whose owner is not known; nothing where all are."""
    left = 1 - float(totals["task_share"].sum())
    return f"{share(left)} of all tasks name no {who}." if left > _ROUNDING else ""
