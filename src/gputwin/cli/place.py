"""`gputwin place`: the best placement of what a trace asks for, with a proof of how good it is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gputwin.cli.console import Format, Json, Quiet, Seed, emit, progress, say, table, warn
from gputwin.cli.options import ClusterOption, TraceArgument
from gputwin.core.units import format_duration, percent

if TYPE_CHECKING:
    from gputwin.optimization.placement.present import Emptied
    from gputwin.optimization.placement.problem import PlacementResult
    from gputwin.optimization.placement.rolling import Rolling
    from gputwin.simulation.cluster import Cluster
    from gputwin.traces.dataset import Trace

MOVES_FILE = "moves.parquet"


def run(
    trace: TraceArgument,
    cluster: ClusterOption = None,
    at: Annotated[
        str, typer.Option("--at", help="Time from the trace's start, as 12h or 7d, or busiest: the busiest full hour.")
    ] = "busiest",
    objective: Annotated[
        str,
        typer.Option(
            "--objective",
            help="nodes, cost (needs prices), unallocated (least capacity left) or demand (most on the nodes there are).",
        ),
    ] = "nodes",
    limited: Annotated[
        bool, typer.Option("--limited", help="Use no more nodes of a type than the cluster has; any number otherwise.")
    ] = False,
    method: Annotated[str, typer.Option("--method", help="auto, heuristics, columns or exact.")] = "auto",
    seconds: Annotated[float, typer.Option("--seconds", help="CPU seconds to spend.")] = 60.0,
    spread: Annotated[
        int | None, typer.Option("--spread", help="Put every application on at least so many nodes.")
    ] = None,
    apart: Annotated[
        list[str] | None,
        typer.Option("--apart", metavar="APP,APP", help="Two applications that share no node; repeatable."),
    ] = None,
    rack_share: Annotated[
        float | None,
        typer.Option("--rack-share", help="Largest share of an application in one rack, as 0.5; needs racks."),
    ] = None,
    quantile: Annotated[
        float | None,
        typer.Option(
            "--quantile",
            help="Place this quantile of the demand ahead, as 0.9, not the present; with --every: the forecast's, 0.8.",
        ),
    ] = None,
    ahead: Annotated[str, typer.Option("--ahead", help="How far ahead --quantile looks.")] = "1h",
    every: Annotated[
        str | None,
        typer.Option("--every", help="Instead: place over time, online and with moves at the start of such periods."),
    ] = None,
    moves: Annotated[
        int, typer.Option("--moves", help="Most instances to move: of a run, or per period of --every.")
    ] = 200,
    last: Annotated[str, typer.Option("--for", help="How long --every goes on, up to the time --at.")] = "1d",
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="DIR", help="Directory for the placement and a report.")
    ] = None,
    format: Format = None,
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Place what was alive at one time on the fewest nodes, with a lower bound that no placement can be below.

    Applications keep to their per-node limits, GPU models and, where a node type is named like a role (CN, HN), to it.
    Of a saved run: the moves, at most --moves, that leave the fewest nodes in use.

    Examples:

        gputwin place disaggregated_DLRM_trace.csv -o placement

        gputwin place dlrm --cluster nodes.yaml --objective cost --quantile 0.9 --ahead 6h

        gputwin place dlrm --cluster nodes.yaml --objective demand --apart app_0,app_1 --rack-share 0.5

        gputwin place dlrm --at 20d --every 6h --for 2d

        gputwin place run --at busiest --moves 50
    """
    from gputwin.core.errors import UserError
    from gputwin.core.units import parse_duration
    from gputwin.optimization.placement.demand import DLRM_NODES, alive, busiest_hour, groups_of, problem_of
    from gputwin.optimization.placement.forecast import growth_quantile
    from gputwin.optimization.placement.rolling import roll
    from gputwin.optimization.placement.solve import place
    from gputwin.report.placement_plan import write_placement_report
    from gputwin.report.report_input import name_of
    from gputwin.simulation.result import RUN_FILE
    from gputwin.traces.describe import time_bounds
    from gputwin.traces.locate import open_trace

    if len(trace) == 1 and (Path(trace[0]) / RUN_FILE).is_file():
        if any((cluster, every, quantile, apart, rack_share, spread, limited)) or objective != "nodes":
            raise UserError(
                f"{trace[0]} is a run, whose instances stay on its nodes; give --at, --moves, --seconds only"
            )
        _from_run(Path(trace[0]), at, moves, seconds, output, json=json, quiet=quiet)
        return
    with progress(quiet or json) as step:
        opened = open_trace(trace, format, step)
        nodes = _nodes(opened, cluster, quiet or json)
        time = busiest_hour(opened) if at == "busiest" else parse_duration(at)
        if every is not None:
            rolled = roll(
                opened,
                nodes,
                begin=time - parse_duration(last),
                end=time,
                step=parse_duration(every),
                most_moves=moves,
                quantile=0.8 if quantile is None else quantile,
                seconds=seconds,
                is_supply_limited=limited,
                progress=step,
            )
            if output is not None:
                output.mkdir(parents=True, exist_ok=True)
                rolled.table.write_parquet(output / "over_time.parquet")
            data = {
                "time_seconds": time,
                "cluster": nodes.name,
                "forecast_coverage": rolled.coverage,
                "policies": rolled.summary().to_dicts(),
                "directory": None if output is None else str(output),
            }
            emit(data, json, lambda: _render_rolled(rolled, output))
            return
        bounds = time_bounds(opened)
        tasks = alive(opened, time)
        if tasks.is_empty() or (bounds is not None and time > bounds[1]):
            raise UserError(f"nothing is known to be alive at {format_duration(time)}; give another time with --at")
        growth = 1.0 if quantile is None else growth_quantile(opened, time, parse_duration(ahead), quantile)
        groups = groups_of(tasks, growth=growth)
        problem = problem_of(
            groups,
            nodes,
            objective=objective,
            is_supply_limited=limited,
            spread=spread,
            apart=_pairs(apart or []),
            rack_share=rack_share,
        )
        result = place(problem, method=method, seconds=seconds, seed=seed, progress=step)
        if output is not None:
            step("writing the report")
            named = name_of(opened)
            is_assumed = nodes.name == DLRM_NODES.name
            where = "assumed nodes" if is_assumed else "its own nodes" if nodes.name == named else nodes.name
            write_placement_report(output, f"Placement: {named} on {where}", result, are_nodes_assumed=is_assumed)
    data = {
        "time_seconds": time,
        "cluster": nodes.name,
        **result.to_json(),
        "directory": None if output is None else str(output),
    }
    emit(data, json, lambda: _render(result, time, output))


