"""One simulated run: how long jobs waited and why, how full the cluster was, and under which rules."""

from __future__ import annotations

from typing import Any

import polars as pl

from gputwin.analysis.words import over_or_none, share
from gputwin.core.units import format_duration, percent, short_duration
from gputwin.report import charts
from gputwin.report.page import Card, Cards, FigurePart, Kind, Part, Prose, Section, Statement, TablePart, Tone
from gputwin.report.sections.quota_tree import quota_parts
from gputwin.report.sections.run_details import details_parts
from gputwin.report.sections.tenants import run_tenants
from gputwin.report.timeline import Timeline
from gputwin.simulation.cause_words import cause_words, has_rounds
from gputwin.simulation.result import SimulationResult
from gputwin.simulation.verdict import rules_words, run_verdict, shares_words
from gputwin.simulation.waits_by_tenant import by_tenant, owner_of

_SHARES = {
    "share_error": "share of GPUs held beyond fair shares",
    "share_jain": "Jain's index of GPUs held per GPU due",
}
_BINS = 300
_NOTES = (
    "Every waiting second of every job is charged to one cause. Allocation and queue are means over the time in which "
    "jobs were submitted.",
)
_SPREADS = {"wait": "wait_seconds", "completion time": "jct_seconds", "bounded slowdown": "bounded_slowdown"}
_TIMES = ("mean", "p50", "p95", "p99")


def run_section(result: SimulationResult, timeline: Timeline, use: pl.DataFrame | None = None) -> Section:
    """Return the section of one run; `use` (`use_of` of its trace) says what tenants used of their GPUs."""
    found = run_verdict(result)
    tone = {True: Tone.GOOD, False: Tone.WARNING, None: Tone.NEUTRAL}[found.is_good]
    parts: list[Part] = [Statement(found.text, tone), _cards(result)]
    parts += _over_time(result, timeline)
    manifest = result.manifest
    parts.append(
        Prose(
            f"{result.summary['jobs']:,} jobs on {manifest['cluster']} ({manifest['nodes']:,} nodes, "
            f"{manifest['gpus']:,} GPUs): {rules_words(result)}."
        )
    )
    parts += [waits_table(result), *causes_tables(result), *details_parts(result), *run_tenants(by_tenant(result, use))]
    parts += quota_parts(result)
    steps = (
        "See why one job waited: `gputwin explain RUN longest`.",
        "Compare with other rules: `gputwin simulate TRACE --order sjf -o other`, then "
        "`gputwin report TRACE --run RUN --run other -o compared.html`.",
    )
    return Section("run", "The run", tuple(parts), _NOTES, "What happens to these jobs under these rules?", steps)


def waits_table(result: SimulationResult) -> TablePart:
    """Return waits, completion times and slowdowns of the jobs."""
    rows = []
    for name, key in _SPREADS.items():
        spread = result.summary[key]
        if spread:
            form = (lambda v: f"{v:,.2f}") if key == "bounded_slowdown" else format_duration
            rows.append((name, *(form(spread[k]) for k in _TIMES)))
    return TablePart("Jobs", {"what": Kind.TEXT} | dict.fromkeys(_TIMES, Kind.NUMBER), tuple(rows))


def causes_tables(result: SimulationResult) -> list[TablePart]:
    """Return why jobs waited, the largest cause first; nothing where no job waited."""
    causes: dict[str, Any] = result.summary["wait_causes_seconds"] or {}
    total = sum(causes.values())
    if total <= 0:
        return []
    jobs = max(result.summary["jobs_with_wait"], 1)
    rows = tuple(
        (cause_words(name, has_rounds(result)), format_duration(seconds / jobs), share(seconds / total))
        for name, seconds in sorted(causes.items(), key=lambda item: -item[1])
        if seconds
    )
    return [
        TablePart("Why jobs waited", {"waited": Kind.TEXT, "mean per job": Kind.NUMBER, "share": Kind.NUMBER}, rows)
    ]


def _cards(result: SimulationResult) -> Cards:
    s = result.summary
    cards = []
    if s["wait_seconds"]:
        note = over_or_none(s["wait_seconds"]["p95"])
        cards.append(Card("Mean wait", format_duration(s["wait_seconds"]["mean"]), note))
    if s["jct_seconds"]:
        cards.append(Card("Mean completion time", format_duration(s["jct_seconds"]["mean"]), "from submission to end"))
    if "gpu" in s["allocation"]:
        cards.append(Card("GPUs allocated", share(s["allocation"]["gpu"]), f"of {result.manifest['gpus']:,}"))
    cards.append(Card("GPUs lost to fragmentation", share(s["fragmentation"]), "free, but of no use to typical jobs"))
    if s["jain_fairness"] is not None:
        cards.append(Card("Fairness", f"{s['jain_fairness']:.3f}", f"1: {owner_of(result)}s are treated alike"))
    return Cards(tuple(cards))


def _over_time(result: SimulationResult, timeline: Timeline) -> list[Part]:
    series = result.series
    if series.height < 2 or "gpu_allocation" not in series.columns:
        return []
    step = -(-series.height // _BINS)
    bin_seconds = float(series["time"][1] - series["time"][0])
    shares = [column for column in _SHARES if column in series.columns]
    binned = (
        series.with_row_index("row")
        .group_by(pl.col("row") // step, maintain_order=True)
        .agg(pl.col("time").first(), pl.col("gpu_allocation", "waiting_jobs", *shares).mean())
        .drop("row")
    )
    timeline = timeline.until(float(series["time"].max()))  # type: ignore[arg-type]
    shown = binned.with_columns(timeline.shown(pl.col("time")).alias("at"))
    parts: list[Part] = []
    for column, id_, title, what, is_share in (
        ("gpu_allocation", "run-allocation", "GPUs allocated over time", "share of GPUs", True),
        ("waiting_jobs", "run-queue", "Jobs waiting over time", "jobs", False),
    ):
        figure = charts.over_time(shown, {column: title}, timeline.axis, what, percent=is_share)
        figure.update_layout(height=300)
        most = float(shown[column].max() or 0.0)  # type: ignore[arg-type]
        caption = f"at most {percent(most, 1)} allocated" if is_share else f"at most {most:,.0f} jobs wait"
        caption = f"Means over {short_duration(step * bin_seconds)}: {caption}."
        parts.append(FigurePart(id_, title, figure, caption, shown))
    who = owner_of(result)
    if words := shares_words(result.summary.get("tenant_shares"), who):
        figure = charts.over_time(shown, _SHARES, timeline.axis, "from 0 to 1")
        figure.update_layout(height=300)
        parts.append(
            FigurePart("run-shares", f"{who.capitalize()}s against their fair shares over time", figure, words, shown)
        )
    return parts
