"""`gputwin reproduce`: published results of schedulers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gputwin.cli.console import Json, Quiet, emit, progress, say, table


def add_to(app: typer.Typer) -> None:
    """Add these commands to `gputwin reproduce`."""
    app.command("gavel2020")(gavel2020)
    app.command("tiresias60")(tiresias60)


def gavel2020(
    throughputs: Annotated[
        Path, typer.Option("--throughputs", help="Measured steps a second by GPU model and job type.")
    ] = Path("simulation_throughputs.json"),
    folder: Annotated[
        Path, typer.Option("--folder", help="Folder with the jobs (trace_continuous_*) and the published table.")
    ] = Path("gavel"),
    trace: Annotated[str, typer.Option("--trace", help="single: jobs of one GPU; multiple: of 1 to 8.")] = "single",
    policy: Annotated[list[str] | None, typer.Option("--policy", help="Only these policies; repeatable.")] = None,
    rate: Annotated[
        list[float] | None, typer.Option("--rate", help="Only these rates, jobs an hour; repeatable.")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Completion times on three GPU models by rate of arrival (Narayanan et al., OSDI'20, section 7.3).

    All published rates of all policies take about an hour of CPU; one policy at one rate takes 5 to 60 s.

    Examples:

        gputwin reproduce gavel2020 --policy max_min_fairness_perf --rate 4.8

        gputwin reproduce gavel2020 --trace multiple --policy fifo --json
    """
    from gputwin.core.errors import UserError
    from gputwin.studies.reproduce.gavel2020 import POLICIES, reproduce

    if trace not in ("single", "multiple"):
        raise UserError(f"unknown trace '{trace}'; known: single, multiple")
    with progress(quiet or json) as step:
        result = reproduce(
            throughputs, folder, trace=trace, policies=policy or tuple(POLICIES), rates=rate or (), progress=step
        )

    def render() -> None:
        rows = [
            [
                p.policy,
                f"{p.jobs_per_hour:g}",
                f"{p.ours:.2f}",
                "–" if p.published is None else f"{p.published:.2f}",
                "–" if p.difference is None else f"{p.difference:+.1%}",
                "yes" if result.is_saturated(p) else "",
            ]
            for p in result.points
        ]
        columns = ["policy", "jobs an hour", "ours", "published", "difference", "saturated"]
        table(f"Mean completion time, h, trace '{trace}'", columns, rows)
        for name in dict.fromkeys(p.policy for p in result.points):
            worst = result.largest(name)
            if worst is not None:
                say(f"{name}: largest difference at unsaturated rates {worst:.1%}")

    emit(result.to_json(), json, render)


def tiresias60(
    folder: Annotated[
        Path, typer.Option("--folder", help="Folder with 60_job.csv and the published starts and ends.")
    ] = Path("tiresias"),
    policy: Annotated[list[str] | None, typer.Option("--policy", help="Only these policies; repeatable.")] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Sixty jobs on 4 × 4 GPUs, job by job, under the policies of Tiresias's simulator (Gu et al., NSDI'19).

    Examples:

        gputwin reproduce tiresias60 --folder tiresias

        gputwin reproduce tiresias60 --policy sjf --json
    """
    from gputwin.studies.reproduce.tiresias60 import NOT_EXPRESSED, POLICIES, reproduce

    with progress(quiet or json) as step:
        result = reproduce(folder, policies=policy or tuple(POLICIES), progress=step)

    def render() -> None:
        rows = [
            [
                r["policy"],
                f"{r['same_end']} of {r['jobs']}",
                f"{r['mean_jct_seconds']:.2f}",
                f"{r['published_mean_jct_seconds']:.2f}",
            ]
            for r in result.summary().to_dicts()
        ]
        table("Ends as published, and mean completion times, s", ["policy", "same end", "ours", "published"], rows)
        for name, why in NOT_EXPRESSED.items():
            say(f"{name}: not simulated: {why}")

    emit(result.to_json(), json, render)
