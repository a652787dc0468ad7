"""`gputwin demo`: the first steps with a trace, from raw files to a report, on generated data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gputwin.cli.console import Json, Quiet, Seed, announce_compilation, emit, progress, say, show
from gputwin.cli.show import check_json, ingest_json, show_check, show_description, show_ingest

CLUSTER = "pai2020"
REPLICATES = 3


def run(
    output: Annotated[Path, typer.Option("-o", "--output", help="Directory for raw files, trace and report.")],
    jobs: Annotated[int, typer.Option("--jobs", help="How many jobs to generate.")] = 20_000,
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Generate a PAI trace as its publisher would ship it, ingest, check and analyze it, and compare schedulers on it.

    Nothing is downloaded. The last line printed is the report's path.

    Examples:

        gputwin demo -o demo

        gputwin demo -o demo --jobs 100000 --seed 7
    """
    from gputwin.report import write_report
    from gputwin.report.sections.comparison import differences, next_steps, side_by_side
    from gputwin.simulation.cluster import open_cluster
    from gputwin.simulation.load import check_load
    from gputwin.studies.comparison import compare, run_scenarios
    from gputwin.studies.comparison.verdict import recommendation
    from gputwin.traces.describe import describe
    from gputwin.traces.ingest import ingest
    from gputwin.traces.locate import SYNTHETIC, check_jobs
    from gputwin.traces.synthetic import fidelity, generate, write_pai2020

    check_jobs(jobs)
    announce_compilation(quiet)
    with progress(quiet or json) as step:
        step(f"generating {jobs:,} jobs")
        synthetic = generate("pai2020", jobs=jobs, seed=seed, instances=True)
        step("writing the publisher's tables")
        files = write_pai2020(synthetic, output / "raw")
        directory = output / "trace"
        trace = ingest(files, directory, progress=step)
        cluster = open_cluster(CLUSTER)
        step("comparing load with capacity")
        check = check_load(trace, cluster)
        names = [f"{SYNTHETIC}pai2020?jobs={jobs}&seed={seed + k}" for k in range(REPLICATES)]
        compared = compare(run_scenarios(names, cluster, progress=step), seed=seed)
        step("writing the report")
        report = write_report(
            output / "report.html",
            trace,
            check=check,
            cluster=cluster,
            fidelity=fidelity(synthetic),
            title=f"A synthetic PAI trace: {jobs:,} jobs",
            generated_from=names[0],
            compared=compared,
        )
        description = describe(trace)

    def render() -> None:
        say(f"1. Generated {jobs:,} jobs in the publisher's {len(files)} tables: {output / 'raw'}\n")
        say("2. Ingested and checked for quality")
        show_ingest(trace.meta, directory)
        say("\n3. Described")
        show_description(description)
        say("\n4. Compared with the cluster's capacity")
        show_check(cluster, check)
        say(f"\n5. Simulated under {len(compared.labels)} sets of rules, {REPLICATES} seeds")
        show(side_by_side(compared))
        show(differences(compared))
        say("\n6. Report\n")
        say(f"Conclusion: {recommendation(compared)}")
        say(f"Next: {next_steps(compared)[0]}")
        say(str(report))

    data = {
        "jobs": jobs,
        "seed": seed,
        "ingest": ingest_json(trace.meta, directory),
        "description": description.to_json(),
        "check": check_json(cluster, check),
        "scenarios": compared.means().to_dicts(),
        "differences": compared.differences.to_dicts(),
        "report": str(report),
    }
    emit(data, json, render)
