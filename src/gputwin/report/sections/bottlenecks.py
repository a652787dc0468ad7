"""Bottlenecks: what binds, who waits behind whom, what short tasks lose, which free GPUs are lost."""

from __future__ import annotations

import polars as pl

from gputwin.analysis.topic import Topic
from gputwin.analysis.words import duration
from gputwin.core.units import percent
from gputwin.report import charts
from gputwin.report.page import FigurePart, Findings, Kind, Part, Section, TablePart
from gputwin.report.report_input import ReportInput


def bottlenecks(subject: ReportInput) -> Section | None:
    """Return the section on bottlenecks; None where no wait is known."""
    topic = subject.analysis.topic("bottlenecks")
    if topic is None:
        return None
    parts = [*_binding(topic), *_head_of_line(topic), *_slowdowns(topic), *_stranded(subject, topic)]
    if topic.remarks:
        parts.append(Findings(topic.remarks))
    return Section("bottlenecks", "Bottlenecks", tuple(parts), topic.notes) if parts else None


def _binding(topic: Topic) -> list[Part]:
    frame = topic.table("binding")
    if frame is None:
        return []
    columns = {"time_share": "time", "queueing_share": "queueing"}
    figure = charts.bar_rows(frame, "resource", columns, "share", percent=True)
    top = frame.sort("time_share").row(-1, named=True)
    caption = (
        f"Share of time, and of queueing, in which a resource binds; most often {top['resource']} "
        f"({percent(top['time_share'], 1)})."
    )
    return [FigurePart("binding", "Which resource binds", figure, caption, frame, half=True)]


def _head_of_line(topic: Topic) -> list[Part]:
    frame = topic.table("head_of_line")
    if frame is None:
        return []
    columns = {
        "found_queue_share": "found a queue",
        "behind_larger_share": "behind a larger one",
        "overtaken_share": "overtaken",
    }
    figure = charts.bars(frame, "group", columns, "share of tasks that waited", percent=True)
    r = frame.row(0, named=True)
    caption = (
        f"{r['waited']:,} tasks waited: {percent(r['found_queue_share'], 1)} found a queue, "
        f"{percent(r['behind_larger_share'], 1)} stood behind a "
        f"task that asks for more GPUs, {percent(r['overtaken_share'], 1)} were overtaken."
    )
    return [FigurePart("head-of-line", "Who waits behind whom", figure, caption, frame, half=True)]


def _slowdowns(topic: Topic) -> list[Part]:
    frame = topic.table("slowdowns")
    if frame is None or frame.height < 2:
        return []
    rows = [
        (
            f"{r['quarter']}: up to {duration(r['runtime_up_to'])}",
            f"{r['tasks']:,}",
            duration(r["wait_mean"]),
            duration(r["wait_p95"]),
            *(f"{r[c]:,.2f}" for c in ("slowdown_mean", "slowdown_p50", "slowdown_p95")),
        )
        for r in frame.to_dicts()
    ]
    names = ("tasks", "mean wait", "p95 wait", "mean slowdown", "median slowdown", "p95 slowdown")
    kinds = {"quarter of runtime": Kind.TEXT} | dict.fromkeys(names, Kind.NUMBER)
    note = "Slowdown is completion time over runtime; runtimes under 10 s count as 10 s."
    return [TablePart("What short tasks lose", kinds, tuple(rows), note)]


def _stranded(subject: ReportInput, topic: Topic) -> list[Part]:
    frame = topic.table("stranded")
    if frame is None:
        return []
    timeline = subject.timeline.until(float(frame["time"].max()))  # type: ignore[arg-type]
    shown = frame.with_columns(timeline.shown(pl.col("time")).alias("at"))
    columns = {"free": "free", "stranded": "of them unusable for the typical task"}
    figure = charts.over_time(shown, columns, timeline.axis, "GPUs")
    lost = float(frame["stranded"].sum()) / max(float(frame["free"].sum()), 1e-9)
    caption = (
        f"Free GPUs in {frame.height} snapshots, {percent(lost, 1)} of them on machines that "
        "cannot take the typical GPU task."
    )
    return [FigurePart("stranded", "Free and stranded GPUs", figure, caption, shown, half=True)]
