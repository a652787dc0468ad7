"""The table of a fixed cluster against autoscaled pools: one row per rule and share of spot nodes, over several seeds."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from gputwin.autoscaling.nodes.choose import Choice
from gputwin.autoscaling.nodes.manifest import node_pool_text
from gputwin.autoscaling.nodes.options import PLACEMENT, checked_rules, options_of
from gputwin.autoscaling.nodes.spec import NodePools, layout_of
from gputwin.autoscaling.nodes.study import PoolOutcome, compare_pools
from gputwin.autoscaling.nodes.supply import SpotSupply
from gputwin.autoscaling.pools.karpenter import Karpenter
from gputwin.core.errors import UserError
from gputwin.core.units import format_duration, percent
from gputwin.simulation.cause_words import CAUSE_WORDS
from gputwin.simulation.interruptions import Checkpoints
from gputwin.traces.dataset import Trace

TABLE_FILE, EVENTS_FILE, CHOICE_FILE = "pools.json", "node_events.parquet", "choice.json"
MANIFEST_FILE = "karpenter.yaml"


@dataclass(frozen=True)
class PoolRow:
    """Means over the runs of one rule and one share of spot nodes; costs also as their range."""

    rule: str
    spot_share: float
    runs: int
    cost: float
    least_cost: float
    most_cost: float
    idle_share: float
    spot_cost_share: float
    mean_nodes: float
    mean_wait_seconds: float
    p95_wait_seconds: float
    least_p95_wait_seconds: float
    most_p95_wait_seconds: float
    p99_wait_seconds: float
    least_p99_wait_seconds: float
    most_p99_wait_seconds: float
    startup_wait_seconds: float
    launches: float
    removals: float
    reclaims: float
    refused: float
    longest_chain: int
    stops: float
    lost_gpu_hours: float
    """GPU-hours of work done again."""
    overhead_gpu_hours: float
    """GPU-hours of saving and restarting."""
    unfinished: float
    gpu_hours: float
    costs: tuple[float, ...]
    """Of each run, by seed; so are the waits below."""
    p95_waits_seconds: tuple[float, ...]
    p99_waits_seconds: tuple[float, ...]
    stopped_jobs: float
    delay_quantiles: dict[str, float]
    """Of the jobs that were stopped: how much longer each took than its work alone, s; mean over runs."""
    slow_wait_causes: dict[str, float]
    """Mean seconds by cause that the slowest 1 % of jobs waited."""
    at_limit: dict[str, float]
    """Share of the decisions made while jobs waited at which no more nodes of a type could be had."""

    def explain_slowest(self) -> str | None:
        """Return why the slowest 1 % of jobs waited, in a sentence; None where none waited."""
        total = sum(self.slow_wait_causes.values())
        if total <= 0:
            return None
        causes = sorted(self.slow_wait_causes.items(), key=lambda cause: -cause[1])
        parts = ", ".join(f"{percent(s / total)} {CAUSE_WORDS[name]}" for name, s in causes if s / total >= 0.005)
        full = [name for name, share in self.at_limit.items() if share >= 0.5]
        limit = f"; at their largest size at most decisions while jobs waited: {', '.join(full)}" if full else ""
        who = self.rule if self.spot_share == 0 else f"{self.rule}, {percent(self.spot_share)} spot"
        return f"{who}: the slowest 1 % of jobs waited {format_duration(total)} on average: {parts}{limit}."


@dataclass(frozen=True)
class PoolReport:
    """All rows; the first is the fixed cluster."""

    pools: NodePools
    jobs: int
    span_seconds: float
    supply: SpotSupply
    rows: tuple[PoolRow, ...]
    outcomes: tuple[PoolOutcome, ...]

    @property
    def fixed_cost(self) -> float:
        """Return what the fixed cluster costs."""
        return max(self.rows[0].cost, 1e-12)

    def headline(self) -> str:
        """Return what was compared, in a sentence."""
        nodes = sum(pool.group.count for pool in self.pools.groups)
        span, boot = format_duration(self.span_seconds), format_duration(self.pools.boot_seconds)
        return f"{self.jobs:,} jobs in {span}; up to {nodes:,} nodes; a boot takes {boot}"

    def notes(self) -> list[str]:
        """Return what a reader should know of the figures."""
        found = [
            "Cost is what nodes are paid for between the first and the last submission, booting included.",
            self.pools.cost_note(),
        ]
        if any(row.spot_share > 0 for row in self.rows) and not (self.supply.zones or self.supply.hazard):
            found.append(
                "Spot nodes are taken to be there always and never lost; --hazard and --availability say otherwise."
            )
        if self.supply.zones:
            shares = [zone.mean_share for zone in self.supply.zones]
            found.append(
                f"Spot nodes are dealt out over {len(shares)} zones; on average "
                f"{percent(np.mean(shares))} of them can be had "
                f"({percent(min(shares))} to {percent(max(shares))} by zone)."
            )
        if self.supply.hazard is not None:
            rates = self.supply.hazard.per_hour
            how = f", {rates.values.min():.3g} to {rates.values.max():.3g}" if rates.values.size > 1 else ""
            found.append(f"A running spot node is lost {rates.mean:.3g} times an hour on average{how}.")
        risky = [row for row in self.rows if row.runs > 1]
        found += [
            f"{row.rule}, {percent(row.spot_share)} spot, {row.runs} runs: "
            f"cost {row.least_cost:,.0f} to {row.most_cost:,.0f}, "
            f"p95 wait {_between(row.least_p95_wait_seconds, row.most_p95_wait_seconds)}, "
            f"p99 wait {_between(row.least_p99_wait_seconds, row.most_p99_wait_seconds)}."
            for row in risky
        ]
        found += [
            f"{row.rule}, {percent(row.spot_share)} spot: {mean_of(row.stopped_jobs)} jobs "
            f"({percent(row.stopped_jobs / self.jobs, 1)}) were stopped; "
            f"work done again, saves and restarts took each {format_duration(row.delay_quantiles['p50'])} (median), "
            f"{format_duration(row.delay_quantiles['p95'])} (p95), {format_duration(row.delay_quantiles['max'])} (most)."
            for row in self.rows
            if row.delay_quantiles
        ]
        found += [sentence for row in self.rows if (sentence := row.explain_slowest()) is not None]
        found += [
            f"{row.rule}, {percent(row.spot_share)} spot: {mean_of(row.unfinished)} jobs were not served."
            for row in self.rows
            if row.unfinished
        ]
        return found

    def to_json(self) -> dict[str, Any]:
        """Return the table as plain data."""
        return {
            "jobs": self.jobs,
            "span_seconds": self.span_seconds,
            "zones": [zone.name for zone in self.supply.zones],
            "rows": [asdict(row) for row in self.rows],
        }


def mean_of(count: float) -> str:
    """Return a mean number of jobs or nodes over runs, with one decimal where it is small and not whole."""
    return f"{count:,.1f}" if count < 100 and round(count, 1) != round(count) else f"{count:,.0f}"


def _between(least: float, most: float) -> str:
    """Return the times from `least` to `most`, s, in words."""
    return f"{format_duration(least)} to {format_duration(most)}"


def report_pools(
    pools: NodePools,
    trace: Trace,
    supply: SpotSupply,
    checkpoints: Checkpoints,
    *,
    rules: Sequence[str] | None = None,
    shares: Sequence[float] | None = None,
    seeds: int = 3,
    seed: int = 0,
    placement: str = PLACEMENT,
    step: Callable[[str], None] = lambda text: None,
) -> PoolReport:
    """Return the table for these rules and shares of spot nodes; runs with spot nodes are made with several seeds."""
    chosen = checked_rules(rules)
    if seeds < 1:
        raise UserError(f"--seeds is {seeds}; give 1 or more")
    for share in shares or ():
        layout_of(pools, share)
    options = options_of(supply, checkpoints, seed, placement)
    outcomes = compare_pools(
        pools,
        trace,
        options,
        rules=chosen,
        spot_shares=tuple(shares or (0.0,)),
        seeds=tuple(range(seed, seed + seeds)),
        step=step,
    )
    begin, end = outcomes[0].bill.window
    kinds = dict.fromkeys((o.score.rule, o.score.spot_share) for o in outcomes)
    rows = tuple(_row([o for o in outcomes if (o.score.rule, o.score.spot_share) == kind]) for kind in kinds)
    return PoolReport(pools, outcomes[0].jobs, end - begin, supply, rows, tuple(outcomes))


def _row(outcomes: Sequence[PoolOutcome]) -> PoolRow:
    scores = [o.score for o in outcomes]

    def mean(name: str) -> float:
        return float(np.mean([getattr(s, name) for s in scores]))

    costs, p95 = [s.cost for s in scores], [s.p95_wait_seconds for s in scores]
    p99 = [s.p99_wait_seconds for s in scores]
    total = max(sum(costs), 1e-12)
    return PoolRow(
        scores[0].rule,
        scores[0].spot_share,
        len(scores),
        mean("cost"),
        min(costs),
        max(costs),
        sum(s.idle_cost for s in scores) / total,
        sum(s.spot_cost for s in scores) / total,
        mean("mean_nodes"),
        mean("mean_wait_seconds"),
        mean("p95_wait_seconds"),
        min(p95),
        max(p95),
        mean("p99_wait_seconds"),
        min(p99),
        max(p99),
        mean("startup_wait_seconds"),
        mean("launches"),
        mean("removals"),
        mean("reclaims"),
        mean("refused"),
        max(s.longest_chain for s in scores),
        mean("stops"),
        mean("lost_gpu_hours"),
        mean("overhead_gpu_hours"),
        mean("unfinished"),
        mean("gpu_hours"),
        tuple(costs),
        tuple(p95),
        tuple(p99),
        mean("stopped_jobs"),
        _means([s.delay_quantiles for s in scores if s.delay_quantiles]),
        _means([s.slow_wait_causes for s in scores]),
        _means([s.at_limit for s in scores]),
    )


def _means(found: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the mean of each entry; what is missing counts as 0."""
    names = dict.fromkeys(name for one in found for name in one)
    return {name: float(np.mean([one.get(name, 0.0) for one in found])) for name in names}


