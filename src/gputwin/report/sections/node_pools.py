"""Autoscaled node pools against a fixed cluster: what they cost, what jobs wait for it, and what spot nodes risk."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from gputwin.autoscaling.nodes.choose import Choice, Tried
from gputwin.autoscaling.nodes.report import PoolReport, PoolRow, mean_of
from gputwin.autoscaling.nodes.spec import NodePools
from gputwin.core.units import format_duration, percent
from gputwin.report.charts import bar_rows, dots
from gputwin.report.page import Bullets, Card, Cards, FigurePart, Kind, Part, Section, Statement, TablePart, Tone

_NOTES = (
    "Every variant is given the same jobs and the same scheduler; a rule sees what its controller would see, and a node "
    "that it starts serves jobs after its boot. Variants with spot nodes are run with several seeds and shown as means.",
    "A node is paid for from its start until it is off. Of each hour the share of its GPUs that jobs hold is at work (of "
    "its CPU, on nodes without GPUs), the rest is idle.",
)
_LONGER = 1.1
_LITTLE_SECONDS = 60.0
"""A p95 wait that is at most a tenth or a minute longer than the fixed cluster's is as good."""


def variant_of(row: PoolRow) -> str:
    """Return rule and share of spot nodes in words."""
    return row.rule if row.spot_share == 0 else f"{row.rule}, {percent(row.spot_share)} spot"


def cheapest(report: PoolReport) -> PoolRow:
    """Return the autoscaled variant that costs least of those that serve as many jobs as any."""
    scaled = report.rows[1:] or report.rows
    served = min(row.unfinished for row in scaled)
    return min((row for row in scaled if row.unfinished <= served), key=lambda row: row.cost)


def pools_verdict(report: PoolReport) -> Statement:
    """Return what the cheapest variant costs against the fixed cluster, and what jobs wait for it."""
    fixed, best = report.rows[0], cheapest(report)
    part = best.cost / report.fixed_cost
    waits, before = best.p95_wait_seconds, fixed.p95_wait_seconds
    as_good = waits <= max(_LONGER * before, before + _LITTLE_SECONDS)
    wait = (
        f"one job in twenty waits longer than {format_duration(waits)}, on the fixed cluster {format_duration(before)}"
    )
    text = (
        f"{variant_of(best)[:1].upper()}{variant_of(best)[1:]} costs {best.cost:,.0f} {report.pools.cost_unit}, "
        f"{percent(part)} of the fixed cluster's {fixed.cost:,.0f}; {wait}."
    )
    if best.spot_share > 0:
        stopped = percent(best.stopped_jobs / max(report.jobs, 1), 1)
        text += f" {stopped} of the jobs were" if best.stopped_jobs else " No job was"
        text += " stopped with a spot node."
    text += _left_out(report, best)
    if part >= 1:
        return Statement(f"Scaling does not pay here. {text}", Tone.WARNING)
    return Statement(text, Tone.GOOD if as_good else Tone.WARNING)


def _left_out(report: PoolReport, best: PoolRow) -> str:
    """Return why the autoscaled variant of least cost is not the one named; nothing where it is."""
    least = min(report.rows[1:] or report.rows, key=lambda row: row.cost)
    if least.cost >= best.cost:
        return ""
    more = least.unfinished - best.unfinished
    return (
        f" {variant_of(least)[:1].upper()}{variant_of(least)[1:]} costs less ({least.cost:,.0f}) but leaves "
        f"{mean_of(more)} {'job' if more == 1 else 'jobs'} more unserved: it is left out."
    )


def node_pools(report: PoolReport) -> Section:
    """Return the section of a comparison of autoscaled pools with a fixed cluster."""
    notes = report.notes()
    parts: list[Part] = [pools_verdict(report), _cards(report), _costs(report), _waits(report), _table(report)]
    if any(row.spot_share > 0 for row in report.rows):
        parts.append(_risk(report))
    parts.append(Bullets((report.headline() + ".", *notes)))
    question = "What do autoscaled nodes cost against a fixed cluster, and what do jobs wait for it?"
    steps = [
        "Choose rule, settings and spot share within a wait target: "
        "`gputwin autoscale TRACE --cluster POOLS --target p95_wait=10m`.",
        "Try how often spot nodes are lost: `gputwin autoscale TRACE --cluster POOLS --spot 0.3 --hazard 0.05`.",
    ]
    if any(row.rule == "karpenter" for row in report.rows):
        steps.append("The settings of Karpenter are in `karpenter.yaml`, in the same folder.")
    fixed, best = report.rows[0], cheapest(report)
    ways = f"Of {len(report.rows)} ways to run {report.jobs:,} jobs"
    conclusion = (
        f"{ways} the fixed cluster costs {fixed.cost:,.0f}, with a p95 wait of {format_duration(fixed.p95_wait_seconds)}; "
        f"{variant_of(best)} costs {best.cost:,.0f}, with {format_duration(best.p95_wait_seconds)}."
    )
    return Section("pools", "Node pools", tuple(parts), _NOTES, question, tuple(steps), conclusion=conclusion)


