"""`gputwin reproduce`: published results of schedulers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gputwin.cli.console import Json, Quiet, emit, progress, say, table
from gputwin.core.units import percent


def add_to(app: typer.Typer) -> None:
    """Add these commands to `gputwin reproduce`."""
    app.command("gavel2020")(gavel2020)
    app.command("tiresias60")(tiresias60)
    app.command("pollux2021")(pollux2021)


def gavel2020(
    throughputs: Annotated[
        Path, typer.Option("--throughputs", help="Measured steps a second by GPU model and job type.")
    ] = Path("simulation_throughputs.json"),
    folder: Annotated[
        Path, typer.Option("--folder", help="Folder with the published table, jct_by_policy_and_rate.csv.")
    ] = Path("gavel"),
    trace: Annotated[str, typer.Option("--trace", help="single: jobs of one GPU; multiple: of 1 to 8.")] = "single",
    policy: Annotated[list[str] | None, typer.Option("--policy", help="Only these policies; repeatable.")] = None,
    rate: Annotated[
        list[float] | None, typer.Option("--rate", help="Only these rates, jobs an hour; repeatable.")
    ] = None,
    seed: Annotated[
        int, typer.Option("--seed", min=0, help="Seed of the jobs and of what policies draw; published: 0.")
    ] = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Completion times on three GPU models by rate of arrival (Narayanan et al., OSDI'20, section 7.3).

    All published rates of all policies take about an hour of CPU; one policy at one rate takes 5 to 60 s.

    Examples:

        gputwin reproduce gavel2020 --policy max_min_fairness_perf --rate 4.8

        gputwin reproduce gavel2020 --policy fifo_perf --rate 0.4 --rate 4.0

        gputwin reproduce gavel2020 --trace multiple --policy fifo --json
    """
    from gputwin.core.errors import UserError
    from gputwin.studies.reproduce.gavel2020 import POLICIES, reproduce

    if trace not in ("single", "multiple"):
        raise UserError(f"unknown trace '{trace}'; known: single, multiple")
    with progress(quiet or json) as step:
        result = reproduce(
            throughputs,
            folder,
            trace=trace,
            policies=policy or tuple(POLICIES),
            rates=rate or (),
            seed=seed,
            progress=step,
        )

    def render() -> None:
        rows = [
            [
                p.policy,
                f"{p.jobs_per_hour:g}",
                f"{p.ours:.2f}",
                "–" if p.published is None else f"{p.published:.2f}",
                "–" if p.difference is None else percent(p.difference, 1, signed=True),
                "yes" if result.is_saturated(p) else "",
            ]
            for p in result.points
        ]
        columns = ["policy", "jobs an hour", "ours", "published", "difference", "saturated"]
        for name in result.policies:
            worst = result.largest(name)
            if worst is not None:
                say(f"{name}: largest difference at unsaturated rates {percent(worst, 1)}")
            ours, published = (result.saturation_rate(name, column) for column in ("ours", "published"))
            if ours or published:
                say(
                    f"{name}: least rate tried that is saturated {_rate(ours)} jobs an hour, published {_rate(published)}"
                )
        table(f"Mean completion time, h, trace '{trace}'", columns, rows)

    emit(result.to_json(), json, render)


def _rate(jobs_per_hour: float | None) -> str:
    return "none" if jobs_per_hour is None else f"{jobs_per_hour:g}"


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
    from gputwin.studies.reproduce.tiresias60 import NOT_THE_ENGINE, POLICIES, reproduce

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
        same, all_ends = (int(result.summary()[column].sum()) for column in ("same_end", "jobs"))
        say(f"{same:,} of {all_ends:,} jobs end at the published second.")
        table("Ends as published, and mean completion times, s", ["policy", "same end", "ours", "published"], rows)
        for name in policy or POLICIES:
            if name in NOT_THE_ENGINE:
                say(f"{name}: {NOT_THE_ENGINE[name]}")

    emit(result.to_json(), json, render)


def pollux2021(
    profiles: Annotated[Path, typer.Option("--profiles", help="Folder with measured step times.")] = Path("profiles"),
    folder: Annotated[
        Path, typer.Option("--folder", help="Folder with workloads, validation curves and published means.")
    ] = Path("pollux"),
    policy: Annotated[list[str] | None, typer.Option("--policy", help="Only these policies; repeatable.")] = None,
    load: Annotated[
        list[str] | None, typer.Option("--load", help="0.5, 1.0, 1.5 or 2.0; repeatable.", show_default="1.0")
    ] = None,
    workload: Annotated[list[int] | None, typer.Option("--workload", help="Only these workloads; repeatable.")] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Mean completion times of deep-learning jobs on 16 nodes of 4 GPUs (Qiao et al., Pollux, OSDI'21, section 5.3).

    Examples:

        gputwin reproduce pollux2021 --profiles pollux_profiles --folder pollux

        gputwin reproduce pollux2021 --policy optimus --load 0.5 --load 2.0 --json
    """
    from gputwin.studies.reproduce.pollux2021 import POLICIES, reproduce

    with progress(quiet or json) as step:
        result = reproduce(
            profiles,
            folder,
            policies=policy or tuple(POLICIES),
            loads=load or ("1.0",),
            workloads=workload or (),
            progress=step,
        )

    def render() -> None:
        for name in policy or POLICIES:
            say(f"{name}: largest difference to the published means {percent(result.largest_difference(name), 2)}")
        rows = [
            [
                r["policy"],
                r["load"],
                r["workload"],
                f"{r['mean_seconds']:.2f}",
                "–" if r["published_seconds"] is None else f"{r['published_seconds']:.2f}",
            ]
            for r in result.times.to_dicts()
        ]
        table("Mean completion time, s", ["policy", "load", "workload", "ours", "published"], rows)
        fits = [
            [r["application"], percent(r["error"], 1), percent(r["error_above_8_gpus"], 1)]
            for r in result.fits.to_dicts()
        ]
        columns = ["application", "error", "above 8 GPUs, fitted to at most 8"]
        table("Mean error of fitted step times", columns, fits)

    emit(result.to_json(), json, render)
