"""A run as a notebook shows it: what was run, how long jobs waited, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gputwin.core.units import format_duration, percent
from gputwin.traces.notebook import html_table, html_text

if TYPE_CHECKING:
    from gputwin.simulation.result import SimulationResult

_SPREAD = ("mean", "p50", "p95", "p99")


def run_lines(result: SimulationResult) -> list[str]:
    """Return the run in a few lines: its rules, waits, GPU allocation and main causes of waiting."""
    summary, rules = result.summary, result.manifest["scheduler"]
    lines = [f"order {rules['order']}, backfill {rules['backfill']}, placement {rules['placement']}"]
    for name, key in (("wait", "wait_seconds"), ("completion", "jct_seconds")):
        if summary[key]:
            lines.append(f"{name}: " + ", ".join(f"{q} {format_duration(summary[key][q])}" for q in _SPREAD))
    if "gpu" in summary["allocation"]:
        lines.append(f"GPUs allocated: {percent(summary['allocation']['gpu'], 1)}")
    causes = {name: value for name, value in (summary["wait_causes_seconds"] or {}).items() if value > 0}
    if causes:
        total, ranked = sum(causes.values()), sorted(causes.items(), key=lambda c: -c[1])[:3]
        lines.append("why jobs waited: " + ", ".join(f"{n.replace('_', ' ')} {percent(v / total)}" for n, v in ranked))
    return lines


def run_html(result: SimulationResult) -> str:
    """Return the run as a small piece of HTML without script or style sheet; every text is escaped."""
    summary, manifest = result.summary, result.manifest
    rules = manifest["scheduler"]
    what = f"{summary['jobs']:,} jobs on {manifest['cluster']} ({manifest['nodes']:,} nodes, {manifest['gpus']:,} GPUs)"
    how = (
        f"order {rules['order']}, backfill {rules['backfill']}, placement {rules['placement']}, seed {manifest['seed']}"
    )
    parts = [f"<p><b>{html_text(what)}</b><br>{html_text(how)}</p>"]
    spreads = [
        (name, *(format_duration(summary[key][q]) for q in _SPREAD))
        for name, key in (("wait", "wait_seconds"), ("completion", "jct_seconds"))
        if summary[key]
    ]
    parts.append(html_table(("", *_SPREAD), spreads))
    shares = {f"allocation of {name}": value for name, value in summary["allocation"].items()}
    shares["GPU fragmentation"] = summary["fragmentation"]
    parts.append(html_table(("cluster", "share"), [(name, percent(value, 1)) for name, value in shares.items()]))
    causes = {name: value for name, value in (summary["wait_causes_seconds"] or {}).items() if value > 0}
    total = sum(causes.values())
    rows = [(name.replace("_", " "), percent(value / total, 1)) for name, value in causes.items()]
    if rows:
        parts.append(html_table(("why jobs waited", "share"), rows))
    return f"<div>{''.join(parts)}</div>"
