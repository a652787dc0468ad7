"""What was asked of the cluster: arrivals, waits, runtimes, GPUs per task, and who asked."""

from __future__ import annotations

import math

import polars as pl

from gputwin.core.units import format_count, format_duration
from gputwin.report import aggregates, figures
from gputwin.report.page import FigurePart, Kind, Part, Prose, Section, TablePart
from gputwin.report.subject import Subject
from gputwin.report.timeline import MOST_BINS, width_words
from gputwin.traces.measures import ARRIVAL, RUNTIME, WAIT

_LARGEST = 10
_TOP_SHARE = 0.05
_DEFINITIONS = (
    "Arrival is the submit time, or the start time where the source tells no submit time.",
    "Wait is the time from submit to start, known only where both are. Runtime is the time a task ran; tasks alive at "
    "the end of the trace have none, so runtimes are biased short.",
    "GPUs asked for are those of the whole gang: instances × devices × share of each device. GPU-hours are GPUs asked "
    "for × runtime.",
)


def workload(subject: Subject) -> Section | None:
    """Return the workload section; None for a trace without tasks."""
    if not subject.description.tasks:
        return None
    parts = [*_arrivals(subject), *_durations(subject), *_gpus(subject), *_owners(subject)]
    notes = (
        *_DEFINITIONS,
        f"Arrivals are counted in equal bins, at most {MOST_BINS}; the first and the last may be partly "
        "outside the trace. The heat map divides the arrivals of each weekday and hour by the hours of that kind "
        "between the first and the last arrival.",
        f"Distribution functions are drawn through at most {aggregates.MOST_POINTS} points, each exact, finer in the "
        "tail. Zeros have no place on a log axis: a curve begins at their share.",
    )
    return Section("workload", "Workload", tuple(parts), notes) if parts else None


def known_times(frame: pl.LazyFrame, time: pl.Expr) -> pl.Series:
    """Return the known, finite times of a frame."""
    return frame.select(time.alias("time")).filter(pl.col("time").is_finite()).collect()["time"]


def arrivals_caption(frame: pl.DataFrame, subject: Subject, what: str, of: int) -> str:
    """Return what a figure of arrivals shows: how many of all, the mean per bin, and the busiest bin."""
    total = int(frame["count"].sum())
    top = frame.row(int(frame["count"].arg_max() or 0), named=True)
    text = f"{total:,} {what}, counted in bins of {width_words(top['end'] - top['begin'])}"
    if frame.height > 1:
        text += (
            f": {total / frame.height:,.1f} per bin on average; the busiest bin begins "
            f"{subject.timeline.words(top['begin'])} and has {top['count']:,}"
        )
    return f"{text}. {of - total:,} more have no known arrival time." if of > total else f"{text}."


def _arrivals(subject: Subject) -> list[Part]:
    times = known_times(subject.trace.scan("tasks"), ARRIVAL)
    if times.is_empty():
        return [Prose("No task has a known arrival time.")]
    timeline = subject.timeline.until(float(times.max()))  # type: ignore[arg-type]
    frame = aggregates.counts_over_time(times, timeline)
    caption = arrivals_caption(frame, subject, "tasks", subject.description.tasks)
    figure = figures.counts_over_time(frame, timeline.axis, "tasks per bin")
    parts: list[Part] = [FigurePart("arrivals", "Arrivals over time", figure, caption, frame)]
    week = aggregates.weekly_rate(times, timeline)
    if week is not None:
        figure = figures.weekly_rate(week, "tasks/h")
        parts.append(FigurePart("week", "Arrivals by hour and weekday", figure, _week_caption(week, subject), week))
    return parts


