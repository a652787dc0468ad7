"""`gputwin bench`: the speed figures of the README."""

from __future__ import annotations

from typing import Annotated

import typer

from gputwin.cli.console import Json, Quiet, Seed, emit, progress, say, table


def run(
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs", min=1, help="Jobs (requests, decisions) of each benchmark; its own number when not given."
        ),
    ] = None,
    only: Annotated[list[str] | None, typer.Option("--only", help="Only this benchmark; repeatable.")] = None,
    large: Annotated[
        bool, typer.Option("--large", help="Also ten million jobs, whole commands and the first start.")
    ] = False,
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure how fast the engine is, compared with plain Python and other simulators.

    Examples:

        gputwin bench

        gputwin bench --only "fifo first-fit" --jobs 100000 --json
    """
    from gputwin.core.units import format_duration
    from gputwin.studies.bench.published import PUBLISHED
    from gputwin.studies.bench.suite import run_suite

    with progress(quiet or json) as step:
        figures = run_suite(only=only or (), jobs=jobs, large=large, seed=seed, progress=step)

    def render() -> None:
        rows = [
            [
                b.name,
                f"{b.jobs:,}",
                f"{b.jobs_per_cpu_second:,.0f}",
                f"{b.reference_jobs_per_cpu_second:,.0f} ({b.reference_jobs:,} jobs)" if b.reference_jobs else "-",
                f"{b.ratio:,.0f}×" if b.ratio else "-",
                f"{b.shapes:,}",
                f"{b.ratio_to_pair:.2f}×" if b.ratio_to_pair else "-",
                f"{b.bytes_per_job:,.0f}",
                f"{b.most_waiting:,}",
            ]
            for b in figures.benchmarks
        ]
        columns = ["benchmark", "jobs", "jobs/CPU-s", "plain Python (its jobs)", "ratio"]
        columns += ["shapes", "to its pair", "bytes/job", "longest queue"]
        if rows:
            title = "The engine compared with plain Python on the first jobs of the same, per second of user CPU"
            table(title, columns, rows)
        if any(b.ratio_to_pair for b in figures.benchmarks):
            say(
                "to its pair: jobs of thousands of shapes, seven instances each, against the same rule with one-instance "
                "jobs; a year in which each node fails every 30 days against a year without failures"
            )
        if figures.commands:
            rows = [
                [
                    c.name,
                    f"{c.jobs:,}",
                    f"{c.cpu_seconds:,.1f}",
                    f"{c.jobs_per_cpu_second:,.0f}",
                    f"{c.peak_bytes / 2**30:.1f}",
                    format_duration(c.mean_wait_seconds),
                ]
                for c in figures.commands
            ]
            columns = ["command", "jobs", "CPU s", "jobs/CPU-s", "GiB", "mean wait"]
            table("Whole commands on jobs like PAI's, from making the trace to the saved run", columns, rows)
        if figures.scaling:
            rows = [[m.name, f"{m.count:,}", f"{m.value:,.1f} {m.unit}", f"{m.most:g}"] for m in figures.scaling]
            columns = ["benchmark", "requests, decisions or jobs", "measured", "at most"]
            title = (
                "Serving with every latency and a decision each 15 s, one decision of each rule, one round of a planner"
            )
            table(title, columns, rows)
        say(f"warm start: gputwin simulate of 1,000 jobs takes {figures.warm_start_cpu_seconds:.2f} s of CPU")
        if figures.first_start_cpu_seconds is not None:
            say(f"first start: the same with nothing compiled takes {figures.first_start_cpu_seconds:.0f} s of CPU")
        if figures.benchmarks:
            columns = ["simulator", "workload", "jobs", "jobs/CPU-s"]
            table("Other simulators, measured on machines like ours (2 cores, 24 GiB)", columns, PUBLISHED)

    emit(figures.to_json(), json, render)
