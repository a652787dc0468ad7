"""Theory, simulation and the trace: the table, wait against load, and the stability of gangs."""

from __future__ import annotations

import polars as pl
from plotly import graph_objects as go

from gputwin.analysis.words import over_or_none
from gputwin.core.units import MINUTE, format_duration, percent
from gputwin.report.axes import duration_axis
from gputwin.report.figures import DASHES, blank, plain
from gputwin.report.page import (
    Bullets,
    Card,
    Cards,
    FigurePart,
    Kind,
    Part,
    Section,
    Statement,
    TablePart,
    Tone,
    number,
)
from gputwin.studies.validation.curve import STABILITY_SERVERS
from gputwin.studies.validation.theory import Figures, Prediction
from gputwin.studies.validation.threeway import ThreeWay

_LEAST_WAIT = 1.0
_NOTES = (
    "The record judged runs from the first to the last thousandth of arrivals; jobs without GPUs are simulated but not "
    "counted. Models that speak of job slots have GPUs over the mean GPUs of a running job of them.",
    "Each simulation drops one assumption of M/M/c: Poisson arrivals are uniform times over the same span, so that the "
    "load is the same in all of them; those that are drawn are means of three seeds.",
    "Peakedness is the variance over the mean of the GPUs that would be in use with unlimited GPUs.",
)


def queueing(result: ThreeWay, curve: pl.DataFrame, stable: tuple[pl.DataFrame, float, float]) -> Section:
    """Return the section of a three-way comparison."""
    parts: list[Part] = [Statement(headline(result), _tone(result)), _tiles(result), _wait_against_load(result, curve)]
    parts += [Bullets(result.verdicts), _three_way(result), _classes(result), _fits(result), _stability(stable)]
    if result.laws:
        parts.append(_laws(result))
    steps = (
        "Size the cluster by simulation, which needs none of these assumptions: "
        f"`gputwin plan TRACE --cluster {result.cluster} --target p95_wait=10m`.",
    )
    question = "Can queueing theory predict how long jobs wait here?"
    return Section("queueing", "Theory, simulation, trace", tuple(parts), _NOTES, question, steps)


_CUT_OFF = 20.0
"""A tail that falls as such a power or a higher one has an end: the longest time a job may run."""
_NEAR = 1.5
"""Factor within which a prediction of theory is of use for planning."""


def _usable(result: ThreeWay) -> list[Prediction]:
    return [p for p in result.predictions if not p.why_not and p.figures.mean_wait is not None]


def _nearest(result: ThreeWay) -> Prediction | None:
    """Return the model whose mean wait is nearest to the simulation's."""
    wait = result.steps[-1].figures.mean_wait or 0.0
    return min(_usable(result), key=lambda p: abs((p.figures.mean_wait or 0.0) - wait), default=None)


def headline(result: ThreeWay) -> str:
    """Return whether theory predicts the mean wait, and whether the simulation does, in two or three sentences."""
    said, trace = _headline(result), result.trace
    if trace is None or _agrees_with_trace(result):
        return said
    return f"{said} Neither explains the trace, whose jobs waited {_wait(trace.mean_wait)}."


def _agrees_with_trace(result: ThreeWay) -> bool:
    """Return whether the simulated mean wait is near the recorded one; True where none is recorded."""
    recorded = None if result.trace is None else result.trace.mean_wait
    simulated = result.steps[-1].figures.mean_wait
    if recorded is None or simulated is None:
        return True
    return 1 / _NEAR <= max(recorded, MINUTE) / max(simulated, MINUTE) <= _NEAR


def _headline(result: ThreeWay) -> str:
    real, near = result.steps[-1].figures.mean_wait, _nearest(result)
    said = f"Simulated on its nodes, jobs wait {_wait(real)} on average."
    if near is None:
        return f"{said} No model of theory applies to these jobs."
    model = f"{near.model}, says {_wait(near.figures.mean_wait)}"
    if _is_within(result, 1.1):
        return f"{said} Theory is close: its nearest model, {model}."
    if _is_within(result, _NEAR):
        return f"{said} Theory is within a factor of {_NEAR:g}: its nearest model, {model}."
    return f"{said} Theory does not predict that: its nearest model, {model}. Plan by simulation here."


def _is_within(result: ThreeWay, factor: float) -> bool:
    """Return whether the nearest model is within this factor, or both say that jobs wait under a second."""
    near, real = _nearest(result), result.steps[-1].figures.mean_wait
    if near is None or real is None:
        return False
    ratio = max(near.figures.mean_wait or 0.0, 1.0) / max(real, 1.0)
    return 1 / factor <= ratio <= factor


