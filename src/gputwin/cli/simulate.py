"""`gputwin simulate`: one scenario."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gputwin.cli.console import (
    Format,
    Json,
    Quiet,
    Seed,
    announce_compilation,
    emit,
    progress,
    warn,
    warn_of_overload,
)
from gputwin.cli.fairness import fairness_from, order_of_slurm_conf, queues_from, settings_of
from gputwin.cli.options import (
    Backfill,
    ClusterOption,
    Order,
    Placement,
    Policies,
    TraceArgument,
    given_options,
    scenario_from,
)
from gputwin.cli.simulate_settings import (
    check_acts,
    checkpoints_of,
    elasticity_of,
    faults_of,
    power_of,
    seconds_of,
    speeds_of,
)

if TYPE_CHECKING:
    from gputwin.cli.progress import Step
    from gputwin.simulation.engine.world import World


def run(
    context: typer.Context,
    trace: TraceArgument,
    cluster: ClusterOption = None,
    order: Order = None,
    placement: Placement = None,
    backfill: Backfill = None,
    share: Annotated[
        str,
        typer.Option(
            "--sharing",
            "--share",
            help="How a GPU is divided: fraction, exclusive, time-slice:most=4, mps; see `policies`.",
        ),
    ] = "fraction",
    interference: Annotated[
        str, typer.Option("--interference", help="Jobs on one GPU slow each other: built-in, or a table of pairs.")
    ] = "",
    predict: Annotated[
        str,
        typer.Option("--predict", help="Durations believed: oracle, requested, a saved model, or a file of `predict`."),
    ] = "oracle",
    fairness: Annotated[
        str, typer.Option("--fairness", help="Whose turn it is; NAME or NAME:parameter=value; see `gputwin policies`.")
    ] = "",
    quota: Annotated[
        str, typer.Option("--quota", help="GPUs that tenants may hold at most, as in llm=16,vision=8.")
    ] = "",
    tenant: Annotated[
        list[str] | None,
        typer.Option("--tenant", help="Terms of a tenant, as in llm:weight=2,group=research; repeatable."),
    ] = None,
    tenants: Annotated[
        Path | None, typer.Option("--tenants", help="YAML file with the terms of tenants and the weights of groups.")
    ] = None,
    slurm_conf: Annotated[
        Path | None, typer.Option("--slurm-conf", help="Priority weights for the order slurm-multifactor.")
    ] = None,
    guarantee: Annotated[
        str, typer.Option("--guarantee", help="GPUs that tenants take back from who borrows them, as in llm=16.")
    ] = "",
    queues: Annotated[
        str, typer.Option("--queues", help="YAML of ClusterQueues, Cohorts and LocalQueues, for kueue-…")
    ] = "",
    default_queue: Annotated[
        str, typer.Option("--default-queue", help="ClusterQueue of tenants that have none in --queues.")
    ] = "",
    planner: Annotated[
        str, typer.Option("--planner", help="Who runs on which GPU model, planned at rounds; see `gputwin policies`.")
    ] = "",
    round: Annotated[str, typer.Option("--round", help="Length of a round of a planner or an elastic policy.")] = "6m",
    preempt: Annotated[
        str, typer.Option("--preempt", help="Who must yield to a job that does not fit; see `gputwin policies`.")
    ] = "",
    priorities: Annotated[
        str,
        typer.Option("--priorities", help="Draw priorities for a trace that has none, as in 0=0.3,1=0.6,2=0.1."),
    ] = "",
    speed: Annotated[
        str,
        typer.Option(
            "--speed",
            help="Work a second by GPU model, V100=1,T4=0.4; or by how far a gang is spread: spread:nodes=0.8,racks=0.6.",
        ),
    ] = "",
    checkpoint: Annotated[
        str,
        typer.Option(
            "--checkpoint",
            help="As in interval=30m,save=20s,restart=1m,grace=30s; interval=young, daly or exact with --mtbf; stagger=1.",
        ),
    ] = "",
    mtbf: Annotated[str | None, typer.Option("--mtbf", help="Mean time between failures of a node, as in 30d.")] = None,
    repair: Annotated[str, typer.Option("--repair", help="Mean time to repair a node.")] = "1h",
    faults: Annotated[
        str,
        typer.Option(
            "--faults",
            help="As in preset=llama3,repair=4h,repair_law=lognormal; also mtbf, shape, gpu_mtbf, rack_mtbf, rack_repair, "
            "log=FILE, maintenance_period, maintenance, maintenance_notice.",
        ),
    ] = "",
    elastic: Annotated[
        str,
        typer.Option(
            "--elastic",
            help="Sizes of jobs at rounds: optimus, afs or pollux, as in afs:most_gpus=8,scaling_exponent=0.8 "
            "(curves=drawn: speeds of measured applications, dealt out by chance); or running jobs shrink to let others in: "
            "shrink:least_share=0.5,scaling_exponent=0.8.",
        ),
    ] = "",
    locality: Annotated[
        str, typer.Option("--locality", help="How long gangs wait for one node, then for one rack: node=10m,rack=5m.")
    ] = "",
    power: Annotated[bool, typer.Option("--power", help="Tell energy and carbon.")] = False,
    power_limit: Annotated[
        str, typer.Option("--power-limit", help="Watts a GPU may draw, by model, as in V100=150; slows jobs there.")
    ] = "",
    power_cap: Annotated[
        str,
        typer.Option(
            "--power-cap",
            help="Watts a node or rack may draw: node=3000,rack=40000; over=wait: jobs wait instead.",
        ),
    ] = "",
    carbon: Annotated[
        str, typer.Option("--carbon", help="Grid's g/kWh, or a CSV of time_seconds,grams_per_kwh.")
    ] = "400",
    policies: Policies = None,
    resolution: Annotated[str | None, typer.Option("--resolution", help="Step of the series, as in 5m.")] = None,
    sla: Annotated[str | None, typer.Option("--sla", help="Count jobs that wait longer, as in 10m.")] = None,
    against: Annotated[
        Path | None, typer.Option("--against", metavar="RUN", help="A saved run of the same trace to compare with.")
    ] = None,
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

        gputwin simulate trace --fairness drf

        gputwin simulate trace --fairness hdrf --tenant llm:weight=2,group=research --tenant vision:group=research

        gputwin simulate trace --order slurm-multifactor --slurm-conf slurm.conf --backfill easy

        gputwin simulate trace -o before

        gputwin simulate trace --quota llm=16 --against before

        gputwin simulate trace --guarantee llm=16,vision=8 --checkpoint save=20s,restart=1m

        gputwin simulate trace --fairness kueue-fair --queues queues.yaml --order priority

        gputwin simulate trace --sharing fraction --interference built-in

        gputwin simulate trace --sharing time-slice:most=4

        gputwin simulate trace --planner max-min-speed --speed V100=1,T4=0.4 --checkpoint save=20s,restart=1m

        gputwin simulate trace --elastic pollux:curves=drawn --round 1m --checkpoint resize=30s

        gputwin simulate run/scenario.yaml -o again
    """
    from gputwin.cli.show import comparison_json
    from gputwin.cli.show_run import show_run
    from gputwin.simulation.result import SimulationResult
    from gputwin.simulation.simulate import cluster_of_scenario, part_of, simulate_scenario, trace_of
    from gputwin.simulation.use import use_of
    from gputwin.simulation.waits_by_tenant import by_tenant
    from gputwin.studies.comparison import check_same_trace, compare, label_runs
    from gputwin.traces.locate import open_trace

    check_acts(given_options(context), elastic, faults, share)
    fields = {
        "format": format,
        "cluster": cluster,
        "order": order if slurm_conf is None else order_of_slurm_conf(slurm_conf, order, warn),
        "backfill": backfill,
        "placement": placement,
        "fairness": queues_from(fairness, queues, default_queue, bool(quota or guarantee or tenant or tenants))
        or fairness_from(fairness, quota, guarantee, tenant or [], tenants),
        "planner": {"policy": planner, "round_seconds": seconds_of(round)} if planner else None,
        "preemption": preempt,
        "priorities": settings_of("--priorities", priorities),
        "sharing": share,
        "interference": interference or None,
        "speed": speeds_of(speed),
        "elasticity": elasticity_of(elastic, round),
        "locality": {f"{k}_seconds": seconds_of(v) for k, v in (settings_of("--locality", locality) or {}).items()}
        or None,
        "faults": faults_of(faults, mtbf, repair),
        "checkpoints": checkpoints_of(checkpoint),
        "power": power_of(power, power_limit, power_cap, carbon),
        "prediction": predict,
        "seed": seed,
        "resolution_seconds": None if resolution is None else seconds_of(resolution),
        "sla_wait_seconds": None if sla is None else seconds_of(sla),
    }
    scenario = scenario_from(context, trace, policies, fields, ("against",))
    before = None if against is None else SimulationResult.open(against)
    announce_compilation(quiet)
    with progress(quiet or json) as step:
        opened = trace_of(scenario, open_trace(scenario.trace, scenario.format, step))
        if before is not None:
            check_same_trace(opened, {str(against): before})
        target = cluster_of_scenario(scenario, opened)
        warnings = warn_of_overload(part_of(scenario, opened), target, scenario.load_scale)
        step("simulating")
        doubts: list[str] = []
        result = simulate_scenario(scenario, opened, target, note=doubts.append, on_progress=_on_progress(step))
        for doubt in doubts:
            warn(doubt)
        if output is not None:
            step("saving the run")
            result.save(output)
        step("charging waits to tenants")
        view = by_tenant(result, use_of(opened))
        compared = None if before is None else compare(label_runs([before, result]), seed=scenario.seed)
    directory = None if output is None else str(output)
    data = {
        **result.summary,
        **view.to_json(),
        "manifest": result.manifest,
        "warnings": [*warnings, *doubts],
        "run_directory": directory,
    }
    if compared is not None:
        data["against"] = comparison_json(compared)
    emit(data, json, lambda: show_run(result, view, output, compared), lambda: result.jobs)


def _on_progress(step: Step) -> Callable[[World], None]:
    """Return a function that shows how many of the jobs have arrived."""
    from gputwin.simulation.engine.world import ARRIVAL

    def tell(world: World) -> None:
        step("simulating", min(int(world.loop[ARRIVAL]) / max(world.queue.jobs.size, 1), 1.0))

    return tell
