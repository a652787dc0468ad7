"""Charts of pairs: correlations, and amounts by row and column."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from plotly import graph_objects as go

from gputwin.report.figures import blank, plain


def matrix(
    names: Sequence[str], values: Mapping[tuple[str, str], float], what: str, words: Callable[[str], str]
) -> go.Figure:
    """Return a matrix of correlations between −1 and 1; `words` makes a label of a name."""
    shown = [plain(words(n), 26) for n in names]
    z = [[1.0 if a == b else values.get((a, b), values.get((b, a))) for b in names] for a in names]
    figure = blank(
        height=150 + 30 * len(names),
        xaxis={"type": "category", "showgrid": False, "tickangle": -35},
        yaxis={"type": "category", "autorange": "reversed", "showgrid": False},
    )
    figure.add_heatmap(
        z=z,
        x=shown,
        y=shown,
        zmin=-1,
        zmax=1,
        # Two hues that read apart for the colour-blind, grey between.
        colorscale=[[0, "#b3430a"], [0.25, "#eab08c"], [0.5, "#dde2e7"], [0.75, "#8fbfe0"], [1, "#0072b2"]],
        text=[[_correlation(v) for v in row] for row in z],
        texttemplate="%{text}",
        xgap=1,
        ygap=1,
        colorbar={"title": {"text": what, "side": "right"}, "thickness": 12},
        hovertemplate="%{x} with %{y}: %{z:.2f}<extra></extra>",
    )
    return figure


def amounts(
    rows: Sequence[str], columns: Sequence[str], values: Mapping[tuple[str, str], float], what: str
) -> go.Figure:
    """Return amounts by row and column, darker for more, with their numbers; nothing where a pair has none."""
    z = [[values.get((row, column)) for column in columns] for row in rows]
    figure = blank(
        height=180 + 28 * len(rows),
        xaxis={"type": "category", "showgrid": False, "tickangle": -35, "automargin": True},
        yaxis={"type": "category", "autorange": "reversed", "showgrid": False, "automargin": True},
    )
    figure.add_heatmap(
        z=z,
        x=[plain(name, 20) for name in columns],
        y=[plain(name, 20) for name in rows],
        zmin=0,
        colorscale=[[0, "#d7e6f2"], [0.3, "#a9cbe3"], [1, "#4f94c4"]],
        text=[[_short(v) for v in row] for row in z],
        texttemplate="%{text}",
        textfont={"color": "#10202e"},
        xgap=1,
        ygap=1,
        showscale=False,
        hovertemplate="%{y} waits for %{x}: %{z:,.1f} " + what + "<extra></extra>",
    )
    return figure


def _correlation(value: float | None) -> str:
    """Return a correlation with its sign; what rounds to zero has none."""
    if value is None:
        return ""
    return f"{value:+.2f}" if round(value, 2) else "0.00"


def _short(value: float | None) -> str:
    """Return an amount in few signs: 12k for 12,345."""
    if value is None:
        return ""
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if value >= 10 * size:
            return f"{value / size:,.0f}{letter}"
    return f"{value:,.0f}"
