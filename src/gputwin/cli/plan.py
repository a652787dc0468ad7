"""`gputwin plan`: the capacity from which on a target is safely met."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gputwin.cli.console import Format, Json, Quiet, Seed, emit, progress, say, show, table, warn_of_overload
from gputwin.cli.options import Backfill, ClusterOption, Order, Placement, Policies, TraceArgument, scenario_from
from gputwin.core.units import percent

EXIT_UNREACHABLE = 3
_ROWS = 12


if TYPE_CHECKING:
    import polars as pl

    from gputwin.optimization.capacity.evaluate import Point
    from gputwin.optimization.capacity.plan import Plan


def run(
    context: typer.Context,
    trace: TraceArgument,
    target: Annotated[str, typer.Option("--target", help="What to achieve: p95_wait=600, mean_wait=5m, p99_jct=2h, …")],
    cluster: ClusterOption = None,
    growth: Annotated[float, typer.Option("--growth", help="Demand as a multiple of the trace's.")] = 1.0,
    confidence: Annotated[
        float,
        typer.Option("--confidence", help="Share of records like this one (its days drawn anew) that must meet it."),
    ] = 0.9,
    by: Annotated[
        str | None, typer.Option("--by", help="gpu_model: then take away nodes of each GPU model in turn.")
    ] = None,
    what_if: Annotated[
        bool, typer.Option("--what-if", help="Also other rules and faster GPUs at the answer: one simulation each.")
    ] = False,
    order: Order = None,
    placement: Placement = None,
    backfill: Backfill = None,
    policies: Policies = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="DIR", help="Directory for the plan and a report.")
    ] = None,
    format: Format = None,
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Find the nodes, in the cluster's mix, from which on a target is safely met.

    Waits do not fall with every node added, so the least number that happens to meet a target is no plan. The answer is
    the size that meets it together with every larger size tried, and with the confidence asked for over records made of
    the trace's days drawn with replacement. Theory gives a first guess; simulation settles it. Exit code 3: no number of
    such nodes meets the target (the verdict says why).

    TRACE may be a scenario, a YAML file with rules, faults and all else that goes on; the plan has that of its nodes.

    Examples:

        gputwin plan "synthetic:pai2020?jobs=100000" --cluster pai2020 --target p95_wait=600

        gputwin plan philly.csv --cluster homogeneous:100x8 --target mean_wait=10m --growth 1.3 --what-if -o plan
    """
    from gputwin.core.errors import UserError
    from gputwin.optimization.capacity.plan import plan
    from gputwin.optimization.capacity.target import parse_target
    from gputwin.report.capacity import write_plan_report
    from gputwin.simulation.simulate import cluster_of_scenario, part_of, trace_of
    from gputwin.traces.locate import open_trace

    wanted = parse_target(target)
    if by not in (None, "gpu_model"):
        raise UserError(f"--by {by}: capacity can be planned by gpu_model")
    fields = {
        "format": format,
        "cluster": cluster,
        "order": order,
        "backfill": backfill,
        "placement": placement,
        "seed": seed,
    }
    beside = ("target", "growth", "confidence", "by", "what_if")
    if not (math.isfinite(growth) and growth > 0):
        raise UserError(f"--growth {growth:g}: give a positive factor, as in 1.3")
    if not 0.5 <= confidence < 1:
        raise UserError(f"--confidence {confidence:g}: give at least 0.5 and below 1, as in 0.9")
    scenario = scenario_from(context, trace, policies, fields, beside)
    said = f"order {scenario.order}, backfill {scenario.backfill}, placement {scenario.placement}"
    with progress(quiet or json) as step:
        opened = trace_of(scenario, open_trace(scenario.trace, scenario.format, step))
        base = cluster_of_scenario(scenario, opened)
        warnings = warn_of_overload(part_of(scenario, opened), base, growth * scenario.load_scale)
        result = plan(
            opened,
            base,
            wanted,
            scenario=scenario,
            growth=growth,
            confidence=confidence,
            by_model=by == "gpu_model",
            what_if=what_if,
            progress=step,
        )
        if output is not None:
            step("writing the report")
            write_plan_report(output, opened, result, rules=said)
    data = {**result.to_json(), "warnings": warnings, "directory": None if output is None else str(output)}
    emit(data, json, lambda: _render(result, output, said), lambda: _points_frame(result))
    if result.answer is None:
        raise typer.Exit(EXIT_UNREACHABLE)


def _points_frame(result: Plan) -> pl.DataFrame:
    import polars as pl

    from gputwin.optimization.capacity.evaluate import describe_points

    return pl.DataFrame(describe_points(result.points, result.target), infer_schema_length=None)


def _render(result: Plan, output: Path | None, rules: str) -> None:
    from gputwin.optimization.capacity.evaluate import describe_points
    from gputwin.optimization.capacity.verdict import sentences
    from gputwin.report.sections.capacity import headline, nodes_table, what_ifs_table

    say(headline(result))
    say(f"Rules: {rules}")
    say(
        f"{result.jobs:,} jobs, which together need {result.load_gpus:,.0f} GPUs on average; {result.cluster.name} has "
        f"{result.cluster.node_count:,} nodes and {result.cluster.gpu_count:,} GPUs; theory alone would take "
        f"{result.theory_nodes:,} nodes"
    )
    rows = []
    for p in describe_points(_shown(result), result.target):
        spread = f"{_duration(p['low_seconds'])} to {_duration(p['high_seconds'])}"
        verdict = "meets" if p["meets"] else "misses"
        if p["meets"] and result.misses is not None and p["nodes"] < result.misses.nodes:
            verdict = "meets, a larger size misses"
        if result.answer is not None and p["nodes"] == result.answer.nodes:
            verdict = "the plan"
        rows.append(
            [
                f"{p['nodes']:,}",
                f"{p['gpus']:,}",
                _duration(p["value_seconds"]),
                spread,
                percent(p["utilisation"], 1),
                verdict,
            ]
        )
    columns = ["nodes", "GPUs", result.target.words, "90 % over its days", "GPUs in use", str(result.target)]
    left = len(result.points) - len(rows)
    table("Simulated capacities" + (f" ({left} more with --json)" if left else ""), columns, rows)
    if result.answer is not None:
        show(nodes_table(result))
    if result.what_ifs:
        show(what_ifs_table(result))
    for sentence in sentences(result):
        say(f"- {sentence}")
    if output is not None:
        say(f"report: {output / 'plan.html'}")


def _shown(result: Plan) -> list[Point]:
    """Return the simulated sizes a table has room for: those that decide, and some of the others."""
    points = sorted(result.points, key=lambda p: (p.gpus, p.nodes))
    decide = [p for p in (result.misses, result.record, result.answer) if p is not None]
    every = -(-len(points) // _ROWS)
    kept = [*points[::every], points[-1], *decide]
    return [p for p in points if p in kept]


def _duration(seconds: float | None) -> str:
    from gputwin.core.units import format_duration

    return "never" if seconds is None else format_duration(seconds)
