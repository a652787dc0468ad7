"""Figures, as functions from a small frame to a Plotly figure, so that a report and a dashboard share them.

Figures carry no colours: a template of `gputwin.report.theme` does, the light one unless another is set.
Text from a trace goes through `plain`, since Plotly reads a dialect of HTML in every label.
"""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
from plotly import graph_objects as go
from plotly.subplots import make_subplots

from gputwin.analysis.words import metric as metric_words
from gputwin.core.errors import shorten
from gputwin.core.units import format_duration
from gputwin.report.axes import duration_axis
from gputwin.report.theme import LIGHT, template

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
HEIGHT = 320
ONE_COLOUR = [LIGHT.colours[0]]
"""For curves that stand for one thing; under another theme its first colour takes the place."""
DASHES = ("solid", "dash", "dot", "dashdot")


def plain(text: object, limit: int = 40) -> str:
    """Return text of a trace as a label that Plotly shows as it is."""
    return html.escape(shorten(text, limit), quote=False)


def counts_over_time(frame: pl.DataFrame, axis: str, what: str) -> go.Figure:
    """Return the number of events per bin over time as a filled step curve (`aggregates.counts_over_time`)."""
    figure = blank(xaxis={"title": axis}, yaxis={"title": what, "rangemode": "tozero"}, hovermode="x")
    # The last edge closes the last step; without it a single bin would be a point.
    x, y = frame["from"].to_list(), frame["count"].to_list()
    figure.add_scatter(
        x=[*x, *frame["to"][-1:].to_list()],
        y=[*y, *y[-1:]],
        mode="lines",
        line={"shape": "hv", "width": 1.2},
        fill="tozeroy",
        hovertemplate="%{x}<br>%{y:,}<extra></extra>",
    )
    return figure


def weekly_rate(frame: pl.DataFrame, what: str) -> go.Figure:
    """Return the rate by hour and those weekdays the trace covers as a heat map (`aggregates.weekly_rate`)."""
    days = frame["weekday"].unique().sort().to_list()
    cells = {(row["weekday"], row["hour"]): row["per_hour"] for row in frame.to_dicts()}
    figure = blank(
        height=110 + 28 * len(days),
        xaxis={"title": "hour of the day", "dtick": 2, "showgrid": False, "zeroline": False},
        yaxis={"autorange": "reversed", "showgrid": False, "type": "category"},
    )
    figure.add_heatmap(
        z=[[cells.get((day, hour)) for hour in range(24)] for day in days],
        x=list(range(24)),
        y=[WEEKDAYS[day - 1] for day in days],
        zmin=0,
        zmax=frame["per_hour"].max(),
        xgap=1,
        ygap=1,
        colorbar={"title": {"text": what, "side": "right"}, "thickness": 12},
        hovertemplate="%{y} %{x}:00<br>%{z:.3g} " + what + "<extra></extra>",
    )
    return figure


def distribution(frame: pl.DataFrame, quantiles: Mapping[str, float], what: str, of: str) -> go.Figure:
    """Return durations' distribution function on a log axis, with quantiles marked ("p95" → s).

    Zeros have no place on a log axis: the curve begins at their share.
    """
    positive = frame.filter(pl.col("value") > 0)
    figure = blank(
        xaxis=duration_axis(what, positive["value"]),
        yaxis={"title": f"share of {of}", "range": [0, 1.04], "tickformat": ".0%"},
        colorway=ONE_COLOUR,
    )
    figure.add_scatter(
        x=positive["value"].to_list(),
        y=positive["share"].to_list(),
        mode="lines" if positive.height > 1 else "markers",
        line={"shape": "hv", "width": 2},
        hovertemplate="%{y:.1%} ≤ %{x:,.4g} s<extra></extra>",
    )
    marked = {name: value for name, value in quantiles.items() if value > 0}
    figure.add_scatter(
        x=list(marked.values()),
        y=[float(name.removeprefix("p")) / 100 for name in marked],
        mode="markers+text",
        marker={"size": 8},
        text=[f"{name}  {format_duration(value)}" for name, value in marked.items()],
        # The highest two lie close together: one label goes below its point, the other above.
        textposition=["top right" if name == "p99" else "bottom right" for name in marked],
        cliponaxis=False,
        hoverinfo="skip",
    )
    # Room to the right, so that the highest quantiles' labels stay inside.
    figure.update_xaxes(range=_log_range(positive["value"], room=0.8))
    return figure


