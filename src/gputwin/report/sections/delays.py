"""Scheduling delay: how long tasks wait, who waits, and what share of completion time it is."""

from __future__ import annotations

import polars as pl

from gputwin.analysis.dimensions import BY_NAME
from gputwin.analysis.topic import Topic
from gputwin.analysis.words import duration, share
from gputwin.core.units import percent
from gputwin.report import charts
from gputwin.report.page import Card, Cards, FigurePart, Findings, Part, Section
from gputwin.report.report_input import ReportInput
from gputwin.report.sections.durations import duration_parts, group_parts
from gputwin.traces.measures import WAIT

_NOTE = (
    "Distribution functions by group are exact at the edges of classes a twenty-fourth of a decade wide. Zeros "
    "have no place "
    "on a log axis: a curve begins at their share.",
)


def delays(subject: ReportInput) -> Section | None:
    """Return the section on waits; None where no wait is known."""
    topic = subject.analysis.topic("delays")
    if topic is None:
        return None
    values = subject.trace.scan("tasks").select(WAIT.alias("value")).collect()["value"].drop_nulls()
    parts: list[Part] = [Cards(_cards(topic)), *duration_parts("wait", "Wait", "wait", "tasks", values)]
    if float(topic.tables["wait"]["max"][0]) > 0:
        parts += _completion(topic)
        parts += curve_parts("wait", "wait", topic.table("wait_curves"))
        parts += group_parts("wait", "wait", topic.table("wait_by"))
    parts.append(Findings(topic.remarks))
    return Section("delays", "Scheduling delay", tuple(parts), (*topic.notes, *_NOTE))


def curve_parts(prefix: str, what: str, curves: pl.DataFrame | None) -> list[Part]:
    """Return distribution functions by GPUs asked for and by GPU model, where the trace tells them apart."""
    parts: list[Part] = []
    if curves is None:
        return parts
    for name in ("gpu_request", "gpu_model"):
        frame = curves.filter(pl.col("dimension") == name)
        if frame.is_empty() or not (frame["value"] > 0).any():
            continue
        title = BY_NAME[name].title
        figure = charts.curves(frame, "group", what, "tasks")
        counts = frame.select("group", "count").unique(maintain_order=True)
        largest = counts.sort("count").row(-1, named=True)
        caption = (
            f"{counts.height} groups by {title}; the largest has {largest['count']:,} "
            f"{BY_NAME[name].tasks_of(largest['group'])}."
        )
        id_ = f"{prefix}-curve-{name.replace('_', '-')}"
        parts.append(
            FigurePart(id_, f"{what[:1].upper()}{what[1:]} distribution by {title}", figure, caption, frame, half=True)
        )
    return parts


def _cards(topic: Topic) -> tuple[Card, ...]:
    w = topic.tables["wait"].row(0, named=True)
    interval = "" if w["low"] is None else f"95 % interval {duration(w['low'])} – {duration(w['high'])}"
    cards = [
        Card("Mean wait", duration(w["mean"]), interval),
        Card("Median wait", duration(w["p50"]), f"{share(w['zero_share'])} do not wait at all"),
        Card("95th percentile", duration(w["p95"]), f"99th {duration(w['p99'])}"),
        Card("Longest wait", duration(w["max"]), f"of {w['count']:,} known waits"),
    ]
    if w["tail_share"] is not None:
        cards.append(Card("Longest 1 %", share(w["tail_share"]), "of all waiting"))
    return tuple(cards)


def _completion(topic: Topic) -> list[Part]:
    curves, spread = topic.table("completion_curves"), topic.table("wait_over_completion")
    if curves is None or spread is None:
        return []
    means = ", ".join(f"{r['tasks']} {percent(r['mean'], 1)}" for r in spread.to_dicts())
    caption = (
        f"Wait as a share of completion time (wait + runtime); means: {means}. Halves are cut at the median runtime."
    )
    figure = charts.curves(curves, "tasks", "wait / completion time", "tasks", scale="percent")
    return [
        FigurePart("wait-over-completion", "What part of completion is waiting", figure, caption, curves, half=True)
    ]
