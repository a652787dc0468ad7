"""Scaling rules side by side: the table, cost by part, demand against capacity with each decision's reason, tenants."""

from __future__ import annotations

import numpy as np
import polars as pl
from plotly import graph_objects as go

from gputwin.autoscaling.compare import FORESIGHT, Comparison, Row
from gputwin.autoscaling.verdict import best_rule, cost_unit, keeps_target
from gputwin.core.units import format_duration
from gputwin.report.axes import duration_unit
from gputwin.report.charts import bars
from gputwin.report.figures import DASHES, blank, plain
from gputwin.report.page import Bullets, Card, Cards, FigurePart, Kind, Part, Section, Statement, TablePart

_MOST_POINTS = 1500
_MOST_MARKS = 600
_MOST_TENANTS = 12
_NOTES = (
    "Every rule sees the same observations at the same times. Its settings are the cheapest of those tried that violate the "
    "SLA in no more than one minute in a hundred of the first part; else those with the fewest violations.",
    "A minute is violated where more than 5 % of the requests that came in it missed the target. The cost is compute "
    "(replicas from launch to stop, booting and draining included) and, for each request, the seconds beyond the target at "
    "the penalty rate.",
    "Foresight is the best of several plans made from the demand to come, simulated like the rules. The bound is the "
    "cheapest course of replicas by dynamic programming where work is a fluid that may wait as long as the target allows; "
    "no rule can be expected to reach it.",
    "Over and under are the areas between replicas that are up and the demand, which is the requests in flight with "
    "capacity for all, over what one replica serves at once.",
)
_NEXT = (
    "Use the rule with the settings below; where Kubernetes has an object for it, its YAML is in the same folder.",
    "Try another target or boot time: `gputwin autoscale --help`.",
)


def autoscale(c: Comparison) -> Section:
    """Return the section of a comparison of scaling rules."""
    best = c.row(best_rule(c))
    verdict, *more = c.verdicts()
    parts: list[Part] = [Statement(verdict), _cards(c, best), *([Bullets(tuple(more))] if more else [])]
    parts += [_table(c), _costs(c), _capacity(c), _settings(c)]
    if len(best.shown_on.cost.by_tenant_use) > 1:
        parts.append(_tenants(best))
    notes = (*_NOTES, *(f"{n[:1].upper()}{n[1:]}." for n in c.notes))
    question = "Which scaling rule serves these requests at the least cost?"
    return Section("autoscale", "Scaling rules", tuple(parts), notes, question, _NEXT)


def _cards(c: Comparison, best: Row) -> Cards:
    s, is_kept = best.shown_on, keeps_target(c, best.rule)
    return Cards(
        (
            Card("Best rule" if is_kept else "Closest to the target", best.rule, "on the part it was not tuned on"),
            Card("Cost", f"{s.cost.total:,.2f}", f"{s.cost.penalty:,.2f} of it for missed targets"),
            Card("Minutes over the target", f"{s.violation_minutes:,}", f"of {s.active_minutes:,} with requests"),
            Card("p95 response", format_duration(s.p95_response)),
            Card("Mean replicas", f"{s.mean_replicas:,.2f}"),
        )
    )


def _table(c: Comparison) -> TablePart:
    rows = []
    for r in c.rows:
        s = r.shown_on
        rows.append(
            (
                r.rule,
                f"{s.cost.total:,.2f}",
                f"{s.cost.compute:,.2f}",
                f"{s.cost.penalty:,.2f}",
                f"{s.violation_minutes:,} of {s.active_minutes:,}",
                format_duration(s.p95_response),
                format_duration(s.p99_response),
                f"{s.mean_replicas:,.2f}",
                f"{s.over_replica_hours:,.1f}",
                f"{s.under_replica_hours:,.1f}",
                f"{s.scale_events:,}",
                f"{s.cold_starts:,}",
            )
        )
    bound = (f"{c.bound.total:,.2f}", f"{c.bound.compute:,.2f}", f"{c.bound.penalty:,.2f}")
    rows.append(("bound", *bound, *("–",) * 8))
    names = ("cost", "compute", "SLA penalty", "minutes violated", "p95", "p99", "mean replicas")
    kinds = {"rule": Kind.TEXT} | dict.fromkeys(
        (*names, "over, replica-h", "under, replica-h", "scale events", "cold starts"), Kind.NUMBER
    )
    what = "time to the first token" if c.is_first_token else "response time"
    note = f"p95 and p99 are of the {what}; the target is {format_duration(c.target_seconds)}."
    return TablePart("On the rest of the trace", kinds, tuple(rows), note)


def _settings(c: Comparison) -> TablePart:
    rows = tuple(
        (r.rule, r.setting, f"{r.chosen_on.cost.total:,.2f}", f"{r.chosen_on.violation_minutes:,}") for r in c.rows[:-1]
    )
    kinds = {
        "rule": Kind.TEXT,
        "setting": Kind.TEXT,
        "cost on the first part": Kind.NUMBER,
        "minutes violated": Kind.NUMBER,
    }
    return TablePart("Settings, chosen on the first part", kinds, rows)