def shares_by_class(frame: pl.DataFrame, axis: str) -> go.Figure:
    """Return shares of tasks and of GPU-hours by class as bars (`aggregates.gpu_request_classes`)."""
    figure = blank(
        xaxis={"title": axis, "type": "category", "tickangle": 0},
        yaxis={"title": "share", "tickformat": ".0%", "rangemode": "tozero"},
        bargap=0.25,
    )
    for name, column in (("tasks", "task_share"), ("GPU-hours", "gpu_hour_share")):
        if frame[column].null_count() == 0:
            figure.add_bar(
                x=frame["gpus"].to_list(),
                y=frame[column].to_list(),
                name=name,
                hovertemplate="%{x}<br>%{y:.1%} of " + name + "<extra></extra>",
            )
    figure.update_layout(showlegend=len(figure.data) > 1)
    return figure


def concentration(frame: pl.DataFrame, who: str) -> go.Figure:
    """Return the share of tasks and GPU-hours of the largest owners as curves (`aggregates.concentration`)."""
    figure = blank(
        xaxis={"title": f"share of {who}, largest first", "tickformat": ".0%", "range": [0, 1]},
        yaxis={"title": "share of the total", "tickformat": ".0%", "range": [0, 1.02]},
        showlegend=True,
    )
    for name, column, dash in (("tasks", "task_share", "solid"), ("GPU-hours", "gpu_hour_share", "dash")):
        if column in frame.columns:
            figure.add_scatter(
                x=frame["owner_share"].to_list(),
                y=frame[column].to_list(),
                name=name,
                mode="lines",
                line={"width": 2, "dash": dash},
                hovertemplate="%{x:.1%} of " + who + ": %{y:.1%} of " + name + "<extra></extra>",
            )
    return figure


def gpus_by_model(frame: pl.DataFrame) -> go.Figure:
    """Return the number of GPUs of each model as horizontal bars (`aggregates.gpus_by_model`)."""
    return bars(frame["model"], frame["gpus"], "GPUs", "%{y}: %{x:,} GPUs")


def bars(names: pl.Series, amounts: pl.Series, axis: str, hover: str) -> go.Figure:
    """Return amounts as horizontal bars with their numbers, the first on top."""
    largest = float(amounts.cast(pl.Float64).max() or 0.0)  # type: ignore[arg-type]
    figure = blank(
        height=90 + 32 * max(names.len(), 1),
        # Room to the right for the number of the longest bar, also on a phone.
        xaxis={"title": axis, "rangemode": "tozero", **({"range": [0, 1.2 * largest]} if largest else {})},
        yaxis={"type": "category", "autorange": "reversed"},
        bargap=0.35,
    )
    figure.add_bar(
        x=amounts.to_list(),
        y=[plain(name) for name in names],
        orientation="h",
        text=[f"{amount:,.0f}" for amount in amounts],
        textposition="outside",
        cliponaxis=False,
        hovertemplate=f"{hover}<extra></extra>",
    )
    return figure


def load_over_time(frame: pl.DataFrame, axis: str, labels: Sequence[str]) -> go.Figure:
    """Return offered load over time, one curve per label (`at`, `label`, `load`), with a line at capacity."""
    figure = blank(
        xaxis={"title": axis},
        yaxis={"title": "offered load / capacity", "tickformat": ".0%", "rangemode": "tozero"},
        showlegend=len(labels) > 1,
        hovermode="x unified",
    )
    for i, label in enumerate(labels):
        part = frame.filter(pl.col("label") == label)
        figure.add_scatter(
            x=part["at"].to_list(),
            y=part["load"].to_list(),
            name=plain(label),
            mode="lines",
            line={"width": 1.8, "dash": DASHES[i % len(DASHES)]},
            hovertemplate="%{y:.1%}",
        )
    figure.add_hline(y=1, annotation_text="capacity", annotation_position="top right")
    return figure


