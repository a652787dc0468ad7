"""The capacity plan: the answer, the curve of the target's figure against capacity, and what else could be done."""

from __future__ import annotations

import math

import polars as pl

from gputwin.core.units import format_duration, percent, short_duration
from gputwin.optimization.capacity.evaluate import describe_points
from gputwin.optimization.capacity.plan import Plan
from gputwin.optimization.capacity.verdict import sentences
from gputwin.report.axes import duration_axis, duration_unit
from gputwin.report.figures import blank
from gputwin.report.page import Bullets, Card, Cards, FigurePart, Kind, Part, Section, Statement, TablePart, Tone

_NOTES = (
    "Capacities keep the cluster's mix of node types: a cluster of one node more is the same and one node more. Every point "
    "replays the whole trace; its interval is over its simulated days drawn with replacement, the same for every capacity.",
    "Waits do not fall with every node added, so the plan is not the least size that happens to meet the target. It is "
    "safe: the record meets the target on it and on every larger size tried, and so does the stated share of records made "
    "of its days (of equal parts where it is short) drawn with replacement, each simulated whole.",
    "What a drawn record would need is read from the record's own curve: one that waits on s nodes as the record does on n "
    "needs s²/n, s being the size from which on the record meets the target.",
    "Jobs that never run count as waiting without end.",
    "How long the cluster lasts is by square-root staffing: capacity = load + β·√load, with β from the plan.",
)
_FEW_POINTS = 3
_MOST_TICKS = 12
"""Numbers of nodes that all have a label on the axis, also on a phone."""


def capacity(plan: Plan, rules: str = "") -> Section:
    """Return the section of a capacity plan, found by simulating under `rules`."""
    tone = Tone.WARNING if plan.answer is None or (plan.headroom or 0.0) < 0 else Tone.GOOD
    parts: list[Part] = [Statement(headline(plan), tone)]
    if plan.answer is not None:
        parts.append(_cards(plan))
    parts += [_curve(plan), Bullets((*sentences(plan), *([f"Rules: {rules}."] if rules else ())))]
    if plan.answer is not None:
        parts.append(nodes_table(plan))
    if plan.what_ifs:
        parts.append(what_ifs_table(plan))
    question = f"How many nodes keep {target_words(plan)}?"
    return Section("capacity", "Capacity plan", tuple(parts), _NOTES, question, _next_steps(plan))


def target_words(plan: Plan) -> str:
    """Return the target as people say it: "p95 wait under 10 min"."""
    return f"{plan.target.words} under {short_duration(plan.target.seconds)}"


def headline(plan: Plan) -> str:
    """Return the answer in one or two sentences: the size to be sure with, the size the record needs, what is missing."""
    if plan.record is None or plan.answer is None or plan.luck is None:
        return sentences(plan)[0]
    answer, have = plan.answer, plan.cluster.node_count
    text = f"Take {answer.nodes:,} nodes ({answer.gpus:,} GPUs) to be {percent(plan.luck.confidence)} sure of "
    text += target_words(plan)
    text += "" if plan.growth == 1 else f" at {plan.growth:g} times the demand"
    text += (
        f"; on the trace as recorded {plan.record.nodes:,} nodes are enough."
        if plan.record.nodes < answer.nodes
        else "."
    )
    if have >= answer.nodes:
        return f"{text} The cluster has {have:,}: {have - answer.nodes:,} to spare."
    return f"{text} The cluster has {have:,}: {answer.nodes - have:,} too few."


def _next_steps(plan: Plan) -> tuple[str, ...]:
    if plan.answer is None:
        return (
            "Loosen the target, or give nodes that hold the largest jobs: `gputwin check TRACE --cluster CLUSTER`.",
        )
    steps = ["See how much growth costs: `gputwin plan … --growth 1.3`."]
    if not plan.what_ifs:
        steps.insert(0, "See whether other rules need fewer nodes: `gputwin plan … --what-if`.")
    return tuple(steps)


def _cards(plan: Plan) -> Cards:
    assert plan.answer is not None
    assert plan.luck is not None
    assert plan.record is not None
    luck = plan.luck
    cards = [
        Card(f"Nodes to be {percent(luck.confidence)} sure", f"{plan.answer.nodes:,}", f"{plan.answer.gpus:,} GPUs"),
        Card(
            "Nodes for the trace as recorded",
            f"{plan.record.nodes:,}",
            f"others like it: {luck.low:,} to {luck.high:,}",
        ),
        Card(
            plan.target.words,
            format_duration(plan.answer.value),
            f"target {short_duration(plan.target.seconds)}",
        ),
        Card(
            "Nodes too few" if plan.cluster.node_count < plan.answer.nodes else "Nodes to spare",
            f"{abs(plan.cluster.node_count - plan.answer.nodes):,}",
            f"the cluster has {plan.cluster.node_count:,}",
        ),
        Card("GPUs in use", percent(plan.answer.utilisation, 1), "of those planned"),
    ]
    if plan.cost_per_hour is not None:
        cards.append(Card("Cost", f"{plan.cost_per_hour:,.2f} an hour"))
    return Cards(tuple(cards))


