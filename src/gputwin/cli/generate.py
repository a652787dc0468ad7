"""`gputwin generate`: a synthetic trace and how faithful it is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gputwin.cli.console import Json, Quiet, Seed, emit, progress, say
from gputwin.cli.show import show_fidelity


def run(
    name: Annotated[str, typer.Argument(help="pai2020, openb2023, dlrm2025 or philly.")],
    jobs: Annotated[int, typer.Option("--jobs", help="How many jobs.")] = 10_000,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Directory to write the trace to.")] = None,
    instances: Annotated[bool, typer.Option("--instances", help="Also instances and their usage.")] = False,
    publisher: Annotated[
        Path | None, typer.Option("--publisher", help="Also write the publisher's own tables here (pai2020).")
    ] = None,
    against: Annotated[
        str | None,
        typer.Option("--against", help="Compare with this TRACE instead of the embedded reference."),
    ] = None,
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Generate a synthetic trace fitted to published marginals, and print how close it comes.

    Examples:

        gputwin generate pai2020 --jobs 100000 -o demo/pai

        gputwin generate pai2020 --jobs 1000000 --publisher raw/ --seed 7

        gputwin generate dlrm2025 --jobs 20000 --against dlrm
    """
    from gputwin.traces.locate import check_jobs, open_trace
    from gputwin.traces.synthetic import compare, fidelity, generate
    from gputwin.traces.synthetic.publisher import write_pai2020

    check_jobs(jobs)
    with progress(quiet or json) as step:
        original = open_trace(against, progress=step) if against else None
        step(f"generating {jobs:,} {name} jobs")
        synthetic = generate(name, jobs=jobs, seed=seed, instances=instances or publisher is not None)
        trace = synthetic.to_trace()
        if output is not None:
            step("writing the trace")
            trace = trace.save(output)
        if publisher is not None:
            step("writing the publisher's tables")
            write_pai2020(synthetic, publisher)
        step("measuring fidelity")
        frame = fidelity(synthetic) if original is None else compare(synthetic, original)
    data = {
        "name": name,
        "jobs": jobs,
        "seed": seed,
        "tables": dict(trace.meta.tables),
        "fingerprint": trace.meta.fingerprint,
        "trace_directory": None if output is None else str(output),
        "fidelity": frame.to_dicts(),
    }

    def render() -> None:
        say(f"{trace.meta.title}: " + ", ".join(f"{rows:,} {n}" for n, rows in trace.meta.tables.items()))
        show_fidelity(frame)
        if output is not None:
            say(f"trace: {output}")

    emit(data, json, render)