def _cards(report: PoolReport) -> Cards:
    fixed, best = report.rows[0], cheapest(report)
    cards = [
        Card("Cheapest", best.rule, f"{percent(best.spot_share)} spot; of {len(report.rows)} ways"),
        _cost_card(report.pools, best.cost, report.fixed_cost),
        Card("p95 wait", format_duration(best.p95_wait_seconds), f"fixed: {format_duration(fixed.p95_wait_seconds)}"),
        Card("Nodes on average", f"{best.mean_nodes:,.0f}", f"fixed: {fixed.mean_nodes:,.0f}"),
    ]
    if best.spot_share > 0:
        cards.append(
            Card("Jobs stopped", mean_of(best.stopped_jobs), f"spot nodes taken back: {mean_of(best.reclaims)}")
        )
    else:
        cards.append(Card("Paid but idle", percent(best.idle_share), f"fixed: {percent(fixed.idle_share)}"))
    return Cards(tuple(cards))


def _cost_card(pools: NodePools, cost: float, fixed: float) -> Card:
    """Return a cost with its unit, and its share of what the fixed cluster costs."""
    return Card(
        "Cost", f"{cost:,.0f}", f"{pools.cost_unit}; {percent(cost / max(fixed, 1e-12))} of the fixed cluster's"
    )


def _costs(report: PoolReport) -> FigurePart:
    frame = pl.DataFrame(
        {
            "variant": [variant_of(row) for row in report.rows],
            "at_work": [row.cost * (1 - row.idle_share) for row in report.rows],
            "idle": [row.cost * row.idle_share for row in report.rows],
        }
    )
    figure = bar_rows(
        frame, "variant", {"at_work": "at work", "idle": "idle"}, f"cost, {report.pools.cost_unit}", stacked=True
    )
    least = min(report.rows, key=lambda row: row.cost)
    caption = (
        f"What nodes are paid for over {format_duration(report.span_seconds)}; the least is {least.cost:,.0f} "
        f"{report.pools.cost_unit} under "
        f"{variant_of(least)}. Booting counts as idle."
    )
    return FigurePart("pools-cost", "Cost of each way to size the cluster", figure, caption, frame)


def _waits(report: PoolReport) -> FigurePart:
    frame = pl.DataFrame(
        {
            "group": [variant_of(row) for row in report.rows],
            "p95": [row.p95_wait_seconds for row in report.rows],
            "p99": [row.p99_wait_seconds for row in report.rows],
            "mean": [row.mean_wait_seconds for row in report.rows],
            "low": [row.least_p95_wait_seconds for row in report.rows],
            "high": [row.most_p95_wait_seconds for row in report.rows],
        }
    )
    figure = dots(frame, {"p95": "95th percentile", "p99": "99th percentile", "mean": "mean"}, "wait")
    longest = max(report.rows, key=lambda row: row.p95_wait_seconds)
    caption = (
        f"Waits of jobs; the longest 95th percentile is {format_duration(longest.p95_wait_seconds)} under "
        f"{variant_of(longest)}, its interval the range over seeds. Waits of zero are not drawn."
    )
    return FigurePart("pools-waits", "What jobs wait", figure, caption, frame)


def shared_cells(report: PoolReport, row: PoolRow) -> tuple[str, ...]:
    """Return the cells that the tables of report and terminal share: cost against fixed nodes, use, waits, launches."""
    return (
        percent(row.cost / report.fixed_cost),
        percent(row.idle_share),
        f"{row.mean_nodes:,.0f}",
        format_duration(row.mean_wait_seconds),
        format_duration(row.p95_wait_seconds),
        format_duration(row.p99_wait_seconds),
        f"{row.launches:,.0f}",
    )


def _table(report: PoolReport) -> TablePart:
    rows = tuple(
        (
            variant_of(row),
            f"{row.cost:,.0f}",
            *shared_cells(report, row),
        )
        for row in report.rows
    )
    names = ("cost", "of fixed", "idle", "mean nodes", "mean wait", "p95", "p99", "launches")
    note = f"Cost: {report.pools.cost_unit}."
    return TablePart("Side by side", {"nodes": Kind.TEXT} | dict.fromkeys(names, Kind.NUMBER), rows, note)