def write_report(report: PoolReport, folder: Path) -> None:
    """Write the table as JSON, every start, removal and reclaim with its reason as Parquet, and Karpenter's NodePool."""
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(report.to_json(), indent=1, ensure_ascii=False)
    (folder / TABLE_FILE).write_text(text + "\n", encoding="utf-8")
    rows = [
        {"rule": o.score.rule, "spot_share": o.score.spot_share, "seed": o.score.seed, **asdict(event)}
        for o in report.outcomes
        for event in o.events
    ]
    schema = {
        "rule": pl.String,
        "spot_share": pl.Float64,
        "seed": pl.Int64,
        "time": pl.Float64,
        "node": pl.Int64,
        "type": pl.String,
        "what": pl.String,
        "reason": pl.String,
    }
    pl.DataFrame(rows, schema=schema).write_parquet(folder / EVENTS_FILE)
    karpenter = [row for row in report.rows if row.rule == Karpenter.name]
    if karpenter:
        manifest = node_pool_text(report.pools, with_spot=any(row.spot_share > 0 for row in karpenter))
        (folder / MANIFEST_FILE).write_text(manifest, encoding="utf-8")


def write_choice(choice: Choice, folder: Path) -> None:
    """Write what was tried, chosen and shown as JSON."""
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(choice.to_json(), indent=1, ensure_ascii=False)
    (folder / CHOICE_FILE).write_text(text + "\n", encoding="utf-8")