def _costs(c: Comparison) -> FigurePart:
    frame = pl.DataFrame(
        {
            "rule": [r.rule for r in c.rows] + ["bound"],
            "allocated": [r.shown_on.cost.allocated for r in c.rows] + [c.bound.compute],
            "idle": [r.shown_on.cost.idle for r in c.rows] + [0.0],
            "penalty": [r.shown_on.cost.penalty for r in c.rows] + [c.bound.penalty],
        }
    )
    figure = bars(frame, "rule", {"allocated": "at work", "idle": "idle", "penalty": "SLA penalty"}, _cost_axis(c))
    figure.update_layout(barmode="stack")
    least = min(r.shown_on.cost.total for r in c.rows)
    caption = (
        f"What is paid, by what it is paid for; the lowest total is {least:,.2f}. A replica is at work while it serves any "
        "request; booting counts as idle."
    )
    return FigurePart("autoscale-cost", "Cost by part", figure, caption, frame)


def _cost_axis(c: Comparison) -> str:
    return f"cost ({cost_unit(c)})"


def _capacity(c: Comparison) -> FigurePart:
    size, unit = duration_unit(pl.Series([float(len(c.need) * c.shown.period)]))
    figure = blank(
        height=420,
        xaxis={"title": f"{unit} into the part shown"},
        yaxis={"title": "replicas", "rangemode": "tozero"},
        showlegend=True,
    )
    times = (np.arange(len(c.need)) + 1) * c.shown.period / size
    columns: dict[str, list[float]] = {}
    x, columns["demand"] = _thinned(times, c.need)
    figure.add_scatter(
        x=x, y=columns["demand"], name="demand", mode="lines", line={"width": 1, "dash": "dot"}, fill="tozeroy"
    )
    for i, r in enumerate(c.rows):
        up = np.array(r.run.series.up[: len(c.need)], dtype=float)
        _, columns[r.rule] = _thinned(times[: len(up)], up)
        figure.add_scatter(
            x=x[: len(columns[r.rule])],
            y=columns[r.rule],
            name=plain(r.rule),
            mode="lines",
            line={"width": 1.4, "shape": "hv", "dash": DASHES[i % len(DASHES)]},
            visible=True if r.rule in ("hpa", "hybrid", FORESIGHT) else "legendonly",
            hovertemplate="%{fullData.name}: %{y:g} up<extra></extra>",
        )
    for r in c.rows:
        if r.rule != FORESIGHT:
            _add_decisions(figure, r, size, shown=r.rule == "hybrid")
    length = min(len(v) for v in columns.values())
    frame = pl.DataFrame({unit: x[:length], **{k: v[:length] for k, v in columns.items()}})
    caption = (
        f"Replicas that are up, and the demand in replicas (mean {float(np.mean(c.need)):,.2f}). Marks are decisions; point "
        f"at one to read its reason. Where there are more than {_MOST_POINTS:,} periods each point is the most of several."
    )
    return FigurePart("autoscale-capacity", "Demand, capacity and decisions", figure, caption, frame)


def _add_decisions(figure: go.Figure, r: Row, size: float, *, shown: bool) -> None:
    series = r.run.series
    at = [i for i, reason in enumerate(series.reason) if reason]
    at = at[:: max(1, -(-len(at) // _MOST_MARKS))]
    figure.add_scatter(
        x=[series.time[i] / size for i in at],
        y=[series.target[i] for i in at],
        text=[f"{format_duration(series.time[i])}, to {series.target[i]}: {plain(series.reason[i], 200)}" for i in at],
        name=f"{plain(r.rule)} decides",
        mode="markers",
        marker={"size": 6, "symbol": "diamond-open"},
        visible=True if shown else "legendonly",
        hovertemplate="%{text}<extra></extra>",
    )


def _thinned(times: np.ndarray, values: np.ndarray) -> tuple[list[float], list[float]]:
    """Return at most so many points, each the most of its stretch."""
    width = max(1, -(-len(values) // _MOST_POINTS))
    starts = np.arange(0, len(values), width)
    if not len(starts):
        return [], []
    return times[starts].tolist(), np.maximum.reduceat(values, starts).tolist()


def _tenants(best: Row) -> TablePart:
    cost = best.shown_on.cost
    order = sorted(cost.by_tenant_use, key=lambda t: -cost.by_tenant_use[t])[:_MOST_TENANTS]
    rows = tuple((t, f"{cost.by_tenant_allocation[t]:,.4f}", f"{cost.by_tenant_use[t]:,.4f}") for t in order)
    kinds = {"tenant": Kind.CODE, "on allocation": Kind.NUMBER, "on use": Kind.NUMBER}
    note = (
        f"Compute under {best.rule}, the {len(order)} largest of {len(cost.by_tenant_use):,} tenants. On allocation idle "
        f"time is shared out too (adds up to {cost.compute:,.2f}); on use it is the operator's ({cost.allocated:,.2f})."
    )
    return TablePart("Cost per tenant", kinds, rows, note)
