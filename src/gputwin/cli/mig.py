"""`gputwin mig`: the best MIG layouts of a fleet for a demand of instance sizes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gputwin.cli.console import Json, Quiet, emit, progress, say, table

if TYPE_CHECKING:
    from gputwin.optimization.mig.fleet import FleetPlan
    from gputwin.optimization.mig.over_time import Periods
    from gputwin.simulation.mig_profiles import MigGpu


def run(
    demand: Annotated[
        list[str] | None,
        typer.Option("--demand", metavar="PROFILE=N", help="Instances wanted, as 1g.5gb=300; repeatable."),
    ] = None,
    periods: Annotated[
        Path | None,
        typer.Option("--periods", metavar="FILE", help="Instead: demand over time, a YAML list of {PROFILE: N}."),
    ] = None,
    change_cost: Annotated[
        int,
        typer.Option("--change-cost", min=0, help="With --periods: what creating or destroying one instance costs."),
    ] = 1,
    gpu: Annotated[str, typer.Option("--gpu", help="Kind of GPU, as A100-40GB, H100-80GB, A30-24GB.")] = "A100-40GB",
    gpus: Annotated[int, typer.Option("--gpus", help="GPUs in the fleet.")] = 8,
    current: Annotated[
        str | None,
        typer.Option(
            "--current", metavar="FILE[:NAME]", help="Present layouts as a mig-parted file; none cut otherwise."
        ),
    ] = None,
    busy: Annotated[
        list[str] | None,
        typer.Option("--busy", metavar="GPU:PROFILE[@START]", help="An instance in use, which stays; repeatable."),
    ] = None,
    value: Annotated[
        list[str] | None,
        typer.Option("--value", metavar="PROFILE=N", help="What serving one is worth; its compute slices otherwise."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="DIR", help="Directory for the mig-parted file and a report."),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Cut a fleet of GPUs so that the most of a demand is served, with the fewest instances created and destroyed.

    The answer is exact. Instances in use stay where they are while the rest of their GPU is cut anew.

    Examples:

        gputwin mig --gpu A100-40GB --gpus 1000 --demand 1g.5gb=1500 --demand 3g.20gb=800 -o layouts

        gputwin mig --gpu A100-40GB --gpus 100 --periods day.yaml --change-cost 2

        gputwin mig --gpu H100-80GB --gpus 8 --current parted.yaml:all-balanced --busy 0:3g.40gb --demand 7g.80gb=4
    """
    from gputwin.core.errors import UserError
    from gputwin.optimization.mig.fleet import CutGpu, fewest_gpus, plan_fleet
    from gputwin.optimization.mig.parted import read_parted
    from gputwin.report.mig import write_mig_report
    from gputwin.simulation.mig_profiles import mig_gpu

    kind = mig_gpu(gpu)
    if not 1 <= gpus <= 1_000_000:
        raise UserError(f"--gpus {gpus}: give a number between 1 and 1,000,000")
    values = _numbers(value or [], "--value")
    if (demand is None) == (periods is None):
        raise UserError("give either --demand, for one time, or --periods, for demand over time")
    if periods is not None:
        if current is not None or busy or output is not None:
            raise UserError("--periods starts from a fleet that is not cut yet; leave out --current, --busy and -o")
        _over_time(kind, gpus, periods, change_cost, values, json=json, quiet=quiet)
        return
    wanted = _numbers(demand or [], "--demand")
    layouts: tuple[tuple[tuple[str, int], ...], ...] = ((),) * gpus
    if current is not None:
        path, _, name = current.partition(":")
        layouts = read_parted(Path(path), kind, gpus, name or None)
    in_use = _busy(busy or [], layouts)
    with progress(quiet or json) as step:
        step("cutting the fleet")
        fleet = [CutGpu(layout, frozenset(in_use.get(i, set()))) for i, layout in enumerate(layouts)]
        plan = plan_fleet(kind, fleet, wanted, values=values)
        least = fewest_gpus(kind, wanted)[0]
        if output is not None:
            write_mig_report(output, plan, least)
    data = {**plan.to_json(), "gpus_needed": least, "directory": None if output is None else str(output)}
    emit(data, json, lambda: _render(plan, least, output))


