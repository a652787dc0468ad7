"""`gputwin simulate`: one scenario."""

from __future__ import annotations

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
    say,
    table,
    warn,
    warn_of_overload,
)
from gputwin.cli.options import Backfill, ClusterOption, Order, Placement, Policies, TraceArgument, scheduler

if TYPE_CHECKING:
    import polars as pl

    from gputwin.traces.dataset import Trace


def run(
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

    A saved model predicts each job as of its submission in the trace: from its history and what had ended by then.

    Examples:

        gputwin simulate synthetic:pai2020?jobs=100000 --cluster pai2020 --order sjf --backfill greedy -o run

        gputwin simulate philly.csv --cluster homogeneous:300x8 --backfill easy --json

        gputwin simulate trace --order sjf --predict profile/model

        gputwin simulate trace --placement mine --policies my_policy.py
    """
    from gputwin.core.units import parse_duration
    from gputwin.simulation.cluster import cluster_for
    from gputwin.simulation.scenario import simulate
    from gputwin.traces.locate import open_trace

    rules = scheduler(order, backfill, placement, policies)
    announce_compilation(quiet)
    with progress(quiet or json) as step:
        opened = open_trace(trace, format, step)
        target = cluster_for(opened, cluster)
        warnings = warn_of_overload(opened, target)
        step("simulating")
        result = simulate(
            opened,
            target,
            order=rules.order,
            backfill=rules.backfill,
            placement=rules.placement,
            share=share,
            predict=_believed(predict, opened),
            predict_name=predict,
            seed=seed,
            order_parameters=rules.order_parameters,
            placement_parameters=rules.placement_parameters,
            bin_seconds=None if resolution is None else parse_duration(resolution),
            sla_wait_seconds=None if sla is None else parse_duration(sla),
        )
        if output is not None:
            step("saving the run")
            result.save(output)
    directory = None if output is None else str(output)
    data = {**result.summary, "manifest": result.manifest, "warnings": warnings, "run_directory": directory}
    emit(data, json, lambda: _render(result, output))


def _believed(predict: str, trace: Trace) -> str | pl.DataFrame:
    """Return the rule, or the predictions of the saved model or file, that `--predict` names."""
    from gputwin.profiling.predict import predict_trace
    from gputwin.profiling.store import load
    from gputwin.simulation.workload import read_predictions
    from gputwin.traces.framefile import EXTENSIONS

    if predict == "requested":
        asked = trace.tasks["requested_seconds"]
        without = asked.len() - int((asked > 0).sum())
        if 0 < without < asked.len():
            warn(
                f"{without:,} of {asked.len():,} tasks asked for no time limit and count as the longest limit asked for"
            )
        return predict
    if Path(predict).is_dir():
        found = predict_trace(load(Path(predict)), trace)
        for note in found.notes:
            warn(note)
        return found.frame
    return read_predictions(Path(predict)) if Path(predict).suffix.lower() in EXTENSIONS else predict


def _render(result, output: Path | None) -> None:  # type: ignore[no-untyped-def]
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
    causes = s["wait_causes_seconds"] or {}
    total = sum(causes.values())
    if total > 0:
        jobs = s["jobs_with_wait"]
        rows = [[k.replace("_", " "), format_duration(v / jobs), f"{v / total:.1%}"] for k, v in causes.items() if v]
        table("Why jobs waited", ["cause", "mean per job", "share"], sorted(rows, key=lambda r: -float(r[2][:-1])))
    for why, count in s["tasks_left_out"].items():
        say(f"{count:,} tasks not simulated: {why}")
    if output is not None:
        say(f"run: {output}")
