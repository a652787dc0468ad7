"""How a run looks in a terminal: the verdict, waits and their causes, the cluster, tenants."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from gputwin.cli.console import say, show, table
from gputwin.cli.settings import settings
from gputwin.core.units import percent

if TYPE_CHECKING:
    from gputwin.simulation.result import SimulationResult
    from gputwin.simulation.waits_by_tenant import TenantView
    from gputwin.studies.comparison import Comparison


def show_run(
    result: SimulationResult, view: TenantView, output: Path | None, compared: Comparison | None = None
) -> None:
    """Print a run; where another is given, how it compares comes first and the run itself is cut short."""
    from gputwin.cli.show import show_comparison
    from gputwin.core.table import Table
    from gputwin.report.sections.quota_tree import quota_parts
    from gputwin.report.sections.run import causes_tables, waits_table
    from gputwin.simulation.verdict import rules_words, run_verdict

    s, m = result.summary, result.manifest
    if compared is not None:
        show_comparison(compared)
    say(run_verdict(result).text)
    if view.tenants.height > 1:
        for sentence in view.sentences():
            say(f"· {sentence}")
    say(f"{s['jobs']:,} jobs on {m['cluster']} ({m['nodes']:,} nodes, {m['gpus']:,} GPUs): {rules_words(result)}")
    if s["jobs_already_running"]:
        say(
            f"{s['jobs_already_running']:,} of them ran when the trace began: they hold their place from then on and "
            "count as waiting only where there was no room for them"
        )
    brief = compared is not None and not settings().full
    if not brief:
        show(waits_table(result))
    for shown in causes_tables(result):
        show(shown)
    if brief:
        say("the run's quantiles, cluster, stops and tenants: --full")
    else:
        _show_details(s, view)
        for part in quota_parts(result):
            if isinstance(part, Table):
                show(part)
            else:
                say(part.text)
    for why, count in s["tasks_left_out"].items():
        say(f"{count:,} tasks not simulated: {why}")
    if output is not None:
        say(f"run: {output}")


def _show_details(s: dict[str, Any], view: TenantView) -> None:
    """Print outcomes, the cluster, what interrupted jobs, power and tenants."""
    from gputwin.analysis.words import share
    from gputwin.cli.tenants import show_tenant_tables
    from gputwin.core.units import format_duration
    from gputwin.report.sections.tenants import NO_TENANTS
    from gputwin.simulation.verdict import shares_words

    figures = [["outcomes", ", ".join(f"{k.replace('_', ' ')} {v:,}" for k, v in s["outcomes"].items())]]
    figures += [["makespan", format_duration(s["makespan_seconds"])]]
    figures += [[f"{_resource(k)} allocated", share(v)] for k, v in s["allocation"].items() if k != "gpu_unnamed"]
    figures += [["GPUs lost to fragmentation", share(s["fragmentation"])]]
    figures += [
        [f"{_resource(k)} allocated but unused", percent(v, 1)] for k, v in (s["unused_allocation"] or {}).items()
    ]
    for key, label in (
        ("jain_fairness", f"fairness between {view.who}s (1: equal)"),
        ("load_balance", "load balance"),
        ("throughput_jobs_per_hour", "jobs per hour"),
    ):
        if s[key] is not None:
            figures.append([label, f"{s[key]:,.3f}"])
    if s["sla_violations"] is not None:
        figures.append(["jobs over the SLA", f"{s['sla_violations']:,}"])
    table("Cluster", ["what", "value"], figures)
    if line := shares_words(s.get("tenant_shares"), view.who):
        say(line)
    _render_lives(s)
    _render_power(s)
    if view.tenants.height > 1:
        if view.who != "tenant":
            say(NO_TENANTS)
        show_tenant_tables(view.tenants, view.blocking, who=view.who)


def _render_power(summary: dict[str, Any]) -> None:
    """Print what drew how much."""
    power = summary.get("power")
    if not power:
        return
    total = max(power["energy_kwh"], 1e-12)
    parts = {"servers": "servers_kwh", "GPUs idle": "idle_gpus_kwh", "contexts": "contexts_kwh", "load": "load_kwh"}
    rows = [[name, f"{power[key]:,.1f}", percent(power[key] / total, 1)] for name, key in parts.items()]
    table("Energy, kWh", ["part", "kWh", "share"], rows)
    say(
        f"{power['energy_kwh']:,.1f} kWh, {power['mean_watts'] / 1000:,.1f} kW on average, {power['carbon_kg']:,.1f} kg CO2"
    )
    if power["assumed_gpu_models"]:
        say(f"draw of these GPU models is assumed: {', '.join(power['assumed_gpu_models'])}")


def _render_lives(summary: dict[str, Any]) -> None:
    """Print what interrupted jobs, and where the time from submission to end went."""
    from gputwin.simulation.completion import mean_parts

    rows = mean_parts(summary)
    if not rows:
        return
    table("Where the time from submission to end went", ["part", "mean per finished job", "share"], rows)
    _render_goodput(summary)
    writers = summary.get("checkpoint_writers")
    if writers and writers["saves"]:
        say(
            f"checkpoints: {writers['saves']:,.0f} saves; at most {writers['peak']:,.0f} jobs save at the same time, "
            f"{writers['mean']:.1f} on average while any does"
        )
    stops = summary["stops"]
    if stops:
        say("stops: " + ", ".join(f"{why} {count:,}" for why, count in stops.items()))
    ratio = summary.get("effective_training_time_ratio")
    if stops and ratio is not None:
        say(f"effective training time: {percent(ratio, 1)} of the GPU time that finished jobs held")


def _render_goodput(summary: dict[str, Any]) -> None:
    """Print what became of the GPU-hours held, where not all were useful."""
    from gputwin.simulation.goodput import PARTS

    goodput = summary.get("goodput")
    if not goodput or goodput["goodput"] is None:
        return
    hours = {name: goodput[f"{name}_gpu_hours"] for name in PARTS}
    held = max(sum(max(value, 0.0) for value in hours.values()), 1e-12)
    rows = [[PARTS[name], f"{value:,.1f}", percent(value / held, 1)] for name, value in hours.items() if value]
    table("Goodput: GPU-hours held", ["part", "GPU-hours", "share"], rows)


def _resource(name: str) -> str:
    """Return a resource as people say it: "GPUs", "GPUs of V100", "CPU"."""
    known = {"gpu": "GPUs", "cpu": "CPU", "rdma": "RDMA"}
    model = name.removeprefix("gpu_")
    return known.get(name) or (f"GPUs of {model}" if name.startswith("gpu_") else name.replace("_", " "))
