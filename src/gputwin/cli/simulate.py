"""`gputwin simulate`: one scenario."""

from __future__ import annotations

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
    table,
    warn,
    warn_of_overload,
)
from gputwin.cli.options import Backfill, ClusterOption, Order, Placement, Policies, TraceArgument

if TYPE_CHECKING:
    from gputwin.simulation.scenario import Scenario
    from gputwin.simulation.tenants import TenantView


def run(
    context: typer.Context,
    trace: TraceArgument,
    cluster: ClusterOption = None,
    order: Order = "fifo",
    placement: Placement = "first-fit",
    backfill: Backfill = "strict",
    share: Annotated[
        str, typer.Option("--share", help="GPU shares: fraction, or exclusive (rounded up).")
    ] = "fraction",
    predict: Annotated[
        str,
        typer.Option("--predict", help="Durations believed: oracle, requested, a saved model, or a file of `predict`."),
    ] = "oracle",
    preempt: Annotated[
        str, typer.Option("--preempt", help="Who must yield to a job that does not fit; see `gputwin policies`.")
    ] = "",
    speed: Annotated[str, typer.Option("--speed", help="Work a second by GPU model, as in V100=1,T4=0.4.")] = "",
    checkpoint: Annotated[
        str, typer.Option("--checkpoint", help="As in interval=30m,save=20s,restart=1m,on_preemption=yes.")
    ] = "",
    mtbf: Annotated[str | None, typer.Option("--mtbf", help="Mean time between failures of a node, as in 30d.")] = None,
    repair: Annotated[str, typer.Option("--repair", help="Mean time to repair a node.")] = "1h",
    elastic: Annotated[
        str, typer.Option("--elastic", help="Shrink running jobs: least_share=0.5,scaling_exponent=0.8.")
    ] = "",
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

        gputwin simulate synthetic:pai2020?jobs=100000 --cluster pai2020 --order sjf --backfill greedy -o run

        gputwin simulate philly.csv --cluster homogeneous:300x8 --backfill easy --json

        gputwin simulate trace --order sjf --predict profile/model

        gputwin simulate trace --placement mine --policies my_policy.py

        gputwin simulate trace --order srtf --backfill greedy --checkpoint interval=30m,save=20s,restart=1m --mtbf 30d

        gputwin simulate run/scenario.yaml -o again
    """
    from gputwin.simulation.cluster import cluster_for
    from gputwin.simulation.policy import load_policies
    from gputwin.simulation.run import check_rules
    from gputwin.simulation.simulate import believed_by, simulate_scenario
    from gputwin.simulation.tenants import by_tenant
    from gputwin.simulation.use import use_of
    from gputwin.traces.locate import open_trace

    for path in policies or ():
        load_policies(path)
    scenario = _scenario_file(trace, context)
    if scenario is None:
        scenario = _scenario(
            trace=" ".join(trace),
            format=format,
            cluster=cluster,
            order=order,
            backfill=backfill,
            placement=placement,
            preemption=preempt,
            sharing=share,
            speed=_speeds(speed),
            elasticity=_settings("--elastic", elastic),
            faults=None if mtbf is None else {"mtbf_seconds": _seconds(mtbf), "repair_seconds": _seconds(repair)},
            checkpoints=_checkpoints(checkpoint),
            prediction=predict,
            seed=seed,
            resolution_seconds=None if resolution is None else _seconds(resolution),
            sla_wait_seconds=None if sla is None else _seconds(sla),
        )
        located: str | list[str] = trace
    else:
        located = scenario.trace
    check_rules(scenario.scheduler, scenario.changes)
    announce_compilation(quiet)
    with progress(quiet or json) as step:
        opened = open_trace(located, scenario.format, step)
        target = cluster_for(opened, scenario.cluster)
        warnings = warn_of_overload(opened, target)
        step("simulating")
        believed = believed_by(scenario.prediction, opened, warn)
        predictions = None if isinstance(believed, str) else believed
        result = simulate_scenario(scenario, opened, target, predictions)
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
    emit(data, json, lambda: _render(result, view, output))


def _scenario_file(trace: list[str], context: typer.Context) -> Scenario | None:
    """Return the scenario in the file that stands instead of a trace; None for a trace."""
    from gputwin.core.errors import UserError
    from gputwin.simulation.scenario import FILE_ENDINGS, read_scenario

    if len(trace) != 1 or not trace[0].endswith(FILE_ENDINGS):
        return None
    ours = ("trace", "output", "json", "quiet", "policies")
    given = [
        option.opts[-1]
        for option in context.command.params
        if option.name not in ours and _is_given(context, str(option.name))
    ]
    if given:
        raise UserError(f"{trace[0]} says it all; put {', '.join(given)} into the file")
    return read_scenario(Path(trace[0]))


def _is_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _scenario(**fields: object) -> Scenario:
    """Return the scenario that the options describe."""
    from gputwin.simulation.scenario import scenario_of

    return scenario_of({k: v for k, v in fields.items() if v is not None})


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
    found = _settings("--checkpoint", text)
    if found is None:
        return None
    times = ("interval", "save", "restart", "resize")
    return {f"{k}_seconds" if k in times else k: _seconds(v) if k in times else v for k, v in found.items()}


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


def _render(result, view: TenantView, output: Path | None) -> None:  # type: ignore[no-untyped-def]
    from gputwin.cli.tenants import show_tenants
    from gputwin.core.units import format_duration

    s, m = result.summary, result.manifest
    rules = m["scheduler"]
    say(
        f"{s['jobs']:,} jobs on {m['cluster']} ({m['nodes']:,} nodes, {m['gpus']:,} GPUs): order {rules['order']}, "
        f"backfill {rules['backfill']}, placement {rules['placement']}"
    )
    if s["jobs_already_running"]:
        say(
            f"{s['jobs_already_running']:,} of them ran when the trace began: they hold their place from then on and "
            "count as waiting only where there was no room for them"
        )
    rows = []
    for name in ("wait_seconds", "jct_seconds"):
        if s[name]:
            rows.append(
                [name.removesuffix("_seconds"), *(format_duration(s[name][k]) for k in ("mean", "p50", "p95", "p99"))]
            )
    if s["bounded_slowdown"]:
        rows.append(["bounded slowdown", *(f"{s['bounded_slowdown'][k]:.2f}" for k in ("mean", "p50", "p95", "p99"))])
    table("Jobs", ["what", "mean", "p50", "p95", "p99"], rows)
    figures = [["outcomes", ", ".join(f"{k} {v:,}" for k, v in s["outcomes"].items())]]
    figures += [["makespan", format_duration(s["makespan_seconds"])]]
    figures += [[f"allocation of {k}", f"{v:.1%}"] for k, v in s["allocation"].items()]
    figures += [["GPU fragmentation", f"{s['fragmentation']:.1%}"]]
    figures += [[f"allocated but unused {k}", f"{v:.1%}"] for k, v in (s["unused_allocation"] or {}).items()]
    for key, label in (
        ("jain_fairness", "Jain's fairness"),
        ("load_balance", "load balance"),
        ("throughput_jobs_per_hour", "jobs per hour"),
    ):
        if s[key] is not None:
            figures.append([label, f"{s[key]:,.3f}"])
    if s["sla_violations"] is not None:
        figures.append(["jobs over the SLA", f"{s['sla_violations']:,}"])
    table("Cluster", ["what", "value"], figures)
    _render_lives(s)
    causes = s["wait_causes_seconds"] or {}
    total = sum(causes.values())
    if total > 0:
        jobs = s["jobs_with_wait"]
        rows = [[k.replace("_", " "), format_duration(v / jobs), f"{v / total:.1%}"] for k, v in causes.items() if v]
        table("Why jobs waited", ["cause", "mean per job", "share"], sorted(rows, key=lambda r: -float(r[2][:-1])))
    show_tenants(view)
    for why, count in s["tasks_left_out"].items():
        say(f"{count:,} tasks not simulated: {why}")
    if output is not None:
        say(f"run: {output}")
