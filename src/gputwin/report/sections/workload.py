"""What was asked of the cluster: arrivals, patterns, burstiness, GPUs and instances per task, and who asked."""

from __future__ import annotations

import polars as pl

from gputwin.analysis.bins import MOST_BINS
from gputwin.analysis.dimensions import BY_NAME
from gputwin.analysis.topic import Topic
from gputwin.analysis.words import amount, share, unit_words
from gputwin.core.units import percent, short_duration
from gputwin.report import aggregates, charts, figures
from gputwin.report.page import FigurePart, Findings, Kind, Part, Prose, Section, TablePart, number
from gputwin.report.report_input import ReportInput
from gputwin.report.sections.owners import owner_parts
from gputwin.traces.measures import ARRIVAL

_MOST_GROUPS = 12
_BOX = {"p05": 0.05, "p25": 0.25, "p50": 0.5, "p75": 0.75, "p95": 0.95}
_COMPOSED = ("job_class", "workload", "gpu_model", "role", "qos")
_NOTES = (
    "GPUs asked for are those of the whole gang: instances × devices × share of each device.",
    f"Arrivals are counted in equal bins, at most {MOST_BINS}; the first and the last may be partly outside the trace. The "
    "heat map divides the arrivals of each weekday and hour by the hours of that kind between the first and "
    "the last arrival.",
    "Hourly patterns count what arrives in each local hour of the trace; hours without arrivals are left out of boxes.",
)


def workload(subject: ReportInput) -> Section | None:
    """Return the workload section; None for a trace without tasks."""
    topic = subject.analysis.topic("workload")
    if topic is None:
        return None
    parts = [
        *_arrivals(subject),
        *_patterns(topic),
        *_burstiness(topic),
        *_gpus(topic),
        *_gangs(topic),
        *_composition(topic),
        *_recurrence(topic),
        *owner_parts(topic),
    ]
    if topic.remarks:
        parts.append(Findings(topic.remarks))
    return Section("workload", "Workload", tuple(parts), (*topic.notes, *_NOTES)) if parts else None


def known_times(frame: pl.LazyFrame, time: pl.Expr) -> pl.Series:
    """Return the known, finite times of a frame."""
    return frame.select(time.alias("time")).filter(pl.col("time").is_finite()).collect()["time"]


def arrivals_caption(frame: pl.DataFrame, subject: ReportInput, what: str, of: int) -> str:
    """Return what a figure of arrivals shows: how many of all, the mean per bin, and the busiest bin."""
    total = int(frame["count"].sum())
    top = frame.row(int(frame["count"].arg_max() or 0), named=True)
    width = bin_of(frame)
    text = f"{total:,} {what}, counted every {width}"
    if frame.height > 1:
        text += f": {number(total / frame.height)} per {width} on average, at most {top['count']:,}"
        if int((frame["count"] == top["count"]).sum()) == 1:
            text += f" ({subject.timeline.stretch(top['begin'], width)})"
    older = min(subject.description.tasks_already_running, of - total) if what == "tasks" else 0
    unknown = of - total - older
    text += f"; {older:,} more ran when the record began" if older else ""
    return f"{text}. {unknown:,} more have no known arrival time." if unknown else f"{text}."


def bin_of(frame: pl.DataFrame) -> str:
    """Return the width of the bins of counts over time as people say it."""
    return unit_words(short_duration(float(frame["end"][0] - frame["begin"][0])))


def arrivals_figure(subject: ReportInput, id_: str = "answer-arrivals") -> FigurePart | None:
    """Return arrivals over time; None where no task has a known arrival time."""
    times = known_times(subject.trace.scan("tasks"), ARRIVAL)
    if times.is_empty():
        return None
    timeline = subject.timeline.until(float(times.max()))  # type: ignore[arg-type]
    frame = aggregates.counts_over_time(times, timeline)
    caption = arrivals_caption(frame, subject, "tasks", subject.description.tasks)
    figure = figures.counts_over_time(frame, timeline.axis, f"tasks per {bin_of(frame)}")
    return FigurePart(id_, "Arrivals over time", figure, caption, frame)