def _over_time(
    kind: MigGpu, gpus: int, file: Path, change_cost: int, values: dict[str, int], *, json: bool, quiet: bool
) -> None:
    from gputwin.optimization.mig.over_time import plan_periods, read_periods

    demands = read_periods(file)
    with progress(quiet or json) as step:
        step("cutting the fleet over time")
        plan = plan_periods(kind, gpus, demands, change_cost=change_cost, values=values)
    emit(plan.to_json(demands), json, lambda: _render_periods(plan, demands))


def _render_periods(plan: Periods, demands: list[dict[str, int]]) -> None:
    rows = []
    for k, (demand, served) in enumerate(zip(demands, plan.served, strict=True)):
        said = ", ".join(f"{served.get(name, 0):,} of {n:,} {name}" for name, n in demand.items()) or "nothing"
        rows.append([str(k + 1), said, f"{plan.changes[k]:,}"])
    table("Layouts over time", ["period", "served", "instances created and destroyed"], rows)
    better = "" if plan.objective >= plan.bound else f" (at most {plan.bound:,})"
    say(f"value served less the cost of cutting: {plan.objective:,}{better}")


def _numbers(texts: list[str], option: str) -> dict[str, int]:
    from gputwin.core.errors import UserError

    found = {}
    for text in texts:
        name, _, number = text.partition("=")
        if not name or not number.isdigit():
            raise UserError(f"{option} {text}: write it like 1g.5gb=300")
        found[name] = int(number)
    return found


def _busy(texts: list[str], layouts: tuple[tuple[tuple[str, int], ...], ...]) -> dict[int, set[tuple[str, int]]]:
    """Return the instances in use by GPU; one without a start is the first of its profile that is not taken yet."""
    from gputwin.core.errors import UserError

    found: dict[int, set[tuple[str, int]]] = {}
    for text in texts:
        match = re.fullmatch(r"(\d{1,7}):([^@\s]{1,40})(?:@(\d{1,2}))?", text)
        if not match or int(match[1]) >= len(layouts):
            raise UserError(f"--busy {text}: write it like 0:3g.20gb or 0:3g.20gb@4, with a GPU of the fleet")
        taken = found.setdefault(int(match[1]), set())
        slots = [s for s in layouts[int(match[1])] if s[0] == match[2] and s not in taken]
        slots = [s for s in slots if match[3] is None or s[1] == int(match[3])]
        if not slots:
            raise UserError(f"--busy {text}: that GPU has no such instance; give its layout with --current")
        taken.add(slots[0])
    return found


def _render(plan: FleetPlan, least: int, output: Path | None) -> None:
    served = plan.served
    rows = [[name, f"{n:,}", f"{served[name]:,}"] for name, n in plan.demand.items()]
    table("Demand", ["profile", "wanted", "served"], rows)
    data = plan.to_json()
    rows = [
        [", ".join(f"{n} × {p}" for p, n in m["mix"].items()) or "not cut", f"{m['gpus']:,}"] for m in data["mixes"]
    ]
    table(f"Layouts of {len(plan.after):,} {plan.gpu.name}", ["mix", "GPUs"], rows)
    say(
        f"value served {plan.value:,} of at most {plan.bound:,}; {plan.gpus_changed:,} GPUs change: {plan.created:,} "
        f"instances created, {plan.destroyed:,} destroyed; all of the demand needs {least:,} GPUs"
    )
    if data["needs_reset"]:
        say(f"{plan.gpu.name}: switching MIG on resets a GPU, so GPUs that are not cut yet must have no client")
    if output is not None:
        say(f"mig-parted file: {output / 'mig-parted.yaml'}; report: {output / 'mig.html'}")
