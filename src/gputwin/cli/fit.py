"""`gputwin fit`: where a gang would fit now, and after which moves."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gputwin.cli.console import Json, Quiet, emit, progress, say, table

if TYPE_CHECKING:
    from gputwin.optimization.placement.defragment import GangFit


def run(
    run_directory: Annotated[Path, typer.Argument(metavar="RUN", help="A saved run (gputwin simulate -o).")],
    gang: Annotated[int, typer.Option("--gang", help="Instances that must start together.")] = 1,
    gpus: Annotated[int, typer.Option("--gpus", help="GPUs of each instance.")] = 1,
    gpu_milli: Annotated[int, typer.Option("--gpu-milli", help="Share of each GPU; 1000 is a whole one.")] = 1000,
    cpu_milli: Annotated[int, typer.Option("--cpu-milli", help="CPU of each instance; 1000 is a core.")] = 0,
    memory_mib: Annotated[int, typer.Option("--memory-mib", help="Memory of each instance.")] = 0,
    models: Annotated[str | None, typer.Option("--models", help="GPU models it may run on, joined by |.")] = None,
    max_per_node: Annotated[int | None, typer.Option("--max-per-node", help="Most instances on one node.")] = None,
    at: Annotated[
        str | None, typer.Option("--at", help="Seconds of the run, 'busiest' (most GPUs held) or 'end' of arrivals.")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Say where a gang fits at a moment of a run, or the fewest moves of running instances that let it in.

    Examples:

        gputwin fit run --gang 4 --gpus 8

        gputwin fit run --gang 2 --gpus 8 --models "V100|A100" --cpu-milli 32000 --at end
    """
    from gputwin.core.errors import UserError
    from gputwin.optimization.placement.defragment import fit_gang
    from gputwin.optimization.placement.snapshot import Request, moment, snapshot_of
    from gputwin.simulation.result import SimulationResult

    if not 1 <= gang <= 100_000 or gpus < 0 or not 1 <= gpu_milli <= 1000:
        raise UserError("give a gang of 1 to 100,000 instances, GPUs of zero or more, and a share of 1 to 1000")
    if cpu_milli < 0 or memory_mib < 0:
        raise UserError("amounts must be zero or more")
    with progress(quiet or json) as step:
        result = SimulationResult.open(run_directory)
        time = moment(result, at)
        step("reading the moment")
        snapshot = snapshot_of(result, time)
        request = Request(
            (cpu_milli, memory_mib, 0, 0),
            gpus,
            gpu_milli,
            None if models is None else frozenset(models.split("|")),
            max_per_node,
        )
        step("looking for room")
        found = fit_gang(snapshot, request, gang)
    emit({"time_seconds": time, **found.to_json()}, json, lambda: _render(found, time))


def _render(found: GangFit, time: float) -> None:
    now = f"{found.fits_now:,} of {found.instances:,} instances fit with no move"
    if found.nodes is None:
        say(f"at {time:,.0f} s it cannot start: {found.reason}")
        say(now)
    else:
        counts = {n: found.nodes.count(n) for n in dict.fromkeys(found.nodes)}
        proof = "no fewer moves do" if found.is_optimal else f"at least {found.least_moves} are needed"
        after = f"after {len(found.moves)} moves ({proof})" if found.moves else "now"
        where = ", ".join(f"{n} ({k})" for n, k in list(counts.items())[:20])
        rest = f" and {len(counts) - 20:,} more nodes" if len(counts) > 20 else ""
        say(f"at {time:,.0f} s it starts {after} on {where}{rest}; {now}")
    if found.options:
        rows = [[node, f"{n:,}"] for node, n in found.options[:10]]
        table("Room now", ["node", "instances"], rows)
    if found.moves:
        rows = [[m.job_id, m.source, m.target, f"{m.gpus:g}"] for m in found.moves]
        table("Moves", ["job", "from", "to", "GPUs"], rows)
