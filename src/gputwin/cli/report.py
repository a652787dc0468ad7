"""`gputwin report`: a trace as one HTML file for colleagues."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gputwin.cli.console import Format, Json, Quiet, emit, progress, say
from gputwin.cli.options import TraceArgument


def run(
    trace: TraceArgument,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE.html", help="File to write the report to.")],
    cluster: Annotated[
        str | None,
        typer.Option("--cluster", help="Also check the load against this cluster; the trace's own nodes otherwise."),
    ] = None,
    runs: Annotated[
        list[Path] | None,
        typer.Option("--run", metavar="DIR", help="A saved run; of several the first is the baseline."),
    ] = None,
    brief: Annotated[bool, typer.Option("--brief", help="The answer alone, on one printed page.")] = False,
    title: Annotated[
        str | None, typer.Option("--title", help="Title of the report; the trace's own otherwise.")
    ] = None,
    format: Format = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write a report as one HTML file: the answer first, then the figures behind it, in sections that open on demand.

    The report answers how long work waits in a trace and how full its cluster is; with --run what a run does to its jobs,
    and with several of them which rules to use. The file needs nothing else: it opens offline, in light and dark, and
    prints.

    Examples:

        gputwin report dlrm --cluster homogeneous:200x8 -o dlrm.html

        gputwin report "synthetic:pai2020?jobs=100000" -o pai.html

        gputwin report pai --run fifo --run sjf --run easy -o comparison.html
    """
    from gputwin.report import fidelity_of, write_report
    from gputwin.simulation.cluster import Cluster, open_cluster
    from gputwin.simulation.load import check_load
    from gputwin.simulation.result import SimulationResult
    from gputwin.studies.comparison import check_same_trace, compare, label_runs
    from gputwin.traces.locate import open_trace

    with progress(quiet or json) as step:
        opened = open_trace(trace, format, step)
        named = open_cluster(cluster) if cluster else None
        own = None if opened.nodes.is_empty() else Cluster.from_nodes("own", opened.nodes)
        target, check = named or own, None
        if target is not None and not opened.tasks.is_empty():
            step("comparing load with capacity")
            check = check_load(opened, target)
        step("writing the report")
        fidelity = fidelity_of(opened)
        compared, single = None, None
        if runs:
            opened_runs = [SimulationResult.open(path) for path in runs]
            check_same_trace(opened, dict(zip(map(str, runs), opened_runs, strict=True)))
            if len(opened_runs) > 1:
                compared = compare(label_runs(opened_runs))
            else:
                single = opened_runs[0]
        path = write_report(
            output,
            opened,
            check=check,
            cluster=named,
            fidelity=fidelity,
            title=title,
            compared=compared,
            simulated=single,
            brief=brief,
        )

    emit({"report": str(path), "bytes": path.stat().st_size}, json, lambda: say(str(path)))
