"""Two ways to do a thing, each in a process of its own: what they cost beside one another.

CPU time is the process's user and system time, so that neither the number of cores nor what else they do changes the
ratio.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

PUBLISHED_JOBS = 1_060_000
"""Jobs of the whole PAI 2020 trace."""
ONE_THREAD = {"POLARS_MAX_THREADS": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


@dataclass(frozen=True)
class Cost:
    """What a process took."""

    cpu_seconds: float
    wall_seconds: float
    peak_mib: float


def run_apart(module: str, step: str, *arguments: Path | int, environment: Mapping[str, str] | None = None) -> Cost:
    """Return what `python -m MODULE --step STEP …` costs in a process of its own."""
    started = time.perf_counter()
    command = [sys.executable, "-m", module, "--step", step, *map(str, arguments)]
    process = subprocess.Popen(command, env=os.environ | (environment or {}))
    _, status, used = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{step} failed")
    return Cost(used.ru_utime + used.ru_stime, time.perf_counter() - started, used.ru_maxrss / 1024)


def is_within(costs: Mapping[str, Cost], most_times: float, most_peak_mib: float) -> bool:
    """Print a bare way's and the full way's cost, and return whether the latter is within its bounds."""
    bare, full = costs.values()
    width = max(map(len, costs)) + 2
    print(f"{'':{width}}{'CPU s':>10}{'wall s':>10}{'peak MiB':>10}")
    for name, cost in costs.items():
        print(f"{name:{width}}{cost.cpu_seconds:10.1f}{cost.wall_seconds:10.1f}{cost.peak_mib:10.0f}")
    ratio = full.cpu_seconds / bare.cpu_seconds
    print(f"\nCPU ratio {ratio:.2f} (at most {most_times:g}), peak at most {most_peak_mib} MiB")
    return ratio <= most_times and full.peak_mib <= most_peak_mib
