"""Resource efficiency: requests against limits and against use."""

from __future__ import annotations

import polars as pl

from gputwin.analysis.topic import Topic
from gputwin.core.units import percent
from gputwin.report import charts
from gputwin.report.page import FigurePart, Findings, Kind, Part, Section, TablePart, number
from gputwin.report.report_input import ReportInput

_AXES = {"CPU": "cores", "GPU": "GPUs", "memory": "GiB"}
_MOST_ROWS = 30


def efficiency(subject: ReportInput) -> Section | None:
    """Return the section on efficiency; None where neither limits nor use are known."""
    topic = subject.analysis.topic("efficiency")
    if topic is None:
        return None
    parts: list[Part] = [*_use(topic), *_limits(topic), Findings(topic.remarks)]
    return Section("efficiency", "Resource efficiency", tuple(parts), topic.notes)


def _use(topic: Topic) -> list[Part]:
    curves, use = topic.table("use_curves"), topic.table("use")
    if curves is None or use is None:
        return []
    axes = {name: unit for name, unit in _AXES.items() if name in curves["resource"]}
    words = ", ".join(f"{r['resource']} {percent(r['use_over_request'], 1)}" for r in use.to_dicts())
    figure = charts.paired_curves(curves, "resource", {"request": "asked for", "use": "used"}, axes)
    # A few large ones would squeeze everybody else against the axis.
    for i, name in enumerate(axes):
        own = curves.filter(pl.col("resource") == name)
        high = max(float(own.filter(pl.col("share") <= 0.985)[c].max() or 0.0) for c in ("request", "use"))  # type: ignore[arg-type]
        figure.update_xaxes(range=[0, high * 1.05 or 1], row=1, col=i + 1)
    caption = (
        f"What instances ask for and what they use on average; use over request: {words}. Axes end at the 98th "
        "percentile."
    )
    parts: list[Part] = [FigurePart("request-use", "Asked for and used", figure, caption, curves)]
    idle = curves.filter(pl.col("idle_over_capacity").is_not_null())
    if not idle.is_empty():
        figure = charts.curves(
            idle,
            "resource",
            "(request − use) / capacity of the machine",
            "instances",
            scale="percent",
            x="idle_over_capacity",
        )
        figure.update_xaxes(range=[idle["idle_over_capacity"].quantile(q, "linear") for q in (0.02, 0.98)])
        caption = "What an instance leaves idle (or overruns, below zero) as a share of its machine's capacity."
        parts.append(FigurePart("idle-capacity", "Idle inside requests", figure, caption, idle, half=True))
    figure = charts.bars(
        use,
        "resource",
        {"over_share": "ask for more than used", "under_share": "use more than asked for"},
        "share",
        percent=True,
    )
    over = ", ".join(f"{r['resource']} {percent(r['over_share'], 1)}" for r in use.to_dicts())
    caption = f"Share of instances that ask for more than they use: {over}."
    parts.append(FigurePart("provisioning", "Over- and under-provisioned", figure, caption, use, half=True))
    parts.append(_use_table("Request against use", use, None))
    gpu = topic.table("gpu")
    if gpu is not None:
        rows = [
            (r["what"], f"{r['count']:,}", *(number(r[c]) for c in ("mean", "p50", "p95", "p99", "max")))
            for r in gpu.to_dicts()
        ]
        kinds = {"what": Kind.TEXT} | dict.fromkeys(("instances", "mean", "median", "p95", "p99", "max"), Kind.NUMBER)
        parts.append(TablePart("What instances use of their GPUs", kinds, tuple(rows)))
    for name, column, title in (("use_by_role", "role", "role"), ("use_by_gpu_model", "gpu_model", "GPU model")):
        by = topic.table(name)
        if by is not None:
            parts.append(_use_table(f"Request against use by {title}", by, column))
    return parts


def _use_table(title: str, use: pl.DataFrame, column: str | None) -> TablePart:
    use = use.sort(["resource", "count"], descending=[False, True], maintain_order=True) if column else use
    rows = [
        (
            r["resource"],
            *([str(r[column])] if column else []),
            f"{r['count']:,}",
            number(r["request"]),
            number(r["use"]),
            percent(r["use_over_request"], 1),
            percent(r["over_share"], 1),
            percent(r["under_share"], 1),
            percent(r["reclaimable_share"], 1),
            number(r["reclaimable_hours"]),
        )
        for r in use.head(_MOST_ROWS).to_dicts()
    ]
    kinds = {"resource": Kind.TEXT} | ({column.replace("_", " "): Kind.TEXT} if column else {})
    names = (
        "instances",
        "mean request",
        "mean use",
        "use / request",
        "ask for more",
        "use more",
        "idle",
        "idle × hours",
    )
    left = use.height - len(rows)
    note = f"{left:,} more rows are not listed." if left else ""
    return TablePart(title, kinds | dict.fromkeys(names, Kind.NUMBER), tuple(rows), note)


def _limits(topic: Topic) -> list[Part]:
    limits = topic.table("limits")
    if limits is None:
        return []
    by_role = topic.table("limits_by_role")
    groups = [limits.select(pl.lit("all").alias("role"), pl.all())]
    groups += [by_role.select("role", *limits.columns)] if by_role is not None else []
    rows = [
        (
            r["resource"],
            r["role"],
            f"{r['count']:,}",
            *(percent(r[c], 1) for c in ("mean_of_ratios", "ratio_of_sums", "below_share", "above_share")),
        )
        for r in pl.concat(groups).to_dicts()
    ]
    kinds = {"resource": Kind.TEXT, "role": Kind.TEXT} | dict.fromkeys(
        ("instances", "mean of ratios", "ratio of sums", "below the limit", "above it"), Kind.NUMBER
    )
    return [TablePart("Request over limit", kinds, tuple(rows))]