def _tone(result: ThreeWay) -> Tone:
    if not _is_within(result, _NEAR):
        return Tone.WARNING
    return Tone.GOOD if _agrees_with_trace(result) else Tone.NEUTRAL


def _tiles(result: ThreeWay) -> Cards:
    real = result.steps[-1].figures
    cards = [Card("Simulated mean wait", _wait(real.mean_wait), over_or_none(real.p95_wait))]
    if (near := _nearest(result)) is not None:
        cards.append(Card("Theory's mean wait", _wait(near.figures.mean_wait), f"{near.model}, the nearest model"))
    if result.trace is not None and result.trace.mean_wait is not None:
        cards.append(Card("Trace's mean wait", _wait(result.trace.mean_wait), "as recorded"))
    if real.utilisation is not None:
        cards.append(Card("GPUs in use", percent(real.utilisation, 1), f"of {result.gpus:,}"))
    return Cards(tuple(cards))


def _wait(seconds: float | None) -> str:
    return "0 s" if seconds is not None and seconds < 1e-3 else format_duration(seconds)


def _cells(figures: Figures) -> tuple[str, ...]:
    return (
        _wait(figures.mean_wait),
        _wait(figures.p95_wait),
        "–" if figures.utilisation is None else percent(figures.utilisation, 1),
        "–" if figures.queue_length is None else f"{figures.queue_length:,.1f}",
    )


def _three_way(result: ThreeWay) -> TablePart:
    rows = [
        ("theory", p.model, *_cells(p.figures), result.error(p.figures), p.why_not or p.assumes)
        for p in result.predictions
    ]
    rows += [
        (
            "simulation",
            r.name,
            *_cells(r.figures),
            result.error(r.figures),
            f"without: {r.dropped}" if r.dropped else "",
        )
        for r in result.steps
    ]
    if result.trace is not None:
        rows.append(("trace", "as it was", *_cells(result.trace), result.error(result.trace), ""))
    kinds = {"by": Kind.TEXT, "what": Kind.TEXT} | dict.fromkeys(
        ("mean wait", "p95 wait", "GPUs in use", "jobs waiting", "error"), Kind.NUMBER
    )
    note = "The error is of the mean wait, against the last simulation (the trace on its nodes)."
    return TablePart("Theory, simulation, trace", {**kinds, "assumes": Kind.TEXT}, tuple(rows), note)


def _wait_against_load(result: ThreeWay, curve: pl.DataFrame) -> FigurePart:
    shown = curve.filter(pl.col("wait").is_finite() & (pl.col("wait") >= _LEAST_WAIT))
    figure = blank(
        height=420,
        xaxis={"title": "offered load / GPUs", "tickformat": ".0%", "range": [0, 1.02]},
        yaxis=duration_axis("mean wait", shown["wait"]) if shown.height else {"title": "mean wait, s"},
        showlegend=True,
    )
    lines = shown.filter(pl.col("kind") == "theory")
    for i, model in enumerate(lines["name"].unique(maintain_order=True)):
        part = lines.filter(pl.col("name") == model)
        figure.add_scatter(
            x=part["load"].to_list(),
            y=part["wait"].to_list(),
            name=plain(model),
            mode="lines",
            line={"width": 1.8, "dash": DASHES[i % len(DASHES)]},
            hovertemplate="%{fullData.name}<br>load %{x:.1%}: %{y:,.4g} s<extra></extra>",
        )
    for kind, symbols in (("simulation", ("circle", "diamond")), ("trace", ("star",))):
        points = shown.filter(pl.col("kind") == kind)
        for name, symbol in zip(points["name"].unique(maintain_order=True), symbols, strict=False):
            _add_points(figure, points.filter(pl.col("name") == name), name, symbol)
    hidden = curve.height - shown.height
    last = curve.filter((pl.col("kind") == "simulation") & pl.col("name").str.starts_with("real")).sort("load")
    caption = (
        "Lines are models, points are simulations of the trace's jobs on one pool of GPUs, with the range over seeds."
    )
    if last.height:
        row = last.row(-1, named=True)
        caption += f" With real arrivals the mean wait is {_wait(row['wait'])} at load {percent(row['load'])}."
    if hidden:
        caption += f" {hidden} points below a second are not drawn."
    return FigurePart("wait-against-load", "Wait against load", figure, caption, curve)


