"""`gputwin simulate`: one scenario."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gputwin.cli.console import (
    Format,
    Json,
    Quiet,
    Seed,
    announce_compilation,
    emit,
    progress,
    say,
    show,
    table,
    warn,
    warn_of_overload,
)
from gputwin.cli.options import Backfill, ClusterOption, Order, Placement, Policies, TraceArgument, scenario_from

HAS_TABLE = True

if TYPE_CHECKING:
    from gputwin.cli.progress import Step
    from gputwin.simulation.engine.world import World
    from gputwin.simulation.result import SimulationResult
    from gputwin.simulation.waits_by_tenant import TenantView


def run(
    context: typer.Context,
    trace: TraceArgument,
    cluster: ClusterOption = None,
    order: Order = "fifo",
    placement: Placement = "first-fit",
    backfill: Backfill = "greedy",
    share: Annotated[
        str, typer.Option("--share", help="GPU shares: fraction, or exclusive (rounded up).")
    ] = "fraction",
    predict: Annotated[
        str,
        typer.Option("--predict", help="Durations believed: oracle, requested, a saved model, or a file of `predict`."),
    ] = "oracle",
    fairness: Annotated[
        str, typer.Option("--fairness", help="Whose turn it is; NAME or NAME:parameter=value; see `gputwin policies`.")
    ] = "",
    planner: Annotated[
        str, typer.Option("--planner", help="Who runs on which GPU model, planned at rounds; see `gputwin policies`.")
    ] = "",
    round: Annotated[str, typer.Option("--round", help="Length of a planner's round.")] = "6m",
    preempt: Annotated[
        str, typer.Option("--preempt", help="Who must yield to a job that does not fit; see `gputwin policies`.")
    ] = "",
    speed: Annotated[str, typer.Option("--speed", help="Work a second by GPU model, as in V100=1,T4=0.4.")] = "",
    checkpoint: Annotated[
        str,
        typer.Option(
            "--checkpoint", help="As in interval=30m,save=20s,restart=1m; interval=young, daly or exact with --mtbf."
        ),
    ] = "",
    mtbf: Annotated[str | None, typer.Option("--mtbf", help="Mean time between failures of a node, as in 30d.")] = None,
    repair: Annotated[str, typer.Option("--repair", help="Mean time to repair a node.")] = "1h",
    elastic: Annotated[
        str, typer.Option("--elastic", help="Shrink running jobs: least_share=0.5,scaling_exponent=0.8.")
    ] = "",
    power: Annotated[bool, typer.Option("--power", help="Tell energy and carbon.")] = False,
    power_limit: Annotated[
        str, typer.Option("--power-limit", help="Watts a GPU may draw, by model, as in V100=150; slows jobs there.")
    ] = "",
    carbon: Annotated[
        str, typer.Option("--carbon", help="Grid's g/kWh, or a CSV of time_seconds,grams_per_kwh.")
    ] = "400",
    policies: Policies = None,
    resolution: Annotated[str | None, typer.Option("--resolution", help="Step of the series, as in 5m.")] = None,
    sla: Annotated[str | None, typer.Option("--sla", help="Count jobs that wait longer, as in 10m.")] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Directory to save the run in.")] = None,
    format: Format = None,
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run a trace's jobs on a cluster under one set of rules.

    TRACE may be a scenario, a YAML file that says all of it; a saved run has its own in scenario.yaml.
    A saved model predicts each job as of its submission in the trace: from its history and what had ended by then.

    Examples:

        gputwin simulate "synthetic:pai2020?jobs=100000" --cluster pai2020 --order sjf --backfill greedy -o run

        gputwin simulate philly.csv --cluster homogeneous:300x8 --backfill easy --json

        gputwin simulate trace --order sjf --predict profile/model

        gputwin simulate trace --placement mine --policies my_policy.py

        gputwin simulate trace --order srtf --backfill greedy --checkpoint interval=30m,save=20s,restart=1m --mtbf 30d

        gputwin simulate trace --backfill greedy --fairness drf

        gputwin simulate trace --planner max-min-speed --speed V100=1,T4=0.4 --checkpoint save=20s,restart=1m

        gputwin simulate run/scenario.yaml -o again
    """
    from gputwin.simulation.simulate import cluster_of_scenario, part_of, simulate_scenario, trace_of
    from gputwin.simulation.use import use_of
    from gputwin.simulation.waits_by_tenant import by_tenant
    from gputwin.traces.locate import open_trace

    fields = {
        "format": format,
        "cluster": cluster,
        "order": order,
        "backfill": backfill,
        "placement": placement,
        "fairness": fairness or None,
        "planner": {"policy": planner, "round_seconds": _seconds(round)} if planner else None,
        "preemption": preempt,
        "sharing": share,
        "speed": _speeds(speed),
        "elasticity": _settings("--elastic", elastic),
        "faults": None if mtbf is None else {"mtbf_seconds": _seconds(mtbf), "repair_seconds": _seconds(repair)},
        "checkpoints": _checkpoints(checkpoint),
        "power": _power(power, power_limit, carbon),
        "prediction": predict,
        "seed": seed,
        "resolution_seconds": None if resolution is None else _seconds(resolution),
        "sla_wait_seconds": None if sla is None else _seconds(sla),
    }
    scenario = scenario_from(context, trace, policies, fields)
    announce_compilation(quiet)
    with progress(quiet or json) as step:
        opened = trace_of(scenario, open_trace(scenario.trace, scenario.format, step))
        target = cluster_of_scenario(scenario, opened)
        warnings = warn_of_overload(part_of(scenario, opened), target, scenario.load_scale)
        step("simulating")
        result = simulate_scenario(scenario, opened, target, note=warn, told=_told(step))
        if output is not None:
            step("saving the run")
            result.save(output)
        step("charging waits to tenants")
        view = by_tenant(result, use_of(opened))
    directory = None if output is None else str(output)
    data = {
        **result.summary,
        **view.to_json(),
        "manifest": result.manifest,
        "warnings": warnings,
        "run_directory": directory,
    }
    emit(data, json, lambda: _render(result, view, output), lambda: result.jobs)


