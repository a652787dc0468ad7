"""How results look in a terminal: one function per result, shared by the verbs that print it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gputwin.cli.console import say, show, table
from gputwin.core.units import format_count, format_duration, percent

if TYPE_CHECKING:
    import polars as pl

    from gputwin.simulation.cluster import Cluster
    from gputwin.simulation.load import LoadCheck
    from gputwin.studies.comparison import Comparison
    from gputwin.traces.dataset import TraceMeta
    from gputwin.traces.describe import Description
    from gputwin.traces.quality import Finding


def ingest_json(meta: TraceMeta, output: Path | None) -> dict[str, Any]:
    """Return the ingest of a trace as plain data."""
    return {
        "source": meta.source,
        "rows_read": meta.rows_read,
        "rows_kept": meta.rows_kept,
        "rows_dropped": meta.rows_dropped,
        "tables": dict(meta.tables),
        "findings": [f.to_json() for f in meta.findings],
        "fingerprint": meta.fingerprint,
        "trace_directory": None if output is None else str(output),
    }


def show_ingest(meta: TraceMeta, output: Path | None) -> None:
    """Print what was read, what was kept, and the quality report."""
    say(f"{meta.title} ({meta.source})")
    say(f"rows read {meta.rows_read:,} = kept {meta.rows_kept:,} + dropped {meta.rows_dropped:,}")
    table("Tables", ["table", "rows"], [[n, f"{rows:,}"] for n, rows in meta.tables.items()])
    show_findings(meta.findings)
    if output is not None:
        say(f"trace: {output}")


def show_findings(findings: Sequence[Finding]) -> None:
    """Print the quality report."""
    if not findings:
        say("Quality: nothing found.")
        return
    rows = [
        [f.rule, f.table, f"{f.count:,}", f.action, f"{f.title}{f' ({f.detail})' if f.detail else ''}"]
        for f in findings
    ]
    table("Quality", ["rule", "where", "rows", "action", "what"], rows)


def show_description(d: Description) -> None:
    """Print what is in a trace."""
    say(f"{d.title} ({d.source}), {format_duration(d.span_seconds)}, clock {d.clock}, zone {d.zone}")
    counts = {
        "tasks": d.tasks,
        "jobs": d.jobs,
        "instances that tasks are made of": d.instances,
        "records of single instances": d.instance_records,
        "applications": d.applications,
        "users": d.users,
        "groups": d.groups,
        "tenants": d.tenants,
        "nodes": d.nodes,
        "GPUs": d.gpus,
        "requests": d.requests,
        "records of what was used": d.tables.get("usage", 0),
        "tasks complete": d.tasks_complete,
        "tasks without submit and start": d.tasks_without_submit_and_start,
        "tasks running at the beginning": d.tasks_already_running,
        "tasks running at the end": d.tasks_running,
        "tasks never started": d.tasks_never_started,
        "tasks without times at which they ran": d.tasks_of_unknown_life,
    }
    table("Counts", ["what", "how many"], [[k, format_count(v)] for k, v in counts.items() if v])
    if d.gpu_hours is not None and d.gpus_held_mean is not None and d.gpus_held_most is not None:
        say(
            f"GPU-hours held: {d.gpu_hours:,.0f}; on average {d.gpus_held_mean:,.1f} GPUs over a window of "
            f"{format_duration(d.window_seconds)}, at most {d.gpus_held_most:,.1f} at one time"
        )
    for note in d.notes:
        say(f"{note[:1].upper()}{note[1:]}.")
    rows = []
    for name, spread, form in (
        ("wait", d.wait_seconds, format_duration),
        ("runtime", d.runtime_seconds, format_duration),
        ("GPUs per task", d.gpus_requested, "{:.4g}".format),
    ):
        if spread:
            cells = [form(spread[k]) for k in ("mean", "p50", "p95", "p99", "max")]
            rows.append([name, format_count(spread["count"]), *cells, percent(spread["zero_share"], 1)])
    if rows:
        table("Distributions", ["what", "tasks", "mean", "p50", "p95", "p99", "max", "zero"], rows)
    if d.gpu_models:
        table("GPUs", ["model", "GPUs"], [[k, format_count(v)] for k, v in d.gpu_models.items()])
    if d.metrics:
        table("Series", ["metric", "samples"], [[k, format_count(v)] for k, v in d.metrics.items()])


def check_json(cluster: Cluster, check: LoadCheck) -> dict[str, Any]:
    """Return a load check against a cluster as plain data."""
    return {"cluster": cluster.name, "nodes": cluster.node_count, "gpus": cluster.gpu_count, **check.to_json()}


def show_check(cluster: Cluster, check: LoadCheck) -> None:
    """Print the verdict, offered load against capacity, and tasks that never fit."""
    from gputwin.report.sections.load import load_table, never_table

    say(check.verdict)
    for text in check.window.sentences():
        say(text)
    say(f"{cluster.name}: {cluster.node_count:,} nodes, {cluster.gpu_count:,} GPUs")
    if check.loads:
        show(load_table(check.loads))
    if not check.never_fit.is_empty():
        show(never_table(check))


def show_fidelity(fidelity: pl.DataFrame) -> None:
    """Print how a generated trace compares with its original: generated / original, and single published figures."""
    from gputwin.traces.synthetic.fidelity import LOAD_ROW

    shown = ("mean", "p50", "p90", "p99")
    measured, published, loads = [], [], []
    for r in fidelity.to_dicts():
        if r["marginal"].startswith(LOAD_ROW):
            figure = f"{r['marginal'].removeprefix(LOAD_ROW)}, {r['unit']}"
            loads.append([figure, _figure(r["mean"]), _figure(r["mean_reference"]), r["source"]])
        elif r["ks"] is None:
            published.append([r["marginal"], _figure(r["mean"]), _figure(r["mean_reference"]), r["source"]])
        else:
            pairs = [f"{_figure(r[s])} / {_figure(r[f'{s}_reference'])}" for s in shown]
            measured.append([f"{r['marginal']}, {r['unit']}", f"{r['ks']:.3f}", *pairs])
    table("Fidelity: generated / original", ["quantity", "KS", *shown], measured)
    if published:
        table("Published figures", ["figure", "generated", "published", "source"], published)
    if loads:
        table("Load offered to its own cluster", ["load", "generated", "expected", "source"], loads)


def _figure(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def comparison_json(compared: Comparison) -> dict[str, Any]:
    """Return scenarios side by side as plain data."""
    from gputwin.studies.comparison.tenants import waits_by_tenant
    from gputwin.studies.comparison.verdict import recommendation

    return {
        "verdict": recommendation(compared),
        **compared.to_json(),
        "mean_wait_seconds_by_tenant": waits_by_tenant(compared).to_dicts(),
    }


def show_comparison(compared: Comparison) -> None:
    """Print which scenario to choose, scenarios side by side, and the differences to the first with their intervals."""
    from gputwin.core.table import Table
    from gputwin.report.sections.comparison import differences, side_by_side
    from gputwin.report.sections.tenants import compared_tenants
    from gputwin.studies.comparison.tenants import tenant_changes
    from gputwin.studies.comparison.verdict import recommendation

    say(recommendation(compared))
    for sentence in tenant_changes(compared):
        say(f"· {sentence}")
    show(side_by_side(compared))
    if compared.differences.height:
        show(differences(compared))
    for part in compared_tenants(compared):
        if isinstance(part, Table):
            show(part)
