"""How long tasks run: compared with Philly's, with the censored ones counted, and by group."""

from __future__ import annotations

import polars as pl

from gputwin.analysis.topic import Topic
from gputwin.analysis.words import duration
from gputwin.report import charts
from gputwin.report.axes import duration_axis
from gputwin.report.figures import blank
from gputwin.report.page import FigurePart, Findings, Kind, Part, Section, TablePart
from gputwin.report.report_input import ReportInput
from gputwin.report.sections.delays import curve_parts
from gputwin.report.sections.durations import duration_parts, group_parts
from gputwin.traces.measures import RUNTIME
from gputwin.traces.synthetic.philly import RUNTIME as PHILLY

_NOTE = (
    "Philly's runtimes are 21 quantiles of the 82,247 jobs by virtual cluster of the published 2017 trace, "
    "joined by straight "
    "lines.",
)


def runtimes(subject: ReportInput) -> Section | None:
    """Return the section on runtimes; None where none is known."""
    topic = subject.analysis.topic("runtimes")
    if topic is None:
        return None
    values = subject.trace.scan("tasks").select(RUNTIME.alias("value")).collect()["value"].drop_nulls()
    parts = duration_parts("runtime", "Runtime", "runtime", "tasks", values)
    parts += _beside_philly(subject, topic)
    parts += _survival(topic)
    parts += curve_parts("runtime", "runtime", topic.table("runtime_curves"))
    parts += group_parts("runtime", "runtime", topic.table("runtime_by"))
    parts.append(Findings(topic.remarks))
    return Section("runtimes", "Runtime", tuple(parts), (*topic.notes, *_NOTE))


def _beside_philly(subject: ReportInput, topic: Topic) -> list[Part]:
    curves = topic.table("runtime_curves")
    if curves is None or subject.trace.meta.source == "philly":
        return []
    own = curves.filter((pl.col("dimension") == "all") & (pl.col("value") > 0)).select(
        pl.lit("this trace").alias("of"), "value", "share"
    )
    if own.height < 2:
        return []
    values = {
        "of": "Philly 2017",
        "value": [float(v) for v in PHILLY.values],
        "share": [float(p) for p in PHILLY.probabilities],
    }
    frame = pl.concat([own, pl.DataFrame(values)])
    mine = topic.tables["runtime"]["p50"][0]
    theirs = PHILLY.values[PHILLY.probabilities.index(0.5)]
    caption = f"The median is {duration(mine)} here and {duration(theirs)} in Philly."
    figure = charts.curves(frame, "of", "runtime", "tasks")
    return [FigurePart("runtime-philly", "Runtime compared with Philly's", figure, caption, frame, half=True)]


def _survival(topic: Topic) -> list[Part]:
    table, curve = topic.table("survival"), topic.table("survival_curve")
    if table is None or curve is None:
        return []
    positive = curve.filter(pl.col("time") > 0)
    figure = blank(
        xaxis=duration_axis("time since start", positive["time"]),
        yaxis={"title": "share still running", "tickformat": ".0%", "range": [0, 1.03]},
        showlegend=True,
    )
    for name, column, dash in (("Kaplan–Meier", "share", "solid"), ("95 %", "low", "dot"), ("", "high", "dot")):
        figure.add_scatter(
            x=positive["time"].to_list(),
            y=positive[column].to_list(),
            name=name,
            showlegend=bool(name),
            mode="lines",
            line={"shape": "hv", "width": 2 if column == "share" else 1, "dash": dash},
            hovertemplate="%{y:.1%} run longer than %{x:,.0f} s<extra></extra>",
        )
    s = table.row(0, named=True)
    caption = (
        f"Share of tasks still running after a time, {s['censored']:,} of {s['tasks']:,} censored at the end of "
        "the trace. Mean "
        f"within {duration(s['horizon'])}: {duration(s['km_mean'])}; the plain mean of the complete ones is "
        f"{duration(s['mean'])}."
    )
    return [
        FigurePart("survival", "How long tasks live", figure, caption, curve, half=True),
        _survival_table(table),
    ]


def _survival_table(table: pl.DataFrame) -> TablePart:
    rows = [
        (
            "all" if r["dimension"] == "all" else f"{r['dimension'].replace('_', ' ')}: {r['group']}",
            f"{r['tasks']:,}",
            f"{r['censored']:,}",
            duration(r["mean"]),
            duration(r["km_mean"]),
            f"{duration(r['km_mean_low'])} – {duration(r['km_mean_high'])}",
            duration(r["p50"]),
            "over half live on" if r["km_p50"] is None else duration(r["km_p50"]),
        )
        for r in table.sort("tasks", descending=True, maintain_order=True).head(20).to_dicts()
    ]
    names = (
        "tasks",
        "still alive",
        "plain mean",
        "Kaplan–Meier mean",
        "95 % interval",
        "plain median",
        "Kaplan–Meier median",
    )
    kinds = {"group": Kind.TEXT} | dict.fromkeys(names, Kind.NUMBER)
    return TablePart("Runtimes with and without those still alive", kinds, tuple(rows))