def _told(step: Step) -> Callable[[World], None]:
    """Return a function that shows how many of the jobs have arrived."""
    from gputwin.simulation.engine.world import ARRIVAL

    def tell(world: World) -> None:
        step("simulating", min(int(world.loop[ARRIVAL]) / max(world.queue.jobs.size, 1), 1.0))

    return tell


def _seconds(text: str) -> float:
    from gputwin.core.units import parse_duration

    return parse_duration(text)


def _settings(option: str, text: str) -> dict[str, str] | None:
    """Return the settings of "name=value,…"; None where nothing is given."""
    from gputwin.core.errors import UserError

    if not text:
        return None
    parts = [part.partition("=") for part in text.split(",")]
    if not all(name and equals and value for name, equals, value in parts):
        raise UserError(f"{option} {text}: write name=value,name=value")
    return {name.strip(): value.strip() for name, _, value in parts}


def _speeds(text: str) -> dict[str, object] | None:
    found = _settings("--speed", text)
    return None if found is None else {"by_model": found}


def _checkpoints(text: str) -> dict[str, object] | None:
    from gputwin.simulation.checkpointing import RULES

    found = _settings("--checkpoint", text)
    if found is None:
        return None
    if found.get("interval") in RULES:
        found["rule"] = found.pop("interval")
    times = ("interval", "save", "restart", "resize")
    return {f"{k}_seconds" if k in times else k: _seconds(v) if k in times else v for k, v in found.items()}


def _power(asked: bool, limits: str, carbon: str) -> dict[str, object] | None:
    found = _settings("--power-limit", limits)
    if not asked and found is None:
        return None
    return {"limits": found or {}, "carbon": carbon}


