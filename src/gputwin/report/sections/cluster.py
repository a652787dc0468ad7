"""What the work ran on and how full it was: GPUs by model, types of nodes, allocation and queue over time."""

from __future__ import annotations

import polars as pl

from gputwin.analysis.cluster import RESOURCES
from gputwin.analysis.occupancy import bin_words, time_mean
from gputwin.analysis.topic import Topic
from gputwin.analysis.words import share
from gputwin.core.units import CORE_MILLI, MIB_PER_GIB, percent, short_duration
from gputwin.report import aggregates, charts, figures
from gputwin.report.page import FigurePart, Findings, Kind, Part, Prose, Section, TablePart, number
from gputwin.report.report_input import ReportInput
from gputwin.report.timeline import Timeline

_MOST_TYPES = 30
_TYPE = ("gpu_model", "gpu_count", "gpu_memory_mib", "cpu_milli", "memory_mib")


def cluster(subject: ReportInput) -> Section | None:
    """Return the section on the cluster the load is checked against, else the trace's own, and on what ran over time."""
    nodes, topic = subject.nodes, subject.analysis.topic("cluster")
    parts: list[Part] = [] if nodes.is_empty() else _inventory(subject, nodes)
    if topic is not None:
        parts += _over_time(subject, topic)
        parts += [Findings(topic.remarks)] if topic.remarks else []
    notes = () if topic is None else topic.notes
    return Section("cluster", "Cluster", tuple(parts), notes) if parts else None


def _inventory(subject: ReportInput, nodes: pl.DataFrame) -> list[Part]:
    parts: list[Part] = [Prose(_what(subject, nodes))]
    models = aggregates.gpus_by_model(nodes)
    if models.height > 1:
        total, top = int(models["gpus"].sum()), models.row(0, named=True)
        caption = (
            f"{total:,} GPUs; the largest share is {top['model']}: {top['gpus']:,} ({percent(top['gpus'] / total, 1)})."
        )
        figure = figures.gpus_by_model(models)
        parts.append(FigurePart("gpus-by-model", "GPUs by model", figure, caption, models))
    return [*parts, _types(nodes)]


def _over_time(subject: ReportInput, topic: Topic) -> list[Part]:
    frame = topic.tables["over_time"]
    timeline = subject.timeline.until(float(frame["begin"].max()))  # type: ignore[arg-type]
    shown = frame.with_columns(timeline.shown(pl.col("begin")).alias("at"))
    width = f", means over {short_duration(float(frame['begin'][1] - frame['begin'][0]))}" if frame.height > 1 else ""
    parts: list[Part] = []
    shares = {
        f"{c}_share": name for c, name in RESOURCES.items() if f"{c}_share" in frame.columns and frame[c].sum() > 0
    }
    if shares:
        means = ", ".join(f"{name} {share(time_mean(frame, c))}" for c, name in shares.items())
        figure = charts.over_time(shown, shares, timeline.axis, "allocated / capacity", percent=True)
        caption = f"Allocated as a share of the node table's capacity{width}; on average {means}."
        parts.append(FigurePart("allocation", "Allocation over time", figure, caption, shown))
    elif frame["gpus"].sum() > 0 or frame["running"].sum() > 0:
        columns = {"gpus": "GPUs held"} if frame["gpus"].sum() > 0 else {"running": "tasks running"}
        column, name = next(iter(columns.items()))
        figure = charts.over_time(shown, columns, timeline.axis, name)
        caption = (
            f"{name[:1].upper()}{name[1:]}{width}: {time_mean(frame, column):,.1f} on average, at most "
            f"{aggregates.largest(frame[column]):,.1f}."
        )
        parts.append(FigurePart("allocation", f"{name[:1].upper()}{name[1:]} over time", figure, caption, shown))
    if "queued" in frame.columns and frame["queued"].sum() > 0:
        columns = {"queued": "tasks queued"} | (
            {"queued_gpus": "GPUs they ask for"} if frame["queued_gpus"].sum() > 0 else {}
        )
        figure = charts.over_time(shown, columns, timeline.axis, "waiting")
        top = frame.row(int(frame["queued"].arg_max() or 0), named=True)
        caption = (
            f"Tasks waiting and the GPUs they ask for{width}: {time_mean(frame, 'queued'):,.1f} tasks on "
            f"average, at most {top['queued']:,.1f} ({subject.timeline.stretch(top['begin'], bin_words(frame))})."
        )
        parts.append(FigurePart("queue", "Queue over time", figure, caption, shown))
    return [*parts, *_by_model(timeline, topic)]


def _by_model(timeline: Timeline, topic: Topic) -> list[Part]:
    frame = topic.table("by_gpu_model")
    if frame is None or frame["gpu_model"].n_unique() < 2 or frame["gpus"].sum() <= 0:
        return []
    has_capacity = frame["gpus_share"].null_count() == 0
    value = "gpus_share" if has_capacity else "gpus"
    wide = frame.pivot("gpu_model", index="begin", values=value)
    shown = wide.with_columns(timeline.shown(pl.col("begin")).alias("at"))
    models = {m: m for m in wide.columns if m != "begin"}
    what = "allocated / capacity" if has_capacity else "GPUs held"
    figure = charts.over_time(shown, models, timeline.axis, what, percent=has_capacity)
    means = {m: time_mean(frame.filter(pl.col("gpu_model") == m), value) for m in models}
    top = max(means, key=means.__getitem__)
    mean = percent(means[top], 1) if has_capacity else f"{means[top]:,.1f} GPUs"
    caption = f"GPUs held by running tasks by the model they were given; fullest on average is {top}: {mean}."
    return [FigurePart("allocation-by-model", "Allocation by GPU model", figure, caption, shown)]


def _what(subject: ReportInput, nodes: pl.DataFrame) -> str:
    gpus = int(nodes["gpu_count"].sum())
    counts = f"{nodes.height:,} nodes" + (f" with {gpus:,} GPUs" if gpus else " and names no GPUs")
    if subject.cluster is not None:
        return f"The cluster is {subject.cluster.name}: {counts}."
    return f"The trace's own node table has {counts}."


def _types(nodes: pl.DataFrame) -> TablePart:
    types = (
        nodes.group_by(_TYPE)
        .agg(pl.len().alias("nodes"))
        .sort(["nodes", *_TYPE], descending=[True] + [False] * len(_TYPE), nulls_last=True)
    )
    rows = [
        (
            r["gpu_model"] or ("unknown" if r["gpu_count"] else "none"),
            f"{r['gpu_count']:,}",
            _amount(r["gpu_memory_mib"], MIB_PER_GIB),
            _amount(r["cpu_milli"], CORE_MILLI),
            _amount(r["memory_mib"], MIB_PER_GIB),
            f"{r['nodes']:,}",
            f"{r['nodes'] * r['gpu_count']:,}",
        )
        for r in types.head(_MOST_TYPES).to_dicts()
    ]
    kinds = {"GPU model": Kind.TEXT} | dict.fromkeys(
        ("GPUs per node", "GiB per GPU", "cores", "memory, GiB", "nodes", "GPUs in all"), Kind.NUMBER
    )
    left = types.height - len(rows)
    return TablePart("Node types", kinds, tuple(rows), f"{left:,} rarer types are not listed." if left else "")


def _amount(value: int | None, unit: int) -> str:
    return number(None if value is None else value / unit)
