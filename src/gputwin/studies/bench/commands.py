"""Whole commands: `gputwin simulate` of a million jobs like PAI's, from making the trace to the saved run.

Gangs of seven instances on average in thousands of shapes, on the cluster they come from and on half of it, where a long
queue builds up.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

from gputwin.core.errors import GputwinError
from gputwin.simulation.cluster import open_cluster

COMMAND = "from gputwin.cli.start import run; run()"
_MILLION = 1_000_000


@dataclass(frozen=True)
class Command:
    """One `gputwin simulate`; `nodes`: the share of the cluster's nodes that it has."""

    name: str
    backfill: str
    placement: str
    nodes: float


COMMANDS = {
    command.name: command
    for command in (
        Command(f"simulate {backfill} {placement}, {load}", backfill, placement, nodes)
        for backfill, placement, (load, nodes) in product(
            ("greedy", "easy"), ("first-fit", "best-fit"), (("whole cluster", 1.0), ("half the cluster", 0.5))
        )
    )
}


@dataclass(frozen=True)
class CommandMeasurement:
    """What one command took: user and system CPU, and its largest memory."""

    name: str
    jobs: int
    cpu_seconds: float
    jobs_per_cpu_second: float
    peak_bytes: int
    mean_wait_seconds: float


def measure_command(command: Command, jobs: int | None, seed: int) -> CommandMeasurement:
    """Return what the command takes, once the engine is in the cache."""
    with TemporaryDirectory() as folder:
        cluster = open_cluster("pai2020")
        groups = tuple(replace(g, count=max(1, round(g.count * command.nodes))) for g in cluster.groups)
        spec = Path(folder, "cluster.yaml")
        spec.write_text(json.dumps({"name": "bench", "groups": [asdict(g) for g in groups]}), encoding="utf-8")
        for count in (1_000, jobs or _MILLION):
            arguments = ["simulate", f"synthetic:pai2020?jobs={count}&seed={seed}", "--cluster", str(spec)]
            arguments += ["--backfill", command.backfill, "--placement", command.placement]
            usage, printed = cpu_of([*arguments, "-o", str(Path(folder, f"run-{count}")), "--json"], Path(folder))
    summary, seconds = json.loads(printed), usage.ru_utime + usage.ru_stime
    unit = 1 if sys.platform == "darwin" else 1024
    return CommandMeasurement(
        name=command.name,
        jobs=summary["jobs"],
        cpu_seconds=seconds,
        jobs_per_cpu_second=summary["jobs"] / seconds,
        peak_bytes=usage.ru_maxrss * unit,
        mean_wait_seconds=summary["wait_seconds"]["mean"],
    )


def cpu_of(
    arguments: Sequence[str], folder: Path, machine_code: Path | None = None
) -> tuple[resource.struct_rusage, str]:
    """Return what a fresh `gputwin` with these arguments used, and what it printed.

    `machine_code`: the folder that compiled code is kept in, instead of the user's.
    """
    output = folder / "printed"
    # A second start finds the modules' bytecode, as it does for users.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    if machine_code is not None:
        environment["GPUTWIN_CACHE"] = str(machine_code)
    with output.open("w", encoding="utf-8") as printed:
        process = subprocess.Popen([sys.executable, "-c", COMMAND, *arguments], stdout=printed, env=environment)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise GputwinError(f"'gputwin {' '.join(arguments)}' failed with exit code {process.returncode}")
    return usage, output.read_text(encoding="utf-8")


def measure_commands(
    names: Sequence[str], jobs: int | None, seed: int, progress: Callable[[str], None]
) -> tuple[CommandMeasurement, ...]:
    """Return the figures of these commands."""
    measured = []
    for name in names:
        progress(name)
        measured.append(measure_command(COMMANDS[name], jobs, seed))
    return tuple(measured)