def _render_power(summary: dict[str, Any]) -> None:
    """Print what drew how much."""
    power = summary.get("power")
    if not power:
        return
    total = max(power["energy_kwh"], 1e-12)
    parts = {"servers": "servers_kwh", "GPUs idle": "idle_gpus_kwh", "contexts": "contexts_kwh", "load": "load_kwh"}
    rows = [[name, f"{power[key]:,.1f}", f"{power[key] / total:.1%}"] for name, key in parts.items()]
    table("Energy, kWh", ["part", "kWh", "share"], rows)
    say(
        f"{power['energy_kwh']:,.1f} kWh, {power['mean_watts'] / 1000:,.1f} kW on average, {power['carbon_kg']:,.1f} kg CO2"
    )
    if power["assumed_gpu_models"]:
        say(f"draw of these GPU models is assumed: {', '.join(power['assumed_gpu_models'])}")


def _render_lives(summary: dict[str, Any]) -> None:
    """Print what interrupted jobs, and where the time from submission to end went."""
    from gputwin.core.units import format_duration

    parts = summary.get("completion_parts_seconds")
    if not parts:
        return
    total = sum(parts.values())
    rows = [
        [name.replace("_", " "), format_duration(abs(v) / max(summary["jobs"], 1)), f"{v / total:.1%}"]
        for name, v in parts.items()
        if v
    ]
    table("Where the time from submission to end went", ["part", "mean per job", "share"], rows)
    stops = summary["stops"]
    if stops:
        say("stops: " + ", ".join(f"{why} {count:,}" for why, count in stops.items()))


def _render(result: SimulationResult, view: TenantView, output: Path | None) -> None:
    from gputwin.cli.tenants import show_tenants
    from gputwin.core.units import format_duration
    from gputwin.report.sections.run import causes_tables, waits_table
    from gputwin.simulation.verdict import rules_words, run_verdict

    s, m = result.summary, result.manifest
    say(run_verdict(result).text)
    say(f"{s['jobs']:,} jobs on {m['cluster']} ({m['nodes']:,} nodes, {m['gpus']:,} GPUs): {rules_words(result)}")
    if s["jobs_already_running"]:
        say(
            f"{s['jobs_already_running']:,} of them ran when the trace began: they hold their place from then on and "
            "count as waiting only where there was no room for them"
        )
    show(waits_table(result))
    for shown in causes_tables(result):
        show(shown)
    figures = [["outcomes", ", ".join(f"{k.replace('_', ' ')} {v:,}" for k, v in s["outcomes"].items())]]
    figures += [["makespan", format_duration(s["makespan_seconds"])]]
    figures += [[f"{_resource(k)} allocated", f"{v:.1%}"] for k, v in s["allocation"].items()]
    figures += [["GPUs lost to fragmentation", f"{s['fragmentation']:.1%}"]]
    figures += [[f"{_resource(k)} allocated but unused", f"{v:.1%}"] for k, v in (s["unused_allocation"] or {}).items()]
    for key, label in (
        ("jain_fairness", "fairness between tenants (1: equal)"),
        ("load_balance", "load balance"),
        ("throughput_jobs_per_hour", "jobs per hour"),
    ):
        if s[key] is not None:
            figures.append([label, f"{s[key]:,.3f}"])
    if s["sla_violations"] is not None:
        figures.append(["jobs over the SLA", f"{s['sla_violations']:,}"])
    table("Cluster", ["what", "value"], figures)
    _render_lives(s)
    _render_power(s)
    show_tenants(view)
    for why, count in s["tasks_left_out"].items():
        say(f"{count:,} tasks not simulated: {why}")
    if output is not None:
        say(f"run: {output}")


def _resource(name: str) -> str:
    """Return a resource as people say it: "GPUs", "GPUs of V100", "CPU"."""
    known = {"gpu": "GPUs", "cpu": "CPU", "rdma": "RDMA"}
    model = name.removeprefix("gpu_")
    return known.get(name) or (f"GPUs of {model}" if name.startswith("gpu_") else name.replace("_", " "))
