"""`gputwin autoscale TRACE --cluster POOLS`: a fixed cluster against autoscaled node pools, with spot nodes or without."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gputwin.cli.console import emit, progress, say, table
from gputwin.core.units import percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gputwin.autoscaling.nodes.choose import Choice, Tried
    from gputwin.autoscaling.nodes.report import PoolReport


@dataclass(frozen=True)
class PoolArguments:
    """What the command line gives."""

    trace: list[str]
    cluster: str
    rules: list[str] | None
    policies: list[Path] | None
    spot: list[float] | None
    availability: Path | None
    zones: list[str] | None
    hazard: str
    prices: Path | None
    price_power: float
    checkpoint: str | None
    seeds: int
    placement: str
    target: str | None
    first_part: float
    output: Path | None
    format: str | None
    seed: int
    json: bool
    quiet: bool


def run_pools(given: PoolArguments) -> None:
    """Compare, print the table, and write it where asked for."""
    from gputwin.autoscaling.nodes.manifest import one_manifest, with_node_pool
    from gputwin.autoscaling.nodes.options import checkpoints_of, supply_of
    from gputwin.autoscaling.nodes.read import open_pools
    from gputwin.autoscaling.nodes.report import report_pools
    from gputwin.report.node_pools import write_pools_report
    from gputwin.traces.locate import open_trace

    manifest = one_manifest(given.policies, given.rules, given.target) if given.policies else None
    if given.target is not None:
        _choose(given, given.target)
        return
    pools, rules = open_pools(given.cluster), given.rules
    if manifest is not None:
        pools = with_node_pool(pools, manifest, with_spot=any(share > 0 for share in given.spot or ()))
        rules = [pools.rule]
    supply = supply_of(given.availability, given.zones or (), given.hazard, given.prices, given.price_power)
    with progress(given.quiet or given.json) as step:
        trace = open_trace(given.trace, given.format, step)
        report = report_pools(
            pools,
            trace,
            supply,
            checkpoints_of(given.checkpoint, supply),
            rules=rules,
            shares=given.spot,
            seeds=given.seeds,
            seed=given.seed,
            placement=given.placement,
            step=step,
        )
        if given.output is not None:
            write_pools_report(given.output, trace, report)
    data = {**report.to_json(), "directory": None if given.output is None else str(given.output)}
    emit(data, given.json, lambda: _render(report, given.output))


def _choose(given: PoolArguments, target: str) -> None:
    """Choose rule, settings and spot share on the first part of the trace, and print how they do on the rest."""
    from gputwin.autoscaling.nodes.choose import SHARES, choose_pools, parse_wait_target
    from gputwin.autoscaling.nodes.options import checked_rules, checkpoints_of, options_of, supply_of
    from gputwin.autoscaling.nodes.read import open_pools
    from gputwin.report.node_pools import write_choice_report
    from gputwin.traces.locate import open_trace

    wanted, pools, rules = parse_wait_target(target), open_pools(given.cluster), checked_rules(given.rules)
    supply = supply_of(given.availability, given.zones or (), given.hazard, given.prices, given.price_power)
    options = options_of(supply, checkpoints_of(given.checkpoint, supply), given.seed, given.placement)
    with progress(given.quiet or given.json) as step:
        trace = open_trace(given.trace, given.format, step)
        choice = choose_pools(
            pools,
            trace,
            options,
            wanted,
            rules=rules,
            shares=tuple(given.spot or SHARES),
            seeds=tuple(range(given.seed, given.seed + given.seeds)),
            first_part=given.first_part,
            step=step,
        )
        if given.output is not None:
            write_choice_report(given.output, trace, choice)
    data = {**choice.to_json(), "directory": None if given.output is None else str(given.output)}
    emit(data, given.json, lambda: _render_choice(choice, given.output))


def _render_choice(choice: Choice, output: Path | None) -> None:
    from gputwin.core.units import format_duration

    def rows(found: Sequence[Tried]) -> list[list[str]]:
        return [
            [
                t.words(),
                f"{t.cost:,.0f}",
                format_duration(t.wait_seconds),
                format_duration(t.most_wait_seconds),
                "yes" if t.is_within else "no",
            ]
            for t in found
        ]

    say(choice.verdict())
    columns = ["nodes", "cost", choice.target.words, "worst seed", "within target"]
    days = format_duration(choice.split_seconds)
    table(f"Tried on the first {days} ({choice.jobs[0]:,} jobs)", columns, rows(choice.tried))
    table(f"On the rest ({choice.jobs[1]:,} jobs)", columns, rows(choice.shown))
    say(choice.pools.cost_note())
    if output is not None:
        say(f"report: {output / 'pools.html'}")


def _render(report: PoolReport, output: Path | None) -> None:
    from gputwin.report.sections.node_pools import pools_verdict, shared_cells

    say(pools_verdict(report).text)
    say(report.headline())
    rows = [
        [
            row.rule,
            percent(row.spot_share),
            f"{row.cost:,.0f}" if row.runs == 1 else f"{row.cost:,.0f} ({row.least_cost:,.0f}–{row.most_cost:,.0f})",
            *shared_cells(report, row),
            f"{row.reclaims:,.0f}",
            f"{row.stops:,.0f}",
            f"{row.lost_gpu_hours:,.0f}",
            f"{row.overhead_gpu_hours:,.0f}",
        ]
        for row in report.rows
    ]
    columns = [
        "nodes",
        "spot",
        "cost",
        "of fixed",
        "idle",
        "mean nodes",
        "mean wait",
        "p95",
        "p99",
        "launches",
        "reclaims",
        "stops",
        "lost GPU h",
        "saves, restarts GPU h",
    ]
    table(f"Fixed cluster and autoscaled pools (cost: {report.pools.cost_unit})", columns, rows)
    for sentence in report.notes():
        say(f"- {sentence}")
    if output is not None:
        say(f"report: {output / 'pools.html'}")