def _curve(plan: Plan) -> FigurePart:
    frame = pl.DataFrame(describe_points(plan.points, plan.target), infer_schema_length=None)
    finite = frame.filter(pl.col("value_seconds").is_not_null())
    known = finite.filter(pl.col("value_seconds") > 0)
    # Where nearly all waits are zero, an axis with a zero shows them.
    is_log = known.height >= _FEW_POINTS
    known = known if is_log else finite
    values = pl.concat([known["value_seconds"].cast(pl.Float64), pl.Series([max(plan.target.seconds, 1.0)])])
    size, unit = (1.0, "") if is_log else duration_unit(values)
    sizes = frame["nodes"].to_list()
    figure = blank(
        height=380,
        xaxis={"title": "nodes", **({"dtick": 1} if max(sizes) - min(sizes) < _MOST_TICKS else {})},
        yaxis=duration_axis(plan.target.words, values)
        if is_log
        else {"title": f"{plan.target.words}, {unit}", "rangemode": "tozero"},
        showlegend=False,
    )
    low = pl.col("low_seconds").cast(pl.Float64)
    least = pl.max_horizontal(low, pl.col("value_seconds") * 1e-2) if is_log else low
    up = known.select(
        (pl.col("high_seconds").cast(pl.Float64) - pl.col("value_seconds")).fill_null(0.0).clip(0.0) / size
    )
    down = known.select((pl.col("value_seconds") - least).fill_null(0.0).clip(0.0) / size)
    figure.add_scatter(
        x=known["nodes"].to_list(),
        y=(known["value_seconds"].cast(pl.Float64) / size).to_list(),
        mode="lines+markers",
        line={"width": 1.2},
        marker={"size": 8},
        error_y={
            "type": "data",
            "array": up.to_series().to_list(),
            "arrayminus": down.to_series().to_list(),
            "thickness": 1.2,
            "width": 3,
        },
        hovertemplate=f"%{{x:,}} nodes: %{{y:,.4g}} {unit or 's'}<extra></extra>",
    )
    if plan.target.seconds > 0:
        figure.add_hline(y=plan.target.seconds / size)
        # A label on a logarithmic axis is placed by the power of ten.
        figure.add_annotation(
            text="target",
            x=0,
            xref="paper",
            xanchor="left",
            y=math.log10(plan.target.seconds) if is_log else plan.target.seconds / size,
            yanchor="bottom",
            showarrow=False,
        )
    if plan.luck is not None:
        figure.add_vrect(x0=plan.luck.low, x1=plan.luck.high, opacity=0.12, line_width=0, fillcolor="#888888")
    if plan.answer is not None:
        figure.add_vline(x=plan.answer.nodes, annotation_text=f"{plan.answer.nodes:,} nodes")
    absent = frame.height - known.height
    caption = f"{frame.height} capacities simulated; theory alone would have taken {plan.theory_nodes:,} nodes."
    if plan.luck is not None:
        caption += (
            f" The band, {plan.luck.low:,} to {plan.luck.high:,} nodes, is what 90 % of records like it would need."
        )
    if absent:
        why = "no wait, or with jobs that never run," if is_log else "jobs that never run"
        caption += f" {absent} with {why} have no place on this axis."
    return FigurePart("capacity-curve", f"{plan.target.words} against capacity", figure, caption, frame)


def nodes_table(plan: Plan) -> TablePart:
    """Return the nodes there are and the nodes planned, by node type."""
    rows = tuple(
        (g.name, g.gpu_model or "–", f"{g.count:,}", f"{plan.nodes_by_type[g.name]:,}") for g in plan.cluster.groups
    )
    kinds = {"node type": Kind.CODE, "GPU model": Kind.TEXT, "nodes now": Kind.NUMBER, "nodes planned": Kind.NUMBER}
    return TablePart("The plan by node type", kinds, rows)


def what_ifs_table(plan: Plan) -> TablePart:
    """Return what other rules and faster GPUs would do on the planned nodes."""
    rows = tuple(
        (
            x.name,
            x.what,
            "never" if x.to_json()["value_seconds"] is None else format_duration(x.value),
            "–" if x.change is None else percent(x.change, 1, signed=True),
        )
        for x in plan.what_ifs
    )
    kinds = {"what if": Kind.TEXT, "what": Kind.TEXT, plan.target.words: Kind.NUMBER, "change": Kind.NUMBER}
    return TablePart("What if, on the planned nodes", kinds, rows)
