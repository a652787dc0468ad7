"""Charts that several sections share: bars, dots with intervals, distribution functions, curves over time, boxes.

Each is a function from small frames to a Plotly figure without colours of its own, as in `gputwin.report.figures`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
from plotly import graph_objects as go
from plotly.subplots import make_subplots

from gputwin.report.axes import count_axis, duration_axis, duration_unit
from gputwin.report.figures import DASHES, HEIGHT, ONE_COLOUR, blank, layout_of, plain
from gputwin.report.theme import LIGHT

_PERCENT = ".0%"


def bars(
    frame: pl.DataFrame, label: str, columns: Mapping[str, str], axis: str, *, percent: bool = False, title: str = ""
) -> go.Figure:
    """Return grouped bars: one group per `label`, one bar per column (column → name)."""
    figure = blank(
        xaxis={"title": title, "type": "category", "automargin": True},
        yaxis={"title": axis, "rangemode": "tozero", **({"tickformat": _PERCENT} if percent else {})},
        showlegend=len(columns) > 1,
        bargap=0.25,
    )
    form = "%{y:.1%}" if percent else "%{y:,.4g}"
    for column, name in columns.items():
        figure.add_bar(
            x=[plain(v) for v in frame[label]],
            y=frame[column].to_list(),
            name=plain(name),
            hovertemplate=f"%{{x}}<br>%{{fullData.name}}: {form}<extra></extra>",
        )
    return figure


def bar_rows(
    frame: pl.DataFrame,
    label: str,
    columns: Mapping[str, str],
    axis: str,
    *,
    stacked: bool = False,
    percent: bool = False,
) -> go.Figure:
    """Return horizontal bars per `label`, the first on top: one per column (column → name), or all end to end.

    Long names stand to the left of their bars, which also fit a phone.
    """
    figure = blank(
        height=100 + (28 if stacked else 14 + 14 * len(columns)) * max(frame.height, 1),
        xaxis={"title": axis, "rangemode": "tozero", **({"tickformat": _PERCENT} if percent else {})},
        yaxis={"type": "category", "autorange": "reversed", "automargin": True},
        showlegend=len(columns) > 1,
        barmode="stack" if stacked else "group",
        bargap=0.35,
    )
    form = "%{x:.1%}" if percent else "%{x:,.4g}"
    for column, name in columns.items():
        figure.add_bar(
            x=frame[column].to_list(),
            y=[plain(v) for v in frame[label]],
            orientation="h",
            name=plain(name),
            hovertemplate=f"%{{y}}<br>%{{fullData.name}}: {form}<extra></extra>",
        )
    return figure


def dots(frame: pl.DataFrame, marks: Mapping[str, str], axis: str, *, is_duration: bool = True) -> go.Figure:
    """Return one row per `group` with a mark for each column (column → name) and the interval `low` to `high` of the first.

    Zeros have no place on a log axis and are left out.
    """
    names = [plain(g, 36) for g in frame["group"]]
    known = pl.concat([frame[c].cast(pl.Float64) for c in marks]).drop_nulls()
    known = known.filter(known > 0)
    figure = blank(
        height=110 + 26 * frame.height,
        xaxis=duration_axis(axis, known) if is_duration and known.len() else {"title": axis},
        yaxis={"type": "category", "autorange": "reversed"},
        showlegend=True,
    )
    symbols = ("circle", "line-ns-open", "diamond-open", "x-thin-open")
    for i, (column, name) in enumerate(marks.items()):
        values = [v if v and v > 0 else None for v in frame[column]]
        error = None
        if i == 0 and "low" in frame.columns:
            rows = frame.select(column, "low", "high").rows()
            up = [0 if m is None or h is None else max(h - m, 0) for m, _, h in rows]
            down = [0 if m is None or low is None else max(m - max(low, m * 1e-3), 0) for m, low, _ in rows]
            error = {"type": "data", "array": up, "arrayminus": down, "thickness": 1.2, "width": 3}
        figure.add_scatter(
            x=values,
            y=names,
            name=name,
            mode="markers",
            marker={"size": 9, "symbol": symbols[i % len(symbols)], "line": {"width": 2 if i else 0}},
            error_x=error,
            hovertemplate="%{y}<br>%{fullData.name}: %{x:,.4g} s<extra></extra>",
        )
    return figure


def curves(
    frame: pl.DataFrame,
    by: str,
    axis: str,
    of: str,
    *,
    scale: str = "duration",
    x: str = "value",
    groups: Sequence[str] | None = None,
) -> go.Figure:
    """Return distribution functions (`by`, `value`, `share`), one curve per group, in the order they come.

    `scale` is "duration" (log, s), "log" or "linear".
    """
    names = groups or frame[by].unique(maintain_order=True).to_list()
    values = frame[x].drop_nulls()
    values = values.filter(values > 0)
    horizontal: dict[str, Any] = {"title": axis}
    if scale == "duration" and values.len():
        horizontal = duration_axis(axis, values)
    elif scale == "log":
        horizontal = count_axis(axis, values)
    elif scale == "percent":
        horizontal |= {"tickformat": _PERCENT}
    figure = blank(
        xaxis=horizontal,
        yaxis={"title": f"share of {of}", "tickformat": _PERCENT, "range": [0, 1.03]},
        showlegend=len(names) > 1,
    )
    is_log = scale in ("duration", "log")
    for i, name in enumerate(names):
        part = frame.filter(pl.col(by) == name)
        part = part.filter(pl.col(x) > 0) if is_log else part
        figure.add_scatter(
            x=part[x].to_list(),
            y=part["share"].to_list(),
            name=plain(name, 24),
            mode="lines" if part.height > 1 else "markers",
            line={"width": 1.8, "dash": DASHES[i // 8 % len(DASHES)] if len(names) > 8 else DASHES[i % 2]},
            hovertemplate="%{fullData.name}<br>%{y:.1%} ≤ %{x:,.4g}<extra></extra>",
        )
    return figure


def over_time(
    frame: pl.DataFrame, columns: Mapping[str, str], axis: str, what: str, *, percent: bool = False, at: str = "at"
) -> go.Figure:
    """Return curves over time, one per column (column → name)."""
    figure = blank(
        xaxis={"title": axis},
        yaxis={"title": what, "rangemode": "tozero", **({"tickformat": _PERCENT} if percent else {})},
        showlegend=len(columns) > 1,
        hovermode="x unified",
    )
    for i, (column, name) in enumerate(columns.items()):
        figure.add_scatter(
            x=frame[at].to_list(),
            y=frame[column].to_list(),
            name=plain(name),
            mode="lines" if frame.height > 1 else "markers",
            line={"width": 1.5, "dash": DASHES[i % len(DASHES)]},
            hovertemplate="%{y:.1%}" if percent else "%{y:,.4g}",
        )
    return figure


def boxes(frame: pl.DataFrame, x: str, axis: str, what: str) -> go.Figure:
    """Return one box per row from its quantiles: `p05`, `p25`, `p50`, `p75`, `p95`."""
    figure = blank(xaxis={"title": axis, "dtick": 2}, yaxis={"title": what, "rangemode": "tozero"}, colorway=ONE_COLOUR)
    figure.add_box(
        x=frame[x].to_list(),
        lowerfence=frame["p05"].to_list(),
        q1=frame["p25"].to_list(),
        median=frame["p50"].to_list(),
        q3=frame["p75"].to_list(),
        upperfence=frame["p95"].to_list(),
        whiskerwidth=0.6,
        line={"width": 1.2},
    )
    return figure


def panels(
    frame: pl.DataFrame,
    x: str,
    columns: Mapping[str, str],
    axis: str,
    *,
    tick: int,
    ticks: Sequence[str] = (),
) -> go.Figure:
    """Return one panel per column (column → title), side by side, each a step curve over hours.

    The axis is marked every `tick` hours, with `ticks` in the middle of each such step where they are given.
    """
    figure = make_subplots(1, len(columns), subplot_titles=list(columns.values()), horizontal_spacing=0.07)
    figure.update_layout(layout_of(height=HEIGHT - 60, colorway=ONE_COLOUR, meta={"panels": len(columns)}))
    for i, column in enumerate(columns):
        figure.add_scatter(
            x=[*frame[x], frame[x][-1] + 1],
            y=[*frame[column], frame[column][-1]],
            mode="lines",
            line={"width": 1.8, "shape": "hv"},
            hovertemplate="%{x}: %{y:,.4g}<extra></extra>",
            row=1,
            col=i + 1,
        )
    figure.update_annotations(font_size=12)
    marks = {"tickvals": [tick * i + tick / 2 for i in range(len(ticks))], "ticktext": [name[:3] for name in ticks]}
    figure.update_xaxes(title=axis, **(marks if ticks else {"dtick": tick}))
    figure.update_yaxes(rangemode="tozero", nticks=5)
    return figure


def paired_curves(frame: pl.DataFrame, by: str, columns: Mapping[str, str], axes: Mapping[str, str]) -> go.Figure:
    """Return one panel per group of `by` (group → axis title) with the distribution functions of the columns in it."""
    figure = make_subplots(1, len(axes), subplot_titles=list(axes), horizontal_spacing=0.07)
    # The same colours in every panel.
    colours = list(LIGHT.colours[: len(columns)])
    legend = {"orientation": "h", "x": 0, "y": 1.1, "yanchor": "bottom"}
    margin = {"l": 60, "r": 20, "t": 64, "b": 48}
    layout = layout_of(height=HEIGHT, showlegend=len(columns) > 1, colorway=colours, legend=legend, margin=margin)
    figure.update_layout(layout, meta={"panels": len(axes)})
    for i, (group, axis) in enumerate(axes.items()):
        part = frame.filter(pl.col(by) == group)
        for j, (column, name) in enumerate(columns.items()):
            own = part.filter(pl.col(column).is_not_null())
            figure.add_scatter(
                x=own[column].to_list(),
                y=own["share"].to_list(),
                name=name,
                legendgroup=name,
                showlegend=i == 0 and len(columns) > 1,
                mode="lines",
                line={"width": 1.8, "dash": DASHES[j % len(DASHES)]},
                hovertemplate="%{fullData.name}<br>%{y:.0%} ≤ %{x:,.4g}<extra></extra>",
                row=1,
                col=i + 1,
            )
        figure.update_xaxes(title=axis, row=1, col=i + 1)
    figure.update_annotations(font_size=12)
    figure.update_yaxes(tickformat=_PERCENT, range=[0, 1.03])
    return figure


def forest(frame: pl.DataFrame, axis: str) -> go.Figure:
    """Return effects (s) with their intervals: one row per `level`, one mark per `control` (`estimate`, `low`, `high`)."""
    size, unit = duration_unit(pl.concat([frame[c].cast(pl.Float64) for c in ("estimate", "low", "high")]).drop_nulls())
    frame = frame.with_columns(pl.col("estimate", "low", "high") / size)
    levels = frame["level"].unique(maintain_order=True).to_list()
    controls = frame["control"].unique(maintain_order=True).to_list()
    figure = blank(
        height=120 + 24 * len(levels) * max(len(controls), 1),
        xaxis={"title": f"{axis}, {unit}", "zeroline": False},
        yaxis={"autorange": "reversed", "tickvals": list(range(len(levels))), "ticktext": [plain(v) for v in levels]},
        showlegend=True,
    )
    symbols = ("circle-open", "square", "diamond")
    for i, control in enumerate(controls):
        part = frame.filter((pl.col("control") == control) & pl.col("estimate").is_not_null())
        rows = part.select("level", "estimate", "low", "high").rows()
        figure.add_scatter(
            x=[e for _, e, _, _ in rows],
            y=[levels.index(v) + (i - (len(controls) - 1) / 2) * 0.24 for v, *_ in rows],
            name=f"held fixed: {control}",
            mode="markers",
            marker={"size": 9, "symbol": symbols[i % 3], "line": {"width": 0 if i else 1.5}},
            error_x={
                "type": "data",
                "array": [0 if h is None else h - e for _, e, _, h in rows],
                "arrayminus": [0 if low is None else e - low for _, e, low, _ in rows],
                "thickness": 1.2,
                "width": 3,
            },
            hovertemplate=f"%{{fullData.name}}<br>%{{x:,.4g}} {unit}<extra></extra>",
        )
    figure.add_vline(x=0)
    return figure
