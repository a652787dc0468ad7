"""A placement: nodes as filled bars per resource, what each method found against the bound."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from plotly import graph_objects as go
from plotly.subplots import make_subplots

from gputwin.analysis.topic import Remark
from gputwin.analysis.words import share
from gputwin.core.units import percent
from gputwin.optimization.placement.demand import UNITS
from gputwin.optimization.placement.problem import PlacementResult, allocation
from gputwin.report.figures import ONE_COLOUR, blank, layout_of, plain
from gputwin.report.page import (
    Card,
    Cards,
    FigurePart,
    Findings,
    Kind,
    Part,
    Section,
    Statement,
    TablePart,
    Tone,
)

_BARS = 120
_MOST_REASONS = 4
"""Reasons why there is no placement that are put in words."""
_NEAR = 0.01
"""Gap up to which a placement is as good as the best."""
RESOURCE_WORDS = {
    "gpu_milli": "GPUs",
    "cpu_milli": "CPU",
    "memory_mib": "memory",
    "disk_mib": "disk",
    "rdma_percent": "RDMA",
}
_SHOWN = {
    UNITS["cost"]: (1_000_000, "price per hour"),
    UNITS["unallocated"]: (1_000_000, "times the demand, added up over resources"),
    UNITS["demand"]: (10_000, "% of the demand not placed"),
}
"""What the whole numbers of an objective are divided by to be read, and what they are then."""
_NOTES = (
    "The lower bound is a number of nodes (or cost) no placement can be below: from the linear relaxation over all "
    "patterns, computed in whole numbers. The gap is the placement's distance from it; 0 means proven optimal.",
    "Node types are the cluster's. Where a trace publishes no nodes they are assumed and named so.",
)
_ASSUMED = "The trace publishes no nodes, so the sizes of nodes are assumed; give yours with --cluster."


def placement_plan(result: PlacementResult, *, are_nodes_assumed: bool = False) -> Section:
    """Return the section of a placement."""
    text, tone = verdict(result), _tone(result)
    if are_nodes_assumed:
        # The figure is as good as the guess: no good news.
        text, tone = f"{text} The sizes of the nodes are assumed.", Tone.NEUTRAL if tone == Tone.GOOD else tone
    parts: list[Part] = [Statement(text, tone)]
    if are_nodes_assumed:
        parts.append(Findings((Remark(_ASSUMED, is_warning=True),)))
    if result.packing is not None:
        parts += [_cards(result), _shares(result), _bars(result)]
    if result.attempts:
        parts += [_methods(result)]
    steps = (
        "Place what is expected instead of what was there: `gputwin place TRACE --quantile 0.9 --ahead 6h`.",
        "See what keeping it packed over time costs in moves: `gputwin place TRACE --every 6h`.",
    )
    question = "How few nodes hold this work?"
    conclusion = _fullest(result) if result.packing is not None else ""
    return Section("placement-plan", "Placement", tuple(parts), _NOTES, question, steps, conclusion=conclusion)


def _fullest(result: PlacementResult) -> str:
    """Return which resource of the nodes used is the fullest, by type where there are several."""
    assert result.packing is not None
    shares = allocation(result.problem, result.packing)
    kind, resource = max(
        ((k, r) for k, by_resource in shares.items() for r in by_resource), key=lambda pair: shares[pair[0]][pair[1]]
    )
    of = f" of {kind}" if len(shares) > 1 else ""
    tried = f"; {len(result.attempts)} methods were tried" if len(result.attempts) > 1 else ""
    return (
        f"{RESOURCE_WORDS.get(resource, resource)}{of} is what fills the nodes: {share(shares[kind][resource])}{tried}."
    )


def _tone(result: PlacementResult) -> Tone:
    """Return good where the placement is nearly the best there can be, a warning where there is none."""
    if result.packing is None:
        return Tone.WARNING
    return Tone.GOOD if result.is_optimal or (result.gap or 0.0) <= _NEAR else Tone.NEUTRAL


def _why_not(reasons: Sequence[str]) -> str:
    """Return the first reasons in words and how many more there are; `--json` has all of them."""
    told, left = list(reasons[:_MOST_REASONS]), len(reasons) - _MOST_REASONS
    if left > 0:
        told.append(f"And {left:,} more such reasons (--json has all).")
    return " ".join(told)


def unit_words(unit: str) -> str:
    """Return what an objective counts, in words."""
    return _SHOWN[unit][1] if unit in _SHOWN else unit


def amount(value: int | None, unit: str) -> str:
    """Return an objective or bound as it is read; "–" for none."""
    if value is None:
        return "–"
    return f"{value / _SHOWN[unit][0]:,.2f}" if unit in _SHOWN else f"{value:,}"


def verdict(result: PlacementResult) -> str:
    """Return the answer in a sentence or two."""
    problem, packing = result.problem, result.packing
    if packing is None:
        return _why_not(result.infeasible) or "No placement was found in the time given; give more."
    by_type = ", ".join(f"{n:,} {name}" for name, n in packing.nodes_by_type(problem).items() if n)
    placed = int(problem.counts.sum()) - sum(packing.missing)
    text = f"{placed:,} of {int(problem.counts.sum()):,} instances fit on {packing.nodes:,} nodes ({by_type})."
    if result.is_optimal:
        return f"{text} No placement does better: proven."
    if problem.unit == UNITS["demand"]:
        left = (result.objective or 0) / 1e6
        least = percent(result.bound / 1e6, 1)
        return f"{text} {percent(left, 1)} of the demand is left out; every placement leaves out {least} or more."
    above = f"so this is at most {percent((result.gap or 0.0), 1)} above the best"
    least = f"{amount(result.bound, problem.unit)} {unit_words(problem.unit)}"
    return f"{text} Any placement takes at least {least}, {above}."


def _cards(result: PlacementResult) -> Cards:
    packing = result.packing
    assert packing is not None
    gap, unit = result.gap or 0.0, result.problem.unit
    cards = [
        Card("Nodes", f"{packing.nodes:,}"),
        *([] if unit == UNITS["nodes"] else [Card("Objective", amount(result.objective, unit), unit_words(unit))]),
        Card("Lower bound", amount(result.bound, unit), "no placement is below"),
        Card("Gap", percent(gap, 1), "proven optimal" if result.is_optimal else "above the bound"),
    ]
    shares = allocation(result.problem, packing)
    for name, by_resource in list(shares.items())[:4]:
        resource, share = max(by_resource.items(), key=lambda item: item[1])
        cards.append(Card(f"Fullest on {name}", percent(share, 1), RESOURCE_WORDS.get(resource, resource)))
    return Cards(tuple(cards))


def _shares(result: PlacementResult) -> FigurePart:
    packing = result.packing
    assert packing is not None
    shares = allocation(result.problem, packing)
    rows = [(kind, resource, share) for kind, by_resource in shares.items() for resource, share in by_resource.items()]
    frame = pl.DataFrame(rows, schema=["type", "resource", "share"], orient="row")
    labels = [plain(f"{kind}: {RESOURCE_WORDS.get(resource, resource)}", 40) for kind, resource, _ in rows]
    figure = blank(
        height=110 + 24 * len(rows),
        xaxis={"range": [0, 1], "tickformat": ".0%", "title": "share taken"},
        showlegend=False,
    )
    figure.add_bar(x=frame["share"].to_list(), y=labels, orientation="h", hovertemplate="%{y}: %{x:.1%}<extra></extra>")
    figure.update_yaxes(autorange="reversed", type="category")
    caption = "What is taken of all the nodes used, by type and resource: the longest bar is what runs out first."
    return FigurePart("placement-shares", "What fills the nodes", figure, caption, frame)


def fill_frame(result: PlacementResult) -> pl.DataFrame:
    """Return type, resource, nodes (rank of the middle one) and mean share, nodes sorted by their fullest resource."""
    problem, packing = result.problem, result.packing
    assert packing is not None
    rows = []
    for t, kind in enumerate(problem.types):
        uses = [u for u in packing.uses if u.node_type == t]
        if not uses:
            continue
        capacity = np.maximum(problem.capacities[t], 1)
        fills = np.array([sum(problem.sizes[c] * n for c, n in u.pattern) / capacity for u in uses])
        fills = np.repeat(fills, [u.nodes for u in uses], axis=0)
        fills = fills[np.argsort(-fills.max(axis=1), kind="stable")]
        for chunk in np.array_split(np.arange(len(fills)), min(_BARS, len(fills))):
            mean = fills[chunk].mean(axis=0)
            for r, resource in enumerate(problem.resources):
                if 0 < problem.capacities[t, r] < 1 << 40:
                    rows.append((kind.name, resource, int(chunk[0]) + 1, len(chunk), float(mean[r])))
    return pl.DataFrame(rows, schema=["type", "resource", "node", "nodes", "share"], orient="row")


def _bars(result: PlacementResult) -> FigurePart:
    frame = fill_frame(result)
    panels = list(dict.fromkeys(zip(frame["type"], frame["resource"], strict=True)))
    titles = [plain(f"{kind}: {RESOURCE_WORDS.get(resource, resource)}", 40) for kind, resource in panels]
    deep = len(panels)
    figure: go.Figure = make_subplots(deep, 1, subplot_titles=titles, vertical_spacing=0.5 / max(deep, 1))
    figure.update_layout(layout_of(height=80 + 110 * deep, showlegend=False, colorway=ONE_COLOUR))
    figure.update_annotations(font_size=12)
    for i, (kind, resource) in enumerate(panels):
        part = frame.filter((pl.col("type") == kind) & (pl.col("resource") == resource))
        figure.add_bar(
            x=part["node"].to_list(),
            y=part["share"].to_list(),
            width=part["nodes"].to_list(),
            offset=0,
            hovertemplate="node %{x:,}: %{y:.1%}<extra></extra>",
            row=i + 1,
            col=1,
        )
        figure.update_yaxes(range=[0, 1], tickformat=".0%", row=i + 1, col=1)
    figure.update_xaxes(title_text="nodes", row=deep, col=1)
    caption = (
        "Each bar is a node (a run of nodes where there are many), in the order of its fullest resource; its height is the "
        "share of the resource that is taken."
    )
    return FigurePart("placement-nodes", "Nodes, filled by resource", figure, caption, frame)


def _methods(result: PlacementResult) -> FigurePart | TablePart:
    known, unit = [a for a in result.attempts if a.objective is not None], result.problem.unit
    if not known:
        rows = tuple((a.method, amount(a.bound, unit), f"{a.cpu_seconds:.2f}") for a in result.attempts)
        return TablePart("Methods", {"method": Kind.TEXT, "bound": Kind.NUMBER, "CPU s": Kind.NUMBER}, rows)
    frame = pl.DataFrame(
        {
            "method": [a.method for a in known],
            "objective": [a.objective for a in known],
            "cpu_seconds": [a.cpu_seconds for a in known],
        }
    )
    shown = _SHOWN[unit][0] if unit in _SHOWN else 1
    figure = blank(height=120 + 26 * frame.height, xaxis={"title": unit_words(unit)}, showlegend=False)
    figure.add_bar(
        x=(frame["objective"] / shown).to_list(),
        y=[plain(m, 60) for m in frame["method"]],
        orientation="h",
        hovertemplate="%{y}: %{x:,}<extra></extra>",
    )
    figure.update_yaxes(autorange="reversed", type="category")
    parts = {a.method.partition(": ")[0] for a in known if ": " in a.method}
    if not parts:
        figure.add_vline(x=result.bound / shown, annotation_text=f"lower bound {amount(result.bound, unit)}")
    caption = f"What each method found; the lower bound is {amount(result.bound, unit)}."
    if parts:
        names = ", ".join(sorted(parts))
        caption += f" Node types that share no instance ({names}) are solved apart; their bounds add up."
    return FigurePart("placement-methods", "Methods against the bound", figure, caption, frame)
