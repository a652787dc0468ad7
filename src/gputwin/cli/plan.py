"""`gputwin plan`: least capacity that meets a target."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gputwin.cli.console import Format, Json, Quiet, Seed, emit, progress, say, table, warn_of_overload
from gputwin.cli.options import Backfill, ClusterOption, Order, Placement, Policies, TraceArgument, scheduler

if TYPE_CHECKING:
    from gputwin.optimization.capacity.plan import Plan


def run(
    trace: TraceArgument,
    target: Annotated[str, typer.Option("--target", help="What to achieve: p95_wait=600, mean_wait=5m, p99_jct=2h, …")],
    cluster: ClusterOption = None,
    growth: Annotated[float, typer.Option("--growth", help="Demand as a multiple of the trace's.")] = 1.0,
    by: Annotated[
        str | None, typer.Option("--by", help="gpu_model: then take away nodes of each GPU model in turn.")
    ] = None,
    what_if: Annotated[
        bool, typer.Option("--what-if", help="Also other rules and faster GPUs at the answer: one simulation each.")
    ] = False,
    order: Order = "fifo",
    placement: Placement = "first-fit",
    backfill: Backfill = "greedy",
    policies: Policies = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="DIR", help="Directory for the plan and a report.")
    ] = None,
    format: Format = None,
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Find the least nodes, in the cluster's mix, that meet a target: theory for a first guess, simulation to settle it.

    Examples:

        gputwin plan synthetic:pai2020?jobs=100000 --cluster pai2020 --target p95_wait=600

        gputwin plan philly.csv --cluster homogeneous:100x8 --target mean_wait=10m --growth 1.3 --what-if -o plan
    """
    from gputwin.core.errors import UserError
    from gputwin.optimization.capacity.plan import plan
    from gputwin.optimization.capacity.target import parse_target
    from gputwin.report.capacity import write_plan_report
    from gputwin.simulation.cluster import cluster_for
    from gputwin.traces.locate import open_trace

    wanted = parse_target(target)
    if by not in (None, "gpu_model"):
        raise UserError(f"--by {by}: capacity can be planned by gpu_model")
    rules = scheduler(order, backfill, placement, policies)
    with progress(quiet or json) as step:
        opened = open_trace(trace, format, step)
        base = cluster_for(opened, cluster)
        warnings = warn_of_overload(opened, base, growth)
        result = plan(
            opened,
            base,
            wanted,
            scheduler=rules,
            growth=growth,
            by_model=by == "gpu_model",
            what_if=what_if,
            seed=seed,
            # Processes of their own would not know policies from a file.
            workers=1 if policies else None,
            progress=step,
        )
        if output is not None:
            step("writing the report")
            write_plan_report(output, opened, result)
    data = {**result.to_json(), "warnings": warnings, "directory": None if output is None else str(output)}
    emit(data, json, lambda: _render(result, output))


def _render(result: Plan, output: Path | None) -> None:
    from gputwin.optimization.capacity.evaluate import describe_points

    say(
        f"{result.jobs:,} jobs that ask for {result.load_gpus:,.0f} GPUs on average; {result.cluster.name} has "
        f"{result.cluster.node_count:,} nodes and {result.cluster.gpu_count:,} GPUs; theory alone would take "
        f"{result.theory_nodes:,} nodes"
    )
    rows = []
    for p in describe_points({p.counts: p for p in result.points}):
        met = p["value_seconds"] is not None and result.target.met(p["value_seconds"])
        spread = f"{_duration(p['low_seconds'])} to {_duration(p['high_seconds'])}"
        rows.append(
            [
                f"{p['nodes']:,}",
                f"{p['gpus']:,}",
                _duration(p["value_seconds"]),
                spread,
                f"{p['utilisation']:.1%}",
                "meets" if met else "misses",
            ]
        )
    columns = ["nodes", "GPUs", result.target.name, "90 % over days", "GPUs in use", str(result.target)]
    table("Simulated capacities", columns, rows)
    if result.answer is not None:
        rows = [
            [g.name, g.gpu_model or "–", f"{g.count:,}", f"{result.nodes_by_type[g.name]:,}"]
            for g in result.cluster.groups
        ]
        table("The plan", ["node type", "GPU model", "nodes now", "nodes planned"], rows)
    if result.levers:
        rows = [
            [x.name, x.what, _duration(x.to_json()["value_seconds"]), "–" if x.change is None else f"{x.change:+.1%}"]
            for x in result.levers
        ]
        table("What if, on the planned nodes", ["lever", "what", result.target.name, "change"], rows)
    say(result.verdict())
    if output is not None:
        say(f"report: {output / 'plan.html'}")


def _duration(seconds: float | None) -> str:
    from gputwin.core.units import format_duration

    return "never" if seconds is None else format_duration(seconds)