def _risk(report: PoolReport) -> TablePart:
    rows = tuple(
        (
            variant_of(row),
            f"{row.runs}",
            f"{row.least_cost:,.0f} to {row.most_cost:,.0f}",
            f"{format_duration(row.least_p95_wait_seconds)} to {format_duration(row.most_p95_wait_seconds)}",
            mean_of(row.reclaims),
            mean_of(row.stopped_jobs),
            f"{row.lost_gpu_hours:,.0f}",
            f"{row.overhead_gpu_hours:,.0f}",
        )
        for row in report.rows
        if row.spot_share > 0
    )
    names = (
        "runs",
        "cost",
        "p95 wait",
        "spot nodes taken back",
        "jobs stopped",
        "GPU-hours done again",
        "GPU-hours of saves and restarts",
    )
    note = "Cost and p95 wait are the range over the runs, each with its own luck; the others are means."
    return TablePart("What spot nodes risk", {"nodes": Kind.TEXT} | dict.fromkeys(names, Kind.NUMBER), rows, note)


_AFTER_CHOICE = (
    "Use the chosen rule, settings and spot share, first for a part of the nodes.",
    "See what jobs wait for under it: `gputwin autoscale TRACE --cluster POOLS`, without `--target`.",
)


def pool_choice(choice: Choice) -> Section:
    """Return the section of pools that were chosen for a wait target."""
    fixed, now = choice.shown[:2]
    tone = Tone.GOOD if now.is_within and now.cost < fixed.cost else Tone.WARNING
    cards = Cards(
        (
            Card("Chosen", choice.chosen.rule, f"{percent(choice.chosen.spot_share)} spot"),
            _cost_card(choice.pools, now.cost, fixed.cost),
            Card(
                choice.target.words,
                format_duration(now.wait_seconds),
                f"target {format_duration(choice.target.seconds)}",
            ),
            Card("Worst seed", format_duration(now.most_wait_seconds)),
            Card("Tried", f"{len(choice.tried):,}", f"on the first {format_duration(choice.split_seconds)}"),
        )
    )
    shown = bar_rows(_costs_of(choice.shown), "nodes", {"cost": "cost"}, f"cost, {choice.pools.cost_unit}")
    caption = (
        f"On the rest of the trace, {choice.jobs[1]:,} jobs; the fixed cluster costs {fixed.cost:,.0f}. "
        f"{choice.pools.cost_note()}"
    )
    figure = FigurePart("choice-cost", "Cost on the rest of the trace", shown, caption, _costs_of(choice.shown))
    parts: tuple[Part, ...] = (
        Statement(choice.verdict(), tone),
        cards,
        figure,
        _tried(choice, choice.shown, f"On the rest ({choice.jobs[1]:,} jobs)"),
        _tried(choice, choice.tried, f"Tried on the first part ({choice.jobs[0]:,} jobs)"),
    )
    question = f"Which nodes cost least with {choice.target.words} within the target?"
    within = sum(t.is_within for t in choice.tried)
    conclusion = (
        f"{within:,} of {len(choice.tried):,} ways tried on the first {format_duration(choice.split_seconds)} keep the "
        f"target; the chosen one costs {choice.chosen.cost:,.0f} there and {now.cost:,.0f} on the rest, the fixed cluster "
        f"{fixed.cost:,.0f} on the rest."
    )
    return Section("pools", "Node pools", parts, _NOTES, question, _AFTER_CHOICE, conclusion=conclusion)


def _costs_of(found: Sequence[Tried]) -> pl.DataFrame:
    """Return costs on the rest of the trace: of the fixed cluster, of the chosen way, of the others."""
    names = [f"{t.rule}, {percent(t.spot_share)} spot{', as chosen' if k == 1 else ''}" for k, t in enumerate(found)]
    return pl.DataFrame({"nodes": names, "settings": [t.words() for t in found], "cost": [t.cost for t in found]})


def _tried(choice: Choice, found: Sequence[Tried], title: str) -> TablePart:
    rows = tuple(
        (
            t.words(),
            f"{t.cost:,.0f}",
            format_duration(t.wait_seconds),
            format_duration(t.most_wait_seconds),
            "yes" if t.is_within else "no",
        )
        for t in found
    )
    names = ("cost", choice.target.words, "worst seed", "within target")
    note = f"Cost: {choice.pools.cost_unit}."
    return TablePart(title, {"nodes": Kind.TEXT} | dict.fromkeys(names, Kind.NUMBER), rows, note)
