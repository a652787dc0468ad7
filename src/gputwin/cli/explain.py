"""`gputwin explain`: why this job waited."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gputwin.cli.console import Json, Quiet, emit, say, table
from gputwin.core.errors import UserError


def run(
    directory: Annotated[Path, typer.Argument(metavar="RUN", help="Directory of a saved run.")],
    job: Annotated[
        str | None, typer.Argument(metavar="[JOB]", help="Job id, or 'longest' for the one that waited longest.")
    ] = None,
    tenant: Annotated[
        str | None, typer.Option("--tenant", help="Whom this tenant waits for, and who waits for it.")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Explain why a job waited, who held what it needed, and when it could have started otherwise.

    Without a job: who waits, and who holds what others wait for, per tenant.

    Examples:

        gputwin explain run longest

        gputwin explain run 4b3f04b66a525d2df903eb16 --json

        gputwin explain before --tenant vision
    """
    import polars as pl

    from gputwin.cli.tenants import explain_tenants
    from gputwin.core.units import format_duration
    from gputwin.simulation.explain import explain
    from gputwin.simulation.result import SimulationResult

    result = SimulationResult.open(directory)
    if job is None:
        explain_tenants(result, tenant, json)
        return
    if tenant is not None:
        raise UserError("a job and --tenant exclude one another; give one of them")
    if job == "longest":
        job = result.jobs.sort(pl.col("wait_seconds").fill_null(-1.0), descending=True)["job_id"][0]
    explanation = explain(result, job)

    def render() -> None:
        for line in explanation.story():
            say(line)
        if explanation.could_have_started:
            rows = [
                [k, "not before" if v is None else format_duration(v)]
                for k, v in explanation.could_have_started.items()
            ]
            table("It could have started after", ["with", "waiting"], rows)
        if explanation.holders:
            rows = [[h["job_id"], h["tenant"], f"{h['gpus']:g}", f"{h['gpu_hours']:,.2f}"] for h in explanation.holders]
            table("Who held what it needed", ["job", "tenant", "GPUs", "GPU-hours during the wait"], rows)

    emit(explanation.to_json(), json, render)
