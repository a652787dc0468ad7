"""Tenants in a run: who waits and who holds, and why jobs were stopped."""

from __future__ import annotations

import polars as pl

from gputwin.analysis.topic import Remark
from gputwin.core.units import format_duration, percent
from gputwin.report import charts
from gputwin.report.page import FigurePart, Findings, Kind, Part, Prose, Section, TablePart, number
from gputwin.report.sections.tenants import NO_TENANTS
from gputwin.simulation.cause_words import cause_words
from gputwin.simulation.completion import mean_parts
from gputwin.simulation.goodput import PARTS
from gputwin.simulation.result import SimulationResult
from gputwin.simulation.waits_by_tenant import TenantView

_MOST_TENANTS = 20
_MOST_BARS = 12


def tenants_section(view: TenantView) -> Section:
    """Return who waits and who holds."""
    parts: list[Part] = [] if view.who == "tenant" else [Prose(NO_TENANTS)]
    said = view.sentences()
    if said:
        parts.append(Findings(tuple(Remark(text) for text in said)))
    parts += [part for part in (_causes(view),) if part is not None]
    parts.append(_table(view))
    note = "Allocated is what jobs hold; used is the measured share of it, where the trace has measurements."
    return Section("tenants", f"{view.who.capitalize()}s", tuple(parts), (note,))


def _table(view: TenantView) -> TablePart:
    shown = view.tenants.sort("gpu_hours", "tenant", descending=[True, False]).head(_MOST_TENANTS)
    has_use = "used_share" in shown.columns
    kinds = {view.who: Kind.CODE} | dict.fromkeys(
        ("jobs", "GPU-hours allocated", *(("used of it",) if has_use else ()), "mean wait", "p95 wait"), Kind.NUMBER
    )
    rows = []
    for row in shown.to_dicts():
        used = row.get("used_share")
        rows.append(
            (
                row["tenant"],
                f"{row['jobs']:,}",
                number(row["gpu_hours"]),
                *((("–" if used is None else percent(used)),) if has_use else ()),
                _duration(row["mean_wait_seconds"]),
                _duration(row["p95_wait_seconds"]),
            )
        )
    left = view.tenants.height - len(rows)
    return TablePart("By GPU-hours", kinds, tuple(rows), f"{left:,} more {view.who}s are not listed." if left else "")


def _duration(seconds: float | None) -> str:
    return "–" if seconds is None else format_duration(seconds)


def _causes(view: TenantView) -> FigurePart | None:
    """Return the GPU-hours that tenants waited, by cause, those who waited most first."""
    if view.causes.is_empty():
        return None
    most = view.causes.group_by("tenant").agg(pl.col("gpu_hours").sum()).sort("gpu_hours", "tenant", descending=True)
    names = most["tenant"].head(_MOST_BARS).to_list()
    kept = view.causes.filter(pl.col("tenant").is_in(names))
    causes = kept.group_by("cause").agg(pl.col("gpu_hours").sum()).sort("gpu_hours", descending=True)["cause"].to_list()
    wide = pl.DataFrame({"tenant": names}).join(
        kept.pivot("cause", index="tenant", values="gpu_hours"), on="tenant", how="left", maintain_order="left"
    )
    wide = wide.select("tenant", *causes).fill_null(0.0)
    figure = charts.bar_rows(
        wide, "tenant", {c: cause_words(c, view.has_rounds) for c in causes}, "GPU-hours waited", stacked=True
    )
    top = most.row(0, named=True)
    cause = kept.filter(pl.col("tenant") == top["tenant"]).sort("gpu_hours", descending=True)["cause"][0]
    caption = (
        f"GPUs asked for × time waited. {top['tenant']} waited most, {number(top['gpu_hours'])} GPU-hours, most of it "
        f"{cause_words(cause, view.has_rounds)}."
    )
    return FigurePart("tenant-causes", "Who waited, and why", figure, caption, wide)


def stops_section(result: SimulationResult) -> Section | None:
    """Return why running jobs were stopped and where their time went; None where nothing can be stopped."""
    stops, time = result.summary.get("stops"), tuple(mean_parts(result.summary))
    if stops is None or not time:
        return None
    by_reason = tuple((why.replace("_", " "), f"{count:,}") for why, count in stops.items())
    goodput = result.summary.get("goodput") or {}
    hours = {words: goodput.get(f"{name}_gpu_hours", 0.0) for name, words in PARTS.items()}
    held = max(sum(max(value, 0.0) for value in hours.values()), 1e-12)
    gpu_hours = tuple((words, f"{v:,.1f}", percent(v / held, 1)) for words, v in hours.items() if v)
    many = sum(stops.values())
    text = f"Running jobs were stopped {many:,} times." if many else "No running job was stopped."
    return Section(
        "stops",
        "Evictions",
        (
            Findings((Remark(text),), "What this shows"),
            TablePart("Evictions by reason", {"reason": Kind.TEXT, "times": Kind.NUMBER}, by_reason),
            TablePart(
                "From submission to end",
                {"part": Kind.TEXT, "mean per finished job": Kind.NUMBER, "share": Kind.NUMBER},
                time,
            ),
            TablePart(
                "Goodput: GPU-hours held",
                {"part": Kind.TEXT, "GPU-hours": Kind.NUMBER, "share": Kind.NUMBER},
                gpu_hours,
            ),
        ),
    )
