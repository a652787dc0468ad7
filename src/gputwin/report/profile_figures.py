"""Figures of job classes and duration models; colours come from the template, as in `gputwin.report.figures`."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap

import numpy as np
import polars as pl
from plotly import graph_objects as go

from gputwin.core.units import format_duration
from gputwin.profiling.words import in_words
from gputwin.report.axes import duration_unit
from gputwin.report.figures import DASHES, ONE_COLOUR, bars, blank, plain

_MOST_SHOWN = 8
_SQUARE = 400
_ROOM = 1.6
"""How far an axis goes beyond its longest bar, so that a duration fits beside it."""
_FACTORS = np.exp(np.linspace(0.0, np.log(20.0), 80))


def class_map(frame: pl.DataFrame, names: Sequence[str]) -> go.Figure:
    """Return tasks as points (`x`, `y`, `class`), the largest classes each on their own."""
    figure = blank(height=460, xaxis={"title": "first direction"}, yaxis={"title": "second direction"})
    sizes = frame["class"].value_counts(sort=True)["class"].to_list()
    shown = [name for name in sizes if name in names][:_MOST_SHOWN]
    rest = frame.filter(~pl.col("class").is_in(shown))
    for name, part in [("all others", rest), *((n, frame.filter(pl.col("class") == n)) for n in shown)]:
        if part.height:
            figure.add_scatter(
                x=part["x"].round(3).to_list(),
                y=part["y"].round(3).to_list(),
                name="<br>".join(plain(line) for line in wrap(name, 38)),
                mode="markers",
                marker={"size": 5, "opacity": 0.25 if name == "all others" else 0.75},
                hovertemplate=plain(name) + "<extra></extra>",
            )
    figure.update_layout(showlegend=True, legend={"orientation": "v", "x": 1.02, "y": 1, "yanchor": "top"})
    return figure


def error_curves(frame: pl.DataFrame) -> pl.DataFrame:
    """Return, by model, the share of jobs off by at most each factor, from `ratio` of prediction to truth."""
    parts = []
    for name in frame["model"].unique(maintain_order=True):
        ratio = frame.filter(pl.col("model") == name)["ratio"].to_numpy()
        off = np.sort(np.maximum(ratio, 1.0 / ratio))
        share = np.searchsorted(off, _FACTORS, side="right") / off.size
        parts.append(pl.DataFrame({"model": [name] * _FACTORS.size, "factor": _FACTORS, "share": share}))
    return pl.concat(parts)


def error_cdf(frame: pl.DataFrame) -> go.Figure:
    """Return the curves of `error_curves`."""
    figure = blank(
        height=_SQUARE,
        xaxis={"title": "off by at most this factor", "type": "log", "tickvals": [1, 1.25, 2, 5, 10, 20]},
        yaxis={"title": "share of jobs", "tickformat": ".0%", "range": [0, 1]},
    )
    for i, name in enumerate(frame["model"].unique(maintain_order=True)):
        part = frame.filter(pl.col("model") == name)
        figure.add_scatter(
            x=part["factor"].to_list(),
            y=part["share"].to_list(),
            name=plain(name),
            mode="lines",
            line={"width": 2, "dash": DASHES[i % len(DASHES)]},
            hovertemplate="%{y:.1%} within × %{x:.2f}",
        )
    figure.add_vline(x=2)
    figure.update_layout(showlegend=True)
    return figure


def calibration(frame: pl.DataFrame) -> go.Figure:
    """Return observed shares against promised levels (`level`, `observed`)."""
    figure = blank(
        height=_SQUARE,
        xaxis={"title": "promised", "tickformat": ".0%", "range": [0, 1]},
        yaxis={"title": "observed", "tickformat": ".0%", "range": [0, 1]},
        colorway=ONE_COLOUR,
    )
    figure.add_shape(type="line", x0=0, y0=0, x1=1, y1=1)
    figure.add_scatter(
        x=frame["level"].to_list(),
        y=frame["observed"].to_list(),
        mode="lines+markers",
        marker={"size": 9},
        hovertemplate="promised %{x:.0%}, observed %{y:.1%}<extra></extra>",
    )
    return figure


def importance(frame: pl.DataFrame) -> go.Figure:
    """Return mean effects as bars (`reason`, `factor`)."""
    figure = blank(
        height=90 + 26 * max(frame.height, 1),
        xaxis={"title": "typical effect on the prediction, factor", "rangemode": "tozero"},
        yaxis={"type": "category", "autorange": "reversed"},
        colorway=ONE_COLOUR,
    )
    figure.add_bar(
        x=[f - 1.0 for f in frame["factor"]],
        base=1.0,
        y=[plain(in_words(str(r)), 48) for r in frame["reason"]],
        orientation="h",
        customdata=frame["factor"].to_list(),
        hovertemplate="%{y}: × %{customdata:.2f}<extra></extra>",
    )
    figure.update_xaxes(range=[1.0, max([1.1, *frame["factor"].to_list()]) * 1.05])
    return figure


def waits(frame: pl.DataFrame) -> go.Figure:
    """Return mean waits as bars (`rule`, `mean_wait_seconds`)."""
    seconds = frame["mean_wait_seconds"]
    size, unit = duration_unit(seconds)
    figure = bars(frame["rule"], seconds / size, f"mean wait, {unit}", "%{y}: %{text}")
    figure.data[0].text = [format_duration(value) for value in seconds]
    # Durations beside bars are longer than numbers.
    figure.update_xaxes(range=[0, _ROOM * float((seconds / size).max() or 1.0)])  # type: ignore[arg-type]
    return figure
