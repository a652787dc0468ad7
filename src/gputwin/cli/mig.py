"""`gputwin mig`: the best MIG layouts of a fleet for a demand of instance sizes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gputwin.cli.console import Json, Quiet, emit, progress, say, table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gputwin.optimization.mig.fleet import FleetPlan
    from gputwin.optimization.mig.layouts import Layout, Slot
    from gputwin.optimization.mig.over_time import Periods
    from gputwin.simulation.mig_profiles import MigGpu

Instance = tuple[str, int | None]
"""(profile, the memory slice at which it starts where that is said)."""


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

        gputwin mig --gpu A100-40GB --gpus 100 --periods day.yaml --change-cost 2 -o layouts

        gputwin mig --gpu H100-80GB --gpus 8 --current parted.yaml:all-balanced --busy 0:3g.40gb --demand 7g.80gb=4
    """
    from gputwin.core.errors import UserError
    from gputwin.optimization.mig.fleet import CutGpu, fewest_gpus, plan_fleet
    from gputwin.report.mig import write_mig_report
    from gputwin.simulation.mig_profiles import mig_gpu

    kind = mig_gpu(gpu)
    if not 1 <= gpus <= 1_000_000:
        raise UserError(f"--gpus {gpus}: give a number between 1 and 1,000,000")
    values = _numbers(value or [], "--value")
    if (demand is None) == (periods is None):
        raise UserError("give either --demand, for one time, or --periods, for demand over time")
    if periods is not None:
        if busy:
            raise UserError("--busy holds for one time; leave it out with --periods")
        standing = None if current is None else _present(current, kind, gpus, {})
        _over_time(kind, gpus, periods, change_cost, values, standing, output, json=json, quiet=quiet)
        return
    wanted = _numbers(demand or [], "--demand")
    asked = _asked(busy or [], gpus)
    layouts: tuple[Layout, ...] = ((),) * gpus if current is None else _present(current, kind, gpus, asked)
    in_use = _busy(asked, layouts)
    with progress(quiet or json) as step:
        step("cutting the fleet")
        fleet = [CutGpu(layout, frozenset(in_use.get(i, set()))) for i, layout in enumerate(layouts)]
        plan = plan_fleet(kind, fleet, wanted, values=values)
        least = fewest_gpus(kind, wanted)[0]
        if output is not None:
            write_mig_report(output, plan, least)
    data = {**plan.to_json(), "gpus_needed": least, "directory": None if output is None else str(output)}
    emit(data, json, lambda: _render(plan, least, output))


def _present(current: str, kind: MigGpu, gpus: int, busy: Mapping[int, list[Instance]]) -> tuple[Layout, ...]:
    """Return the layouts of a mig-parted file; instances whose start is known stand there."""
    from gputwin.optimization.mig.parted import read_parted

    path, _, name = current.partition(":")
    known = {
        gpu: frozenset((profile, start) for profile, start in instances if start is not None)
        for gpu, instances in busy.items()
    }
    return read_parted(Path(path), kind, gpus, name or None, known=known)


def _over_time(
    kind: MigGpu,
    gpus: int,
    file: Path,
    change_cost: int,
    values: dict[str, int],
    present: tuple[Layout, ...] | None,
    output: Path | None,
    *,
    json: bool,
    quiet: bool,
) -> None:
    from gputwin.optimization.mig.over_time import plan_periods, read_periods
    from gputwin.report.mig import write_periods_report

    demands = read_periods(file)
    with progress(quiet or json) as step:
        step("cutting the fleet over time")
        plan = plan_periods(kind, gpus, demands, change_cost=change_cost, values=values, present=present)
        if output is not None:
            write_periods_report(output, plan, demands)
    data = {**plan.to_json(demands), "directory": None if output is None else str(output)}
    emit(data, json, lambda: _render_periods(plan, demands, output))


def _render_periods(plan: Periods, demands: list[dict[str, int]], output: Path | None) -> None:
    from gputwin.report.mig import periods_verdict

    say(periods_verdict(plan, demands))
    rows = []
    for k, (demand, served) in enumerate(zip(demands, plan.served, strict=True)):
        said = ", ".join(f"{served.get(name, 0):,} of {n:,} {name}" for name, n in demand.items()) or "nothing"
        rows.append([str(k + 1), said, f"{plan.changes[k]:,}"])
    table("Layouts over time", ["period", "served", "instances created and destroyed"], rows)
    better = "" if plan.objective >= plan.bound else f" (at most {plan.bound:,})"
    say(f"value served less the cost of cutting: {plan.objective:,}{better}")
    if output is not None:
        say(f"mig-parted file: {output / 'mig-parted.yaml'}; report: {output / 'mig.html'}")


def _numbers(texts: list[str], option: str) -> dict[str, int]:
    from gputwin.core.errors import UserError

    found = {}
    for text in texts:
        name, _, number = text.partition("=")
        if not name or not number.isdigit():
            raise UserError(f"{option} {text}: write it like 1g.5gb=300")
        found[name] = int(number)
    return found


def _asked(texts: list[str], gpus: int) -> dict[int, list[Instance]]:
    """Return the instances said to be in use, by GPU."""
    from gputwin.core.errors import UserError

    found: dict[int, list[Instance]] = {}
    for text in texts:
        match = re.fullmatch(r"(\d{1,7}):([^@\s]{1,40})(?:@(\d{1,2}))?", text)
        if not match or int(match[1]) >= gpus:
            raise UserError(f"--busy {text}: write it like 0:3g.20gb or 0:3g.20gb@4, with a GPU of the fleet")
        found.setdefault(int(match[1]), []).append((match[2], None if match[3] is None else int(match[3])))
    return found


def _busy(asked: Mapping[int, list[Instance]], layouts: tuple[Layout, ...]) -> dict[int, set[Slot]]:
    """Return the slots in use by GPU; one without a start is the first of its profile that is not taken yet."""
    from gputwin.core.errors import UserError

    found: dict[int, set[Slot]] = {}
    for gpu, instances in asked.items():
        taken = found.setdefault(gpu, set())
        for name, start in sorted(instances, key=lambda i: i[1] is None):
            slots = [s for s in layouts[gpu] if s[0] == name and s not in taken and start in (None, s[1])]
            if not slots:
                where = "" if start is None else f"@{start}"
                raise UserError(
                    f"--busy {gpu}:{name}{where}: that GPU has no such instance beside the others in use; "
                    "give its layout with --current"
                )
            taken.add(slots[0])
    return found


def _render(plan: FleetPlan, least: int, output: Path | None) -> None:
    from gputwin.report.mig import verdict

    served = plan.served
    say(verdict(plan))
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
