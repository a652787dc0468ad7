"""`gputwin check`: does this trace fit this cluster."""

from __future__ import annotations

from typing import Annotated

import typer

from gputwin.cli.console import Format, Json, Quiet, emit, progress, say, table


def run(
    trace: Annotated[str, typer.Argument(metavar="TRACE", help="Trace directory, synthetic:NAME, or raw file.")],
    cluster: Annotated[
        str | None,
        typer.Option("--cluster", help="YAML spec, node file, or a built-in; the trace's own nodes when not given."),
    ] = None,
    format: Format = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compare offered load with capacity, over time and per GPU model, and list tasks that can never fit.

    Examples:

        gputwin check synthetic:pai2020?jobs=100000 --cluster pai2020

        gputwin check dlrm --cluster homogeneous:200x8
    """
    from gputwin.core.units import format_count
    from gputwin.simulation.cluster import Cluster, open_cluster
    from gputwin.simulation.load import check_load
    from gputwin.traces.locate import open_trace

    with progress(quiet or json) as step:
        opened = open_trace(trace, format, step)
        target = open_cluster(cluster) if cluster else Cluster.from_nodes(trace, opened.nodes)
        step("comparing load with capacity")
        result = check_load(opened, target)

    def render() -> None:
        say(f"{target.name}: {target.node_count:,} nodes, {target.gpu_count:,} GPUs")
        rows = [
            [
                x.resource,
                x.models,
                format_count(x.capacity),
                f"{x.mean:.3f}",
                f"{x.p95:.3f}",
                f"{x.peak:.3f}",
                f"{x.time_above_capacity:.1%}",
            ]
            for x in result.loads
        ]
        table(
            "Offered load / capacity",
            ["resource", "GPU models", "capacity", "mean", "p95", "peak", "time above 1"],
            rows,
        )
        if not result.never_fit.is_empty():
            rows = [[f"{r['tasks']:,}", r["reason"], r["example_job"]] for r in result.never_fit_by_reason().to_dicts()]
            table("Can never be placed", ["tasks", "why", "for example"], rows)
        say(result.verdict)

    emit(
        {"cluster": target.name, "nodes": target.node_count, "gpus": target.gpu_count, **result.to_json()},
        json,
        render,
    )
