"""Colours and type of the figures, light and dark: Okabe and Ito's colour-blind safe palette around one blue."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from plotly.graph_objects import layout

FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif'


@dataclass(frozen=True)
class Theme:
    """One set of colours; `scale` runs from nothing to most and stays readable without colour."""

    name: str
    text: str
    muted: str
    grid: str
    panel: str
    alarm: str
    colours: tuple[str, ...]
    scale: tuple[str, ...]


LIGHT = Theme(
    "light",
    text="#1f2933",
    muted="#5b6876",
    grid="#e4e8ed",
    panel="#ffffff",
    alarm="#b3430a",
    colours=("#0072b2", "#d98a00", "#008a65", "#b3430a", "#b0578a", "#4aa3dc", "#6b7280", "#7a6a00"),
    scale=("#f3f7fb", "#c5ddee", "#7fb5da", "#2f87c1", "#005a90", "#00304d"),
)
DARK = Theme(
    "dark",
    text="#e3e8ee",
    muted="#9aa7b4",
    grid="#2b333c",
    panel="#171c22",
    alarm="#f58a55",
    colours=("#56b4e9", "#f0b429", "#2fc29a", "#f58a55", "#e39bc4", "#8fc8f5", "#a3adb8", "#d9c94a"),
    scale=("#18222c", "#11415f", "#0f6a9f", "#3a9bd3", "#8fcbf0", "#eaf6fd"),
)
THEMES = (LIGHT, DARK)


def template(theme: Theme) -> layout.Template:
    """Return the theme as a Plotly template; figures carry no colours of their own."""
    from plotly import graph_objects as go

    axis = {
        "gridcolor": theme.grid,
        "linecolor": theme.grid,
        "zerolinecolor": theme.grid,
        "tickcolor": theme.grid,
        "title": {"font": {"color": theme.muted, "size": 12}, "standoff": 10},
        "tickfont": {"color": theme.muted, "size": 11},
        "ticklabelstandoff": 4,
        "automargin": True,
        "separatethousands": True,
    }
    steps = len(theme.scale) - 1
    scale = [[i / steps, colour] for i, colour in enumerate(theme.scale)]
    return go.layout.Template(
        layout={
            "font": {"family": FONT, "size": 12, "color": theme.text},
            # A saved picture needs a ground to stand on; the plot area shows it through.
            "paper_bgcolor": theme.panel,
            "plot_bgcolor": "rgba(0,0,0,0)",
            "colorway": list(theme.colours),
            "xaxis": axis,
            "yaxis": axis,
            "legend": {"font": {"color": theme.text, "size": 11.5}},
            "hoverlabel": {"bgcolor": theme.panel, "bordercolor": theme.muted, "font": {"color": theme.text}},
            "shapedefaults": {"line": {"color": theme.alarm, "width": 1.5, "dash": "dash"}},
            "annotationdefaults": {"font": {"color": theme.muted, "size": 11.5}},
            "modebar": {"color": theme.muted, "activecolor": theme.text, "bgcolor": "rgba(0,0,0,0)"},
        },
        data={
            "heatmap": [
                {"colorscale": scale, "colorbar": {"outlinewidth": 0, "tickfont": {"color": theme.muted, "size": 11}}}
            ],
            "bar": [{"marker": {"line": {"width": 0}}}],
        },
    )