def _week_caption(week: pl.DataFrame, subject: Subject) -> str:
    def cell(row: dict[str, float]) -> str:
        return f"{figures.WEEKDAYS[int(row['weekday']) - 1]} {int(row['hour']):02d}:00 ({row['per_hour']:,.1f})"

    busiest = week.row(int(week["per_hour"].arg_max() or 0), named=True)
    quietest = week.row(int(week["per_hour"].arg_min() or 0), named=True)
    mean = int(week["arrivals"].sum()) / float(week["hours_covered"].sum())
    text = (
        f"Tasks per hour, {subject.timeline.zone}: {mean:,.1f} on average, most on {cell(busiest)}, "
        f"fewest on {cell(quietest)}."
    )
    missing = 7 * 24 - week.height
    return f"{text} {missing} of 168 hours of the week lie outside the trace." if missing else text


def _durations(subject: Subject) -> list[Part]:
    parts: list[Part] = []
    for id_, title, what, expression in (
        ("runtime", "Runtime", "runtime", RUNTIME),
        ("wait", "Wait", "wait", WAIT),
    ):
        values = subject.trace.scan("tasks").select(expression.alias("value")).collect()["value"].drop_nulls()
        parts += duration_parts(id_, title, what, "tasks", values)
    return parts


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
        + (f" {zero:.1%} are zero." if zero else "")
    )
    figure = figures.distribution(frame, quantiles, what, of)
    return [FigurePart(id_, f"{title} distribution", figure, caption, frame, half=True)]


def _gpus(subject: Subject) -> list[Part]:
    frame = aggregates.gpu_request_classes(subject.trace.scan("tasks"))
    if frame.is_empty():
        return []
    most = frame.row(int(frame["tasks"].arg_max() or 0), named=True)
    caption = f"{frame['tasks'].sum():,} tasks by GPUs asked for; {_class_words(most['gpus'])} is the most frequent "
    caption += f"({most['task_share']:.1%})."
    if frame["gpu_hour_share"].null_count() == 0:
        heaviest = frame.row(int(frame["gpu_hours"].arg_max() or 0), named=True)
        caption += (
            f" Of {frame['gpu_hours'].sum():,.0f} GPU-hours, {heaviest['gpu_hour_share']:.1%} went to tasks that asked "
            f"for {_class_words(heaviest['gpus'])}."
        )
    figure = figures.shares_by_class(frame, "GPUs asked for by a task")
    return [FigurePart("gpus-per-task", "GPUs per task", figure, caption, frame, half=True)]


def _class_words(gpus: str) -> str:
    if gpus.startswith("≤"):
        up_to = int(gpus[1:].replace(",", ""))
        return f"over {up_to // 2:,} and up to {up_to:,} GPUs"
    return {"0": "no GPU", "<1": "a share of one GPU", "1": "one GPU"}[gpus]


def _owners(subject: Subject) -> list[Part]:
    found = aggregates.owners(subject.trace.scan("tasks"))
    if found is None:
        return []
    who, totals = found
    curve = aggregates.concentration(totals)
    top = max(math.ceil(_TOP_SHARE * totals.height), 1)
    caption = (
        f"The largest {top / totals.height:.1%} of {who}s ({top:,} of {totals.height:,}) submit "
        f"{totals['task_share'].head(top).sum():.1%} of the tasks"
    )
    if "gpu_hour_share" in curve.columns:
        hours = totals["gpu_hour_share"].sort(descending=True, nulls_last=True).head(top).sum()
        caption += f"; the same number of {who}s, ranked by GPU-hours, hold {hours:.1%} of the GPU-hours"
    title = f"How much the largest {who}s account for"
    figure = figures.concentration(curve, f"{who}s")
    return [
        FigurePart("owners", title, figure, caption + ".", curve, half=True),
        _largest(who, totals),
    ]


def _largest(who: str, totals: pl.DataFrame) -> TablePart:
    rows = [
        (
            r["owner"],
            f"{r['tasks']:,}",
            f"{r['task_share']:.1%}",
            format_count(r["gpu_hours"]),
            "–" if r["gpu_hour_share"] is None else f"{r['gpu_hour_share']:.1%}",
            format_duration(r["median_wait_seconds"]),
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
    return TablePart(f"The {len(rows)} {who}s with most tasks", kinds, tuple(rows))