def fidelity(frame: pl.DataFrame) -> go.Figure:
    """Return how generated quantiles compare with the original's (`marginal`, `statistic`, `ratio`), 1 = the same."""
    marginals = frame["marginal"].unique(maintain_order=True).to_list()
    figure = blank(
        height=110 + 30 * len(marginals),
        xaxis={"title": "generated / original", "type": "log", "tickformat": ".3~g", "nticks": 8},
        yaxis={"type": "category", "autorange": "reversed"},
        showlegend=True,
    )
    symbols = ("circle", "diamond", "square", "triangle-up", "cross", "x")
    for i, statistic in enumerate(frame["statistic"].unique(maintain_order=True)):
        part = frame.filter(pl.col("statistic") == statistic)
        figure.add_scatter(
            x=part["ratio"].to_list(),
            y=[plain(m) for m in part["marginal"]],
            name=statistic,
            mode="markers",
            marker={"size": 9, "symbol": symbols[i % len(symbols)], "opacity": 0.85},
            hovertemplate="%{y}, " + statistic + ": %{x:.3f}<extra></extra>",
        )
    figure.add_vline(x=1)
    return figure


def small_multiples(frame: pl.DataFrame, axis: str) -> go.Figure:
    """Return one small panel per metric over time (`aggregates.metrics_over_time`, with `at` as shown)."""
    metrics = frame["metric"].unique(maintain_order=True).to_list()
    columns = min(3, len(metrics))
    rows = -(-len(metrics) // columns)
    figure = make_subplots(
        rows,
        columns,
        subplot_titles=[plain(metric_words(m), 34) for m in metrics],
        vertical_spacing=0.34 / max(rows, 1),
    )
    # On a phone the page puts the panels below one another.
    figure.update_layout(layout_of(height=60 + 190 * rows, colorway=ONE_COLOUR, meta={"panels": len(metrics)}))
    for i, metric in enumerate(metrics):
        part = frame.filter(pl.col("metric") == metric)
        figure.add_scatter(
            x=part["at"].to_list(),
            y=part["value"].to_list(),
            mode="lines" if part.height > 1 else "markers",
            line={"width": 1.4},
            hovertemplate="%{x}<br>%{y:,.4g}<extra></extra>",
            row=i // columns + 1,
            col=i % columns + 1,
        )
    figure.update_annotations(font_size=12)
    figure.update_xaxes(nticks=5)
    figure.update_xaxes(title=axis, row=rows)
    figure.update_yaxes(rangemode="tozero", nticks=5)
    return figure


def token_classes(frame: pl.DataFrame) -> go.Figure:
    """Return the number of requests by tokens in and out as bars (`aggregates.token_classes`)."""
    order = frame["tokens"].unique(maintain_order=True).to_list()
    figure = blank(
        xaxis={"title": "tokens per request", "type": "category", "categoryarray": order},
        yaxis={"title": "requests", "rangemode": "tozero"},
        showlegend=True,
    )
    for direction in frame["direction"].unique(maintain_order=True):
        part = frame.filter(pl.col("direction") == direction)
        figure.add_bar(
            x=part["tokens"].to_list(),
            y=part["requests"].to_list(),
            name=direction,
            hovertemplate="%{x} " + direction + " tokens<br>%{y:,} requests<extra></extra>",
        )
    return figure


def blank(**layout: Any) -> go.Figure:
    """Return an empty figure of the report's height and margins."""
    return go.Figure(layout=layout_of(**layout))


def layout_of(**layout: Any) -> dict[str, Any]:
    """Return the layout every figure starts from."""
    return {
        "template": template(LIGHT),
        "height": HEIGHT,
        "margin": {"l": 60, "r": 20, "t": 28, "b": 48},
        "showlegend": False,
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
        **layout,
    }


def _log_range(values: pl.Series, room: float) -> list[float]:
    """Return a log axis' range (powers of ten) that holds the values and leaves a share of it free at the right."""
    low, high = math.log10(float(values.min())), math.log10(float(values.max()))  # type: ignore[arg-type]
    width = max(high - low, 0.5)
    return [low - 0.04 * width, high + room * width]