def _from_run(
    path: Path, at: str, budget: int, seconds: float, output: Path | None, *, json: bool, quiet: bool
) -> None:
    from gputwin.core.atomic import atomic_directory
    from gputwin.optimization.placement.present import empty_nodes, present_of
    from gputwin.optimization.placement.snapshot import moment, snapshot_of
    from gputwin.simulation.result import SimulationResult

    with progress(quiet or json) as step:
        run = SimulationResult.open(path)
        time = moment(run, at)
        step("reading the moment")
        present = present_of(snapshot_of(run, time), run.nodes)
        step("emptying nodes")
        found = empty_nodes(present, budget, seconds=seconds)
        if output is not None:
            with atomic_directory(output, marker=MOVES_FILE) as folder:
                found.frame().write_parquet(folder / MOVES_FILE)
    data = {"time_seconds": time, **found.to_json(), "directory": None if output is None else str(output)}
    emit(data, json, lambda: _render_moves(found, time, output))


def _render_moves(found: Emptied, time: float, output: Path | None) -> None:
    say(found.verdict())
    say(f"{found.instances:,} instances run at {format_duration(time)} after the start")
    if found.moves:
        rows = [[m.job_id, m.source, m.target, f"{m.gpus:g}"] for m in found.moves]
        table("Moves", ["job", "from", "to", "GPUs"], rows)
    if output is not None:
        say(f"moves: {output / MOVES_FILE}")


def _pairs(texts: list[str]) -> list[tuple[str, str]]:
    from gputwin.core.errors import UserError

    found = []
    for text in texts:
        one, _, other = text.partition(",")
        if not one or not other or "," in other:
            raise UserError(f"--apart {text}: write it like app_0,app_1")
        found.append((one.strip(), other.strip()))
    return found


def _nodes(trace: Trace, cluster: str | None, quiet: bool) -> Cluster:
    from gputwin.optimization.placement.demand import DLRM_NODES
    from gputwin.simulation.cluster import cluster_for

    roles = set(trace.tasks["role"].drop_nulls().unique())
    if cluster is None and trace.nodes.is_empty() and roles == {"CN", "HN"}:
        if not quiet:
            warn(
                "the trace publishes no nodes; node types are assumed (docs/optimization.md); give yours with --cluster"
            )
        return DLRM_NODES
    return cluster_for(trace, cluster)


def _render(result: PlacementResult, time: float, output: Path | None) -> None:
    from gputwin.report.sections.placement_plan import RESOURCE_WORDS, amount, unit_words, verdict

    problem = result.problem
    say(verdict(result))
    instances, when = int(problem.counts.sum()), format_duration(time)
    say(f"{instances:,} instances in {len(problem.groups):,} groups alive {when} after the start")
    rows = [
        [
            a.method,
            amount(a.objective, problem.unit),
            amount(a.bound, problem.unit),
            f"{a.cpu_seconds:.2f}",
        ]
        for a in result.attempts
    ]
    if rows:
        table("Methods", ["method", unit_words(problem.unit), "lower bound", "CPU s"], rows)
    for kind, shares in result.to_json()["allocation"].items():
        say(
            f"{kind}: "
            + ", ".join(f"{RESOURCE_WORDS.get(r, r)} {percent(s, 1)}" for r, s in shares.items() if s > 1e-6)
        )
    if output is not None:
        say(f"report: {output / 'placement.html'}")


def _render_rolled(rolled: Rolling, output: Path | None) -> None:
    rows = [
        [
            r["policy"],
            f"{r['mean_nodes']:,.1f}",
            f"{r['peak_nodes']:,}",
            percent(r["above_bound"], 2),
            percent(r["allocated"], 2),
            f"{100 * r['gained']:+.2f}",
            f"{r['moves']:,}",
            "–" if r["node_hours_saved_per_move"] is None else f"{r['node_hours_saved_per_move']:.2f}",
        ]
        for r in rolled.summary().to_dicts()
    ]
    say(rolled.verdict())
    heads = ["policy", "mean nodes", "peak", "above bound", "allocated", "gained", "moves", "saved/move"]
    table("Placement over time", heads, rows)
    say("above bound: nodes at the start of each period against packing everybody anew, with free moves")
    say("allocated: share of the nodes in use, resources weighted by how scarce they are; gained: points over best fit")
    say("saved/move: node-hours that each move saves over best fit")
    missing = max(r["missing"] for r in rolled.summary().to_dicts())
    if missing:
        say(f"up to {missing:,} instances found no node; leave out --limited or give more nodes")
    if output is not None:
        say(f"periods: {output / 'over_time.parquet'}")