def _arrivals(subject: ReportInput) -> list[Part]:
    figure = arrivals_figure(subject, "arrivals")
    if figure is None:
        return [Prose("No task has a known arrival time.")]
    times = known_times(subject.trace.scan("tasks"), ARRIVAL)
    timeline = subject.timeline.until(float(times.max()))  # type: ignore[arg-type]
    parts: list[Part] = [figure]
    week = aggregates.weekly_rate(times, timeline)
    if week is not None:
        map_ = figures.weekly_rate(week, "tasks/h")
        parts.append(FigurePart("week", "Arrivals by hour and weekday", map_, _week_caption(week, subject), week))
    return parts


def _week_caption(week: pl.DataFrame, subject: ReportInput) -> str:
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


def _patterns(topic: Topic) -> list[Part]:
    """Return submissions by hour of day as boxes, and what is asked for by hour of the week and of the day."""
    hourly = topic.table("hourly")
    if hourly is None or hourly.select("week", "weekday").unique().height < 3:
        return []
    by_hour = hourly.group_by("hour").agg(
        *(pl.col("tasks").quantile(q, "linear").alias(name) for name, q in _BOX.items())
    )
    by_hour = by_hour.sort("hour")
    days = hourly.select("week", "weekday").unique().height
    caption = (
        f"Tasks that arrive in each local hour, over {days} days: the box holds the middle half, whiskers 5 to 95 %. "
        "Hours in which none arrives are left out."
    )
    figure = charts.boxes(by_hour, "hour", "hour of the day", "tasks per hour")
    parts: list[Part] = [FigurePart("hours", "Arrivals by hour of the day", figure, caption, by_hour)]
    asked = {"gpus": "GPUs", "cores": "CPU cores", "gib": "memory, GiB"}
    asked = {c: name for c, name in asked.items() if hourly[c].sum() > 0}
    if asked:
        of_day = hourly.group_by("hour").agg(pl.col(list(asked)).sum() / days).sort("hour")
        weeks = hourly["week"].n_unique()
        hour_of_week = ((pl.col("weekday") - 1) * 24 + pl.col("hour")).alias("hour_of_week")
        of_week = hourly.group_by(hour_of_week).agg(pl.col(list(asked)).sum() / weeks).sort("hour_of_week")
        figure = charts.panels(of_week, "hour_of_week", asked, "day of the week", tick=24, ticks=figures.WEEKDAYS)
        caption = f"What arriving tasks ask for in each hour of the week, mean of {weeks} weeks."
        parts.append(FigurePart("week-requests", "Requests over the week", figure, caption, of_week))
        figure = charts.panels(of_day, "hour", asked, "hour of the day", tick=6)
        caption = f"What arriving tasks ask for in each hour of the day, mean of {days} days."
        parts.append(FigurePart("hour-requests", "Requests over the day", figure, caption, of_day))
    return parts


def _burstiness(topic: Topic) -> list[Part]:
    frame = topic.table("burstiness")
    if frame is None:
        return []
    rows = [
        (
            r["scale"],
            f"{r['bins']:,}",
            *(number(r[c]) for c in ("mean", "dispersion", "peak_over_mean")),
            percent(r["empty_share"], 1),
            number(r["lag_one"]),
        )
        for r in frame.to_dicts()
    ]
    names = ("bins", "mean per bin", "variance / mean", "peak / mean", "empty", "lag-1 correlation")
    kinds = {"bin": Kind.TEXT} | dict.fromkeys(names, Kind.NUMBER)
    return [
        TablePart(
            "How bursty arrivals are, at several scales", kinds, tuple(rows), "A Poisson process has variance / mean 1."
        )
    ]


