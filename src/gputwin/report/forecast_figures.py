"""Figures of a forecast: history and fan, skill by horizon, calibration, learning curves."""

from __future__ import annotations

from typing import Any

import polars as pl
from plotly import graph_objects as go
from plotly.subplots import make_subplots

from gputwin.report.figures import blank, layout_of, plain
from gputwin.report.theme import LIGHT

_FAN = "rgba(0,114,178,{})"
_SYMBOLS = ("circle", "diamond", "square", "triangle-up", "cross", "x", "star", "hexagon")


def fan(history: pl.DataFrame, ahead: pl.DataFrame, axis: str, pairs: list[tuple[str, str]]) -> go.Figure:
    """Return one panel per series: the latest history and the forecast with its bands (`at`, `series`, `value`)."""
    names = ahead["series"].unique(maintain_order=True).to_list()
    units = dict(ahead.select("series", "unit").unique().iter_rows()) if "unit" in ahead.columns else {}
    titles = [f"{name} ({units[name]})" if units.get(name) else name for name in names]
    columns = min(2, len(names))
    rows = -(-len(names) // columns)
    figure = make_subplots(rows, columns, subplot_titles=[plain(n, 34) for n in titles], vertical_spacing=0.34 / rows)
    figure.update_layout(layout_of(height=80 + 230 * rows, hovermode="x", meta={"panels": len(names)}))
    figure.update_annotations(font_size=12)
    for i, name in enumerate(names):
        where: dict[str, Any] = {"row": i // columns + 1, "col": i % columns + 1}
        known, made = history.filter(series=name), ahead.filter(series=name)
        for k, (low, high) in enumerate(pairs):
            x = made["at"].to_list()
            figure.add_scatter(
                x=[*x, *reversed(x)],
                y=[*made[high].to_list(), *reversed(made[low].to_list())],
                fill="toself",
                fillcolor=_FAN.format(0.14 + 0.1 * k),
                line={"width": 0},
                mode="lines",
                hoverinfo="skip",
                **where,
            )
        figure.add_scatter(
            x=known["at"].to_list(),
            y=known["value"].to_list(),
            mode="lines",
            line={"width": 1.2, "color": LIGHT.colours[6]},
            hovertemplate="%{y:,.4g}<extra>history</extra>",
            **where,
        )
        figure.add_scatter(
            x=made["at"].to_list(),
            y=made["mean"].to_list(),
            mode="lines" if made.height > 1 else "markers",
            line={"width": 2, "color": LIGHT.colours[0]},
            hovertemplate="%{y:,.4g}<extra>forecast</extra>",
            **where,
        )
        figure.update_xaxes(title=axis if i // columns == rows - 1 else None, **where)
    return figure


def skill_by_horizon(frame: pl.DataFrame) -> go.Figure:
    """Return skill against the last value by model (`label` = series and horizon), with 95 % bars for `auto`."""
    labels = frame["label"].unique(maintain_order=True).to_list()
    figure = blank(
        height=120 + 26 * len(labels),
        margin={"l": 60, "r": 20, "t": 60, "b": 48},
        xaxis={"title": "skill against the last value (RMSE), 0 = as good", "tickformat": ".0%", "zeroline": True},
        yaxis={"type": "category", "autorange": "reversed"},
        showlegend=True,
    )
    for i, model in enumerate(frame["model"].unique(maintain_order=True)):
        part = frame.filter(model=model)
        bars = None
        if model == "auto":
            bars = {
                "type": "data",
                "symmetric": False,
                "array": (part["high"] - part["skill"]).to_list(),
                "arrayminus": (part["skill"] - part["low"]).to_list(),
                "thickness": 1.2,
            }
        figure.add_scatter(
            x=part["skill"].to_list(),
            y=[plain(label) for label in part["label"]],
            name=plain(model),
            mode="markers",
            marker={"size": 11 if model == "auto" else 7, "symbol": _SYMBOLS[i % len(_SYMBOLS)], "opacity": 0.85},
            error_x=bars,
            hovertemplate="%{y}, " + plain(model) + ": %{x:.1%}<extra></extra>",
        )
    figure.add_vline(x=0)
    return figure


def calibration(frame: pl.DataFrame) -> go.Figure:
    """Return, per series and horizon (`label`), the share of values below each quantile against its level."""
    figure = blank(
        xaxis={"title": "quantile promised", "tickformat": ".0%", "range": [0, 1]},
        yaxis={"title": "share of values at or below", "tickformat": ".0%", "range": [0, 1.02]},
        showlegend=True,
        height=380,
    )
    figure.add_scatter(x=[0, 1], y=[0, 1], mode="lines", line={"dash": "dash", "width": 1}, showlegend=False)
    for label in frame["label"].unique(maintain_order=True):
        part = frame.filter(label=label)
        figure.add_scatter(
            x=part["level"].to_list(),
            y=part["share"].to_list(),
            name=plain(label),
            mode="lines+markers",
            line={"width": 1.4},
            marker={"size": 5},
            hovertemplate="%{x:.0%} promised: %{y:.1%}<extra>" + plain(label) + "</extra>",
        )
    return figure


def learning_curves(frame: pl.DataFrame) -> go.Figure:
    """Return training and validation loss per epoch, one panel per network (`model`, `epoch`, `part`, `loss`)."""
    models = frame["model"].unique(maintain_order=True).to_list()
    columns = min(3, len(models))
    rows = -(-len(models) // columns)
    figure = make_subplots(rows, columns, subplot_titles=[plain(m) for m in models], vertical_spacing=0.34 / rows)
    figure.update_layout(layout_of(height=80 + 200 * rows, showlegend=True, meta={"panels": len(models)}))
    for i, model in enumerate(models):
        for part, dash, colour in (("training", "solid", 0), ("validation", "dash", 1)):
            curve = frame.filter(model=model, part=part)
            figure.add_scatter(
                x=curve["epoch"].to_list(),
                y=curve["loss"].to_list(),
                name=part,
                legendgroup=part,
                showlegend=i == 0,
                mode="lines+markers",
                line={"width": 1.6, "dash": dash, "color": LIGHT.colours[colour]},
                marker={"size": 4},
                row=i // columns + 1,
                col=i % columns + 1,
            )
        figure.update_xaxes(
            title="epoch" if i // columns == rows - 1 else None, row=i // columns + 1, col=i % columns + 1
        )
    return figure
