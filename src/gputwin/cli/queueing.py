"""`gputwin queueing`: theory against simulation against trace."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gputwin.cli.console import Format, Json, Quiet, Seed, emit, progress, say, table, warn_of_overload
from gputwin.cli.options import Backfill, ClusterOption, Order, Placement, Policies, TraceArgument, scenario_from
from gputwin.core.units import percent

if TYPE_CHECKING:
    from gputwin.studies.validation.theory import Figures
    from gputwin.studies.validation.threeway import ThreeWay


def run(
    context: typer.Context,
    trace: TraceArgument,
    cluster: ClusterOption = None,
    order: Order = None,
    placement: Placement = None,
    backfill: Backfill = None,
    policies: Policies = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="DIR", help="Directory for the tables and a report.")
    ] = None,
    format: Format = None,
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Put theory, simulation and trace side by side, and say which assumption of theory breaks where they part.

    Examples:

        gputwin queueing "synthetic:pai2020?jobs=100000" --cluster pai2020

        gputwin queueing thetagpu_jobs.csv.gz --cluster homogeneous:24x8 -o theta-queueing
    """
    from gputwin.report.queueing import write_queueing_report
    from gputwin.simulation.simulate import cluster_of_scenario, part_of, trace_of
    from gputwin.studies.validation.threeway import compare
    from gputwin.traces.locate import open_trace

    fields = {
        "format": format,
        "cluster": cluster,
        "order": order,
        "backfill": backfill,
        "placement": placement,
        "seed": seed,
    }
    scenario = scenario_from(context, trace, policies, fields)
    with progress(quiet or json) as step:
        opened = part_of(scenario, trace_of(scenario, open_trace(scenario.trace, scenario.format, step)))
        target = cluster_of_scenario(scenario, opened)
        warnings = warn_of_overload(opened, target, scenario.load_scale)
        result = compare(opened, target, scenario, progress=step)
        if output is not None:
            step("writing the report")
            write_queueing_report(output, opened, result)
    data = {**result.to_json(), "warnings": warnings, "directory": None if output is None else str(output)}
    emit(data, json, lambda: _render(result, output))


def _render(result: ThreeWay, output: Path | None) -> None:
    from gputwin.core.units import format_duration
    from gputwin.report.sections.queueing import headline

    jobs = result.jobs
    say(headline(result))
    say(
        f"{result.subject.gpu_jobs:,} jobs in {format_duration(jobs.until - jobs.begin)} on {result.cluster} "
        f"({result.gpus:,} GPUs): order {result.scenario.order}, backfill {result.scenario.backfill}"
    )
    for sentence in (*result.verdicts, *(f"{note[:1].upper()}{note[1:]}." for note in result.notes)):
        say(f"- {sentence}")
    rows = [
        ["theory", p.model, *_cells(p.figures), result.error(p.figures)] for p in result.predictions if not p.why_not
    ]
    rows += [["simulation", r.name, *_cells(r.figures), result.error(r.figures)] for r in result.steps]
    if result.trace is not None:
        rows.append(["trace", "as it was", *_cells(result.trace), result.error(result.trace)])
    columns = ["", "what", "mean wait", "p95 wait", "GPUs in use", "jobs waiting", "error of mean"]
    table("Theory, simulation, trace", columns, rows)
    for p in result.predictions:
        if p.why_not:
            say(f"{p.model}: {p.why_not}")
    rows = []
    for c in result.classes:
        theirs = ["–"] * 2 if c.trace is None else _cells(c.trace)[:2]
        rows.append([c.name, f"{c.jobs:,}", f"{c.load:,.1f}", *_cells(c.simulation)[:2], *theirs])
    columns = ["class", "jobs", "GPUs asked", "simulated mean wait", "p95", "trace's mean wait", "p95"]
    table("By class (theory, in order of arrival, makes no difference between them)", columns, rows)
    if result.laws:
        rows = [
            [x.name, x.says, f"{x.measured:.4g}", f"{x.computed:.4g}", percent(x.difference, 1, signed=True)]
            for x in result.laws
        ]
        table("Operational laws on the trace", ["law", "says", "measured", "by the law", "difference"], rows)
    if output is not None:
        say(f"report: {output / 'queueing.html'}")


def _cells(figures: Figures) -> list[str]:
    return [
        _wait(figures.mean_wait),
        _wait(figures.p95_wait),
        "–" if figures.utilisation is None else percent(figures.utilisation, 1),
        "–" if figures.queue_length is None else f"{figures.queue_length:,.1f}",
    ]


def _wait(seconds: float | None) -> str:
    from gputwin.core.units import format_duration

    return "0 s" if seconds is not None and seconds < 1e-3 else format_duration(seconds)
