"""A tuning study as a page: the chosen configuration, regret, the Pareto front, the A/B test."""

from __future__ import annotations

import json
import math
from pathlib import Path

import polars as pl

from gputwin.core.atomic import atomic_file
from gputwin.core.units import percent
from gputwin.optimization.tuning.study import Tuned
from gputwin.report.figures import blank, plain
from gputwin.report.html import render
from gputwin.report.page import Card, Cards, FigurePart, Kind, Part, Section, Statement, TablePart, Tone
from gputwin.report.sections.method import method

STORE_FILE, DATA_FILE, PAGE_FILE = "simulations.jsonl", "tuning.json", "tuning.html"
_NOTES = (
    "Losses are relative to the present configuration on the same window: 1 is as good, less is better. Tuning sees "
    "only the first windows; the A/B test uses only held-out ones, the same jobs for both, and its interval is valid "
    "at every look.",
    "Regret is the loss above always simulating the best configuration, by the losses estimated at the end.",
)

_MOST_BARS = 12
"""Configurations in the figure of losses; the table has all."""


def tuning_section(result: Tuned) -> Section:
    """Return the section of a tuning study."""
    names = result.study.names
    test = result.test
    tone = Tone.GOOD if test.verdict == "adopt" else Tone.NEUTRAL
    text = headline(result)
    parts: list[Part] = [
        Statement(text, tone),
        Cards(
            (
                Card("Simulations", f"{result.simulations:,}", f"a full sweep takes {result.full_sweep:,}"),
                Card("Loss while tuning", loss_text(result, result.chosen), "present configuration = 1"),
                Card("Windows tuning never saw", str(test.pairs), test.verdict),
            )
        ),
        _losses(result, names),
        _regret(result),
    ]
    if len(result.study.objectives) > 1:
        parts.append(_pareto(result, names))
    ranked = sorted(range(len(names)), key=lambda i: result.expected[i])
    rows = tuple(
        (names[i], str(len(result.scores[i])), loss_text(result, i), "yes" if i in result.front else "") for i in ranked
    )
    kinds = {
        "configuration": Kind.CODE,
        "windows": Kind.NUMBER,
        "mean loss": Kind.NUMBER,
        "on the Pareto front": Kind.TEXT,
    }
    parts.append(TablePart("Configurations", kinds, rows))
    steps = {
        "adopt": (f"Use {names[result.chosen]}, and tune again when the workload changes.",),
        "reject": ("Keep the present configuration.",),
    }.get(test.verdict, ("Give the A/B test more held-out windows (`held_out` in the study), or keep what there is.",))
    question = "Which configuration should be used?"
    conclusion = (
        f"{len(names)} configurations, ranked by their loss while tuning; {names[ranked[0]]} is expected to lose least."
    )
    return Section("tuning", "Tuning", tuple(parts), _NOTES, question, steps, conclusion=conclusion)


def loss_text(result: Tuned, arm: int) -> str:
    """Return the mean loss of a configuration on the windows it was run on."""
    mean = result.mean_loss(arm)
    return "–" if mean is None else f"{mean:.3f}"


def headline(result: Tuned) -> str:
    """Return the chosen configuration and whether it is proven better, in two sentences."""
    test, name = result.test, result.study.names[result.chosen]
    interval = "too few windows for an interval"
    if math.isfinite(test.high):
        interval = f"95 %: {interval_text(test.low, test.high)}"
    change = (
        f"{percent(abs(test.difference), 1)} {'less' if test.difference < 0 else 'more'} loss than the "
        f"present configuration ({interval})"
    )
    verdict = {"adopt": f"Adopt {name}", "reject": f"Keep the present configuration, not {name}"}.get(
        test.verdict, f"Not decided: {name} looks best"
    )
    return f"{verdict}: on {test.pairs} windows that tuning never saw it has {change}."


def interval_text(low: float, high: float) -> str:
    """Return the interval of a difference in words: less, more, or from less to more."""
    if high < 0:
        return f"{percent(-high, 1)} to {percent(-low, 1)} less"
    if low > 0:
        return f"{percent(low, 1)} to {percent(high, 1)} more"
    return f"{percent(-low, 1)} less to {percent(high, 1)} more"


