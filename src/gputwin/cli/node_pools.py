"""`gputwin autoscale TRACE --cluster POOLS`: a fixed cluster against autoscaled node pools, with spot nodes or without."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gputwin.cli.console import emit, progress, say, table
from gputwin.core.units import percent

if TYPE_CHECKING:
    from gputwin.autoscaling.nodes.report import PoolReport


@dataclass(frozen=True)
class PoolArguments:
    """What the command line gives."""

    trace: list[str]
    cluster: str
    rules: list[str] | None
    spot: list[float] | None
    availability: Path | None
    zones: list[str] | None
    hazard: float
    checkpoint: str | None
    seeds: int
    output: Path | None
    format: str | None
    seed: int
    json: bool
    quiet: bool


def run_pools(given: PoolArguments) -> None:
    """Compare, print the table, and write it where asked for."""
    from gputwin.autoscaling.nodes.read import open_pools
    from gputwin.autoscaling.nodes.report import checkpoints_of, report_pools, supply_of, write_report
    from gputwin.traces.locate import open_trace

    pools = open_pools(given.cluster)
    supply = supply_of(given.availability, given.zones or (), given.hazard)
    with progress(given.quiet or given.json) as step:
        report = report_pools(
            pools,
            open_trace(given.trace, given.format, step),
            supply,
            checkpoints_of(given.checkpoint, supply),
            rules=given.rules,
            shares=given.spot,
            seeds=given.seeds,
            seed=given.seed,
            step=step,
        )
        if given.output is not None:
            write_report(report, given.output)
    data = {**report.to_json(), "directory": None if given.output is None else str(given.output)}
    emit(data, given.json, lambda: _render(report, given.output))


def _render(report: PoolReport, output: Path | None) -> None:
    from gputwin.core.units import format_duration

    say(report.headline())
    rows = [
        [
            row.rule,
            percent(row.spot_share),
            f"{row.cost:,.0f}" if row.runs == 1 else f"{row.cost:,.0f} ({row.least_cost:,.0f}–{row.most_cost:,.0f})",
            percent(row.cost / report.fixed_cost),
            percent(row.idle_share),
            f"{row.mean_nodes:,.0f}",
            format_duration(row.mean_wait_seconds),
            format_duration(row.p95_wait_seconds),
            format_duration(row.p99_wait_seconds),
            f"{row.launches:,.0f}",
            f"{row.reclaims:,.0f}",
            f"{row.stops:,.0f}",
            f"{row.lost_gpu_hours:,.0f}",
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
    ]
    table("Fixed cluster and autoscaled pools (cost over the span of the trace)", columns, rows)
    for sentence in report.notes():
        say(f"- {sentence}")
    if output is not None:
        say(f"written: {output}")