def _gpus(topic: Topic) -> list[Part]:
    composed = topic.table("composition")
    if composed is None:
        return []
    frame = composed.filter(pl.col("dimension") == "gpu_request").drop("dimension").rename({"group": "gpus"})
    if frame.is_empty():
        return []
    most = frame.row(int(frame["tasks"].arg_max() or 0), named=True)
    caption = f"{frame['tasks'].sum():,} tasks by GPUs asked for; {amount(most['gpus'], 'GPU')} is the most frequent "
    caption += f"({percent(most['task_share'], 1)})."
    if frame["gpu_hour_share"].null_count() == 0:
        heaviest = frame.row(int(frame["gpu_hours"].arg_max() or 0), named=True)
        caption += (
            f" Of {frame['gpu_hours'].sum():,.0f} GPU-hours, {percent(heaviest['gpu_hour_share'], 1)} "
            "went to tasks that asked "
            f"for {amount(heaviest['gpus'], 'GPU')}."
        )
    figure = figures.shares_by_class(frame, "GPUs asked for by a task")
    return [FigurePart("gpus-per-task", "GPUs per task", figure, caption, frame, half=True)]


def _gangs(topic: Topic) -> list[Part]:
    frame = topic.table("instances_per_task")
    if frame is None or frame.height < 2:
        return []
    long = pl.concat(
        [
            frame.select(
                pl.lit(name).alias("of"),
                pl.col("instances").cast(pl.Float64).alias("value"),
                pl.col(column).alias("share"),
            )
            for name, column in (("tasks", "task_share"), ("instances", "instance_share"))
        ]
    )
    single = frame.filter(pl.col("instances") <= 1)
    gangs = 1 - (float(single["instance_share"][-1]) if single.height else 0.0)
    caption = (
        f"Share of tasks, and of the instances they are made of, in gangs up to a size; {percent(gangs, 1)} of "
        "instances belong to gangs "
        f"of two or more, and the largest gang has {aggregates.largest(frame['instances']):,.0f}."
    )
    figure = charts.curves(long, "of", "instances in the gang", "the total", scale="log")
    return [FigurePart("instances-per-task", "Instances per task", figure, caption, frame, half=True)]


def _composition(topic: Topic) -> list[Part]:
    composed = topic.table("composition")
    parts: list[Part] = []
    if composed is None:
        return parts
    for name in _COMPOSED:
        frame = composed.filter(pl.col("dimension") == name)
        if frame.height < 2:
            continue
        shown = frame.head(_MOST_GROUPS)
        columns = {"task_share": "tasks"}
        if shown["gpu_hour_share"].null_count() == 0:
            columns["gpu_hour_share"] = "GPU-hours"
        top = frame.sort("tasks", descending=True).row(0, named=True)
        caption = (
            f"{frame.height:,} groups. The most frequent are {BY_NAME[name].tasks_of(top['group'])}, "
            f"{share(top['task_share'])} of all"
        )
        if "gpu_hour_share" in columns:
            heavy = frame.sort("gpu_hours", descending=True).row(0, named=True)
            who = "they hold" if heavy["group"] == top["group"] else f"{BY_NAME[name].tasks_of(heavy['group'])} hold"
            caption += f"; {who} most GPU-hours, {share(heavy['gpu_hour_share'])}"
        title = f"Tasks by {BY_NAME[name].title}"
        figure = charts.bar_rows(shown, "group", columns, "share", percent=True)
        parts.append(FigurePart(f"by-{name.replace('_', '-')}", title, figure, f"{caption}.", frame, half=True))
    return parts


def _recurrence(topic: Topic) -> list[Part]:
    frame = topic.table("recurrence")
    if frame is None or frame.height < 2:
        return []
    figure = charts.bars(
        frame, "runs", {"task_share": "tasks"}, "share of tasks", percent=True, title="times the group ran"
    )
    again = float(frame.filter(pl.col("runs") != "1")["task_share"].sum())
    caption = (
        f"{frame['groups'].sum():,} groups of alike tasks; {percent(again, 1)} of tasks belong to "
        "one that ran more than once."
    )
    return [FigurePart("recurrence", "How often the same work comes again", figure, caption, frame, half=True)]