def _add_points(figure: go.Figure, part: pl.DataFrame, name: str, symbol: str) -> None:
    up = (part["high"] - part["wait"]).fill_null(0.0).to_list()
    down = (part["wait"] - part["low"]).fill_null(0.0).to_list()
    figure.add_scatter(
        x=part["load"].to_list(),
        y=part["wait"].to_list(),
        name=plain(name),
        mode="markers",
        marker={"size": 12 if symbol == "star" else 8, "symbol": symbol},
        error_y={"type": "data", "array": up, "arrayminus": down, "thickness": 1.2, "width": 3},
        hovertemplate="%{fullData.name}<br>load %{x:.1%}: %{y:,.4g} s<extra></extra>",
    )


def _classes(result: ThreeWay) -> TablePart:
    rows = []
    for c in result.classes:
        theirs = ("–", "–") if c.trace is None else _cells(c.trace)[:2]
        rows.append((c.name, f"{c.jobs:,}", f"{c.load:,.1f}", *_cells(c.simulation)[:2], *theirs))
    kinds = {"class": Kind.TEXT} | dict.fromkeys(
        ("jobs", "load, GPUs", "mean wait, simulated", "p95, simulated", "mean wait, trace", "p95, trace"),
        Kind.NUMBER,
    )
    note = "In order of arrival theory makes no difference between classes."
    return TablePart("Waits by class", kinds, tuple(rows), note)


def _fits(result: ThreeWay) -> TablePart:
    jobs = result.jobs
    rows = [
        (f.family, f"{f.ks:.3f}", number(f.log_likelihood), f"{f.mean_ratio:.3g}", f"{f.scv_ratio:.3g}")
        for f in jobs.services
    ]
    kinds = {"family": Kind.TEXT} | dict.fromkeys(
        ("KS distance", "log-likelihood per job", "mean / data's", "variation / data's"), Kind.NUMBER
    )
    arrivals = jobs.arrivals
    note = (
        f"Run times: mean {format_duration(jobs.mean_run)}, squared variation {jobs.run_scv:.3g}. Arrivals: gaps of "
        f"squared variation {arrivals.gap_scv:.3g}, dispersion {arrivals.dispersion_at(jobs.mean_run):.3g} at the mean "
        f"run time; peakedness {jobs.peakedness:.3g}."
    )
    if jobs.tail is not None:
        start = format_duration(jobs.tail.start)
        falls = f"The tail of run times falls as a power of {jobs.tail.index:.2f} from {start} on."
        note += f" {falls if jobs.tail.index < _CUT_OFF else f'Run times are cut off at {start}.'}"
    return TablePart("Distributions fitted to run times, nearest first", kinds, tuple(rows), note)


def _stability(stable: tuple[pl.DataFrame, float, float]) -> FigurePart:
    frame, share, load = stable
    figure = blank(
        xaxis={"title": "share of jobs that are gangs", "tickformat": ".0%", "range": [0, 1]},
        yaxis={"title": "largest stable load", "tickformat": ".0%", "range": [0, 1.04]},
        showlegend=True,
    )
    for i, size in enumerate(frame["size"].unique(maintain_order=True)):
        part = frame.filter(pl.col("size") == size)
        figure.add_scatter(
            x=part["share"].to_list(),
            y=part["load"].to_list(),
            name=f"gangs of {size}",
            mode="lines",
            line={"width": 1.6, "dash": DASHES[i % len(DASHES)]},
            hovertemplate="%{x:.0%} gangs: stable up to %{y:.1%}<extra>%{fullData.name}</extra>",
        )
    figure.add_scatter(
        x=[share],
        y=[load],
        name="this trace's sizes",
        mode="markers",
        marker={"size": 12, "symbol": "star"},
        hovertemplate="%{x:.1%} gangs: stable up to %{y:.1%}<extra>%{fullData.name}</extra>",
    )
    caption = (
        f"Above a line the queue grows without end in strict order of arrival, on a pool of {STABILITY_SERVERS} GPUs "
        f"with equal exponential run times. With this trace's sizes ({percent(share, 1)} of jobs take "
        "more than one GPU) the "
        f"limit is {percent(load, 1)}."
    )
    return FigurePart("stability", "The load gangs can bring", figure, caption, frame)


def _laws(result: ThreeWay) -> TablePart:
    rows = tuple(
        (x.name, x.says, f"{x.measured:.4g}", f"{x.computed:.4g}", percent(x.difference, 1, signed=True))
        for x in result.laws
    )
    kinds = {"law": Kind.TEXT, "says": Kind.TEXT} | dict.fromkeys(("measured", "by the law", "difference"), Kind.NUMBER)
    note = "A difference comes from jobs that ran when the record began or ended."
    return TablePart("Operational laws on the trace itself", kinds, rows, note)