def _losses(result: Tuned, names: list[str]) -> FigurePart:
    """Return the mean loss of the best configurations while tuning, as bars; the present configuration is at 1."""
    seen = [(i, loss) for i in range(len(names)) if (loss := result.mean_loss(i)) is not None]
    best = sorted(seen, key=lambda pair: pair[1])[:_MOST_BARS]
    frame = pl.DataFrame(
        {
            "configuration": [names[i] for i, _ in best],
            "mean_loss": [loss for _, loss in best],
            "windows": [len(result.scores[i]) for i, _ in best],
        }
    )
    figure = blank(height=120 + 26 * frame.height, xaxis={"title": "mean loss (present = 1)", "rangemode": "tozero"})
    figure.add_bar(
        x=frame["mean_loss"].to_list(),
        y=[plain(name, 60) for name in frame["configuration"]],
        customdata=frame["windows"].to_list(),
        orientation="h",
        hovertemplate="%{y}: %{x:.3f} on %{customdata} windows<extra></extra>",
    )
    figure.update_yaxes(autorange="reversed", type="category")
    figure.update_layout(showlegend=False)
    figure.add_vline(x=1.0, annotation_text="present")
    caption = (
        "The loss weighs the objectives, each relative to the present configuration on the same window; shorter is better. "
        "The shortest bar is partly luck, so the verdict comes from windows that tuning never saw."
    )
    return FigurePart("tuning-losses", "Loss of each configuration while tuning", figure, caption, frame)


def _regret(result: Tuned) -> FigurePart:
    frame = pl.DataFrame({"simulation": list(range(1, len(result.regret) + 1)), "regret": list(result.regret)})
    figure = blank(xaxis={"title": "simulations"}, yaxis={"title": "cumulative regret", "rangemode": "tozero"})
    figure.add_scatter(x=frame["simulation"].to_list(), y=frame["regret"].to_list(), mode="lines")
    caption = (
        f"Loss beyond the best configuration's, added up over the simulations of the algorithm {result.study.algorithm}. A "
        "curve that flattens has found the best configurations."
    )
    return FigurePart("tuning-regret", "Regret", figure, caption, frame)


def _pareto(result: Tuned, names: list[str]) -> FigurePart:
    first, second = list(result.study.objectives)[:2]
    seen = [i for i, s in enumerate(result.scores) if s]
    frame = pl.DataFrame(
        {
            "configuration": [names[i] for i in seen],
            first: [result.objectives[i][0] for i in seen],
            second: [result.objectives[i][1] for i in seen],
            "is_on_front": [i in result.front for i in seen],
        }
    )
    figure = blank(
        xaxis={"title": f"{_plain(first)} (present = 1)"},
        yaxis={"title": f"{_plain(second)} (present = 1)"},
        showlegend=True,
    )
    for on_front, label in ((True, "on the front"), (False, "beaten")):
        part = frame.filter(pl.col("is_on_front") == on_front).sort(first)
        figure.add_scatter(
            x=part[first].to_list(),
            y=part[second].to_list(),
            mode="lines+markers" if on_front else "markers",
            name=label,
            text=[plain(n, 60) for n in part["configuration"]],
            hovertemplate="%{text}<br>%{x:.3f}, %{y:.3f}<extra></extra>",
        )
    caption = "Each point is a configuration; no other is better in every objective than one on the front."
    return FigurePart("tuning-pareto", "Pareto front", figure, caption, frame)


def write_tuning_report(path: Path, result: Tuned) -> Path:
    """Write the study's figures and page into the directory, beside its simulations, and return the path of the page."""
    section = tuning_section(result)
    with atomic_file(path / DATA_FILE) as fresh:
        fresh.write_text(json.dumps(_finite(result.to_json()), indent=1) + "\n", encoding="utf-8")
    with atomic_file(path / PAGE_FILE) as fresh:
        fresh.write_bytes(render("Tuning", (section, method([section]))))
    return path / PAGE_FILE


def _finite(value: object) -> object:
    if isinstance(value, dict):
        return {k: _finite(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_finite(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _plain(objective: str) -> str:
    """Return an objective as people say it: mean_wait is mean wait."""
    return objective.replace("_", " ")
