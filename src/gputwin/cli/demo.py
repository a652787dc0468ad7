"""`gputwin demo`: everything gputwin does, from raw files to a conclusion, on generated data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gputwin.cli.console import Json, Quiet, Seed, announce_compilation, emit, progress, say, show
from gputwin.cli.show import check_json, ingest_json, show_check, show_description, show_ingest


def run(
    output: Annotated[Path, typer.Option("-o", "--output", help="Directory for raw files, trace, runs and report.")],
    jobs: Annotated[int, typer.Option("--jobs", help="How many jobs to generate.")] = 20_000,
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Generate a PAI trace as its publisher would ship it, and take it through every step to a conclusion.

    Reads and checks it, analyzes it, finds job classes, forecasts demand, asks queueing theory, simulates eight
    schedulers with and without sharing and under three placements, places the busiest hour, and compares scaling rules.
    Nothing is downloaded. The last line printed is the report's path.

    Examples:

        gputwin demo -o demo

        gputwin demo -o demo --jobs 100000 --seed 7
    """
    from gputwin.analysis import analyze
    from gputwin.core.machine_code import config
    from gputwin.core.processors import processors
    from gputwin.report import write_report
    from gputwin.report.compile import compile_ahead
    from gputwin.report.demo import CLUSTER, REPLICATES, SCHEDULERS, demonstrate
    from gputwin.report.sections.comparison import differences, next_steps, side_by_side
    from gputwin.report.study import study_section
    from gputwin.report.timeline import Timeline
    from gputwin.simulation.cluster import open_cluster
    from gputwin.simulation.engine.compiled import is_compiled
    from gputwin.simulation.load import check_load
    from gputwin.studies.comparison.verdict import recommendation
    from gputwin.studies.store import RunStore
    from gputwin.traces.describe import describe
    from gputwin.traces.ingest import ingest
    from gputwin.traces.locate import SYNTHETIC, check_jobs
    from gputwin.traces.synthetic import fidelity, generate, write_pai2020

    check_jobs(jobs)
    announce_compilation(quiet)
    with progress(quiet or json) as step:
        if not is_compiled() and not config.DISABLE_JIT and processors() > 1:
            compile_ahead(progress=step)
        step(f"generating {jobs:,} jobs")
        synthetic = generate("pai2020", jobs=jobs, seed=seed, instances=True)
        step("writing the publisher's tables")
        files = write_pai2020(synthetic, output / "raw")
        directory = output / "trace"
        trace = ingest(files, directory, progress=step)
        cluster = open_cluster(CLUSTER)
        step("comparing load with capacity")
        check = check_load(trace, cluster)
        made = demonstrate(trace, jobs, seed, RunStore(output), step)
        compared = made.outcome.compared
        step("analysing the trace")
        analysis = analyze(trace)
        step("writing the report")
        others = [section for name in made.parts for section in made.parts[name]]
        report = write_report(
            output / "report.html",
            trace,
            check=check,
            cluster=cluster,
            fidelity=fidelity(synthetic),
            title=f"A synthetic PAI trace: {jobs:,} jobs",
            generated_from=f"{SYNTHETIC}pai2020?jobs={jobs}&seed={seed}",
            analysis=analysis,
            asked=[study_section(made.outcome, Timeline.of(trace)), *others],
        )
        description = describe(trace)
    said = {name: next((s.gist for s in sections if s.gist), "") for name, sections in made.parts.items()}
    conclusion, serve = recommendation(compared), f"gputwin serve --workspace {output}"

    def render() -> None:
        say(f"Conclusion: {conclusion}")
        say(f"Next: {next_steps(compared)[0]}")
        for name in ("profile", "forecast", "theory"):
            say(f"- {name}: {said[name]}")
        say(f"- sharing: {made.sharing()}")
        say(f"- placement: {made.placing()} {said['placement']}")
        say(f"- autoscaling: {said['autoscaling']}")
        say(f"\n1. Simulated: {len(SCHEDULERS)} schedulers, placements and sharing, {REPLICATES} seeds")
        show(side_by_side(compared))
        say(f"\n2. Generated {jobs:,} jobs in the publisher's {len(files)} tables: {output / 'raw'}\n")
        say("3. Ingested and checked for quality")
        show_ingest(trace.meta, directory)
        say("\n4. Described")
        show_description(description)
        say("\n5. Compared with the cluster's capacity")
        show_check(cluster, check)
        say("\n6. Differences between schedulers")
        show(differences(compared))
        say(f"\nIn the dashboard: {serve}")
        say(str(report))

    data = {
        "jobs": jobs,
        "seed": seed,
        "ingest": ingest_json(trace.meta, directory),
        "description": description.to_json(),
        "check": check_json(cluster, check),
        "parts": said,
        **compared.to_json(),
        "conclusion": conclusion,
        "dashboard": serve,
        "report": str(report),
    }
    emit(data, json, render)
