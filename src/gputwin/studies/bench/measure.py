"""One measurement in this process: user CPU and memory of the engine's run, and of plain Python on the first jobs."""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import numpy as np

from gputwin.simulation.cluster import Cluster
from gputwin.simulation.engine.state.records import Floats
from gputwin.simulation.rules import Changes, Scheduler
from gputwin.simulation.run import run
from gputwin.simulation.typical import typical_jobs
from gputwin.simulation.workload import Workload
from gputwin.studies.bench.plain import PlainSimulator

SHORT_SECONDS = 3.0
"""A run below this is repeated, and the faster one counts."""
_WARM_UP_JOBS = 100
_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")
_T = TypeVar("_T")


@dataclass(frozen=True)
class Benchmark:
    """A workload under rules: how many jobs the engine gets, and how many of them plain Python gets.

    Plain Python gets none where jobs are gangs, which it does not know.
    """

    name: str
    scheduler: Scheduler
    jobs: int
    reference_jobs: int
    make: Callable[[int, int], tuple[Workload, Cluster]]
    """From a number of jobs and a seed."""
    pair: str | None = None
    """What it is compared with: the same rule with few shapes, for one with many; the same jobs without failures."""
    changes: Changes | None = None
    large: bool = False
    """Takes minutes and gigabytes, so it runs only when asked for."""


@dataclass(frozen=True)
class Measurement:
    """What one benchmark took; all seconds of CPU are user time. `most_waiting`: jobs in the queue at its longest.

    `ratio` is to plain Python on the first jobs; `ratio_to_pair` to the speed of the benchmark it is compared with, where
    that was measured too.
    """

    name: str
    jobs: int
    cpu_seconds: float
    jobs_per_cpu_second: float
    reference_jobs: int
    reference_jobs_per_cpu_second: float | None
    ratio: float | None
    bytes_per_job: float
    mean_wait_seconds: float
    most_waiting: int
    shapes: int
    ratio_to_pair: float | None = None


def measure(benchmark: Benchmark, jobs: int, seed: int) -> Measurement:
    """Return what `jobs` jobs of the benchmark take; memory is right only in a fresh process."""
    rules, changes = benchmark.scheduler, benchmark.changes
    run(*benchmark.make(_WARM_UP_JOBS, seed), rules, changes=changes)
    before = _resident_bytes()
    workload, cluster = benchmark.make(jobs, seed)
    seconds, outcome = cpu_seconds(lambda: run(workload, cluster, rules, changes=changes))
    grown = _peak_bytes() - before
    submit, start = workload.jobs["submit"], outcome.world.queue.jobs["start"].copy()
    del outcome
    if seconds < SHORT_SECONDS:
        seconds = min(seconds, cpu_seconds(lambda: run(workload, cluster, rules, changes=changes))[0])
    reference = None
    if benchmark.reference_jobs:
        first = replace(workload, jobs=workload.jobs[: benchmark.reference_jobs])
        plain = PlainSimulator(first, cluster, rules, typical_jobs(workload))
        reference = first.size / cpu_seconds(plain.run)[0]
    return Measurement(
        name=benchmark.name,
        jobs=workload.size,
        cpu_seconds=seconds,
        jobs_per_cpu_second=workload.size / seconds,
        reference_jobs=min(benchmark.reference_jobs, workload.size),
        reference_jobs_per_cpu_second=reference,
        ratio=workload.size / seconds / reference if reference else None,
        bytes_per_job=grown / workload.size,
        mean_wait_seconds=float(np.nanmean(start - submit)),
        most_waiting=most_waiting(submit, start),
        shapes=int(workload.shapes.size),
    )


def cpu_seconds(work: Callable[[], _T]) -> tuple[float, _T]:
    """Return the user CPU seconds this process spends on `work`, and what it returns."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    result = work()
    return max(resource.getrusage(resource.RUSAGE_SELF).ru_utime - before, 1e-6), result


def most_waiting(submit: Floats, start: Floats) -> int:
    """Return how many of the jobs that ever start wait at once, at most; submissions are in order."""
    started = np.flatnonzero(~np.isnan(start))
    begun = np.searchsorted(np.sort(start[started]), submit[started], side="right")
    return int(np.max(np.arange(1, started.size + 1) - begun, initial=0))


def _resident_bytes() -> int:
    """Return the memory this process holds, and have its peak counted from here; the peak so far where Linux is not."""
    try:
        _RESET.write_text("5")
        return _status_bytes("VmRSS")
    except OSError:
        return _peak_bytes()


def _peak_bytes() -> int:
    try:
        return _status_bytes("VmHWM")
    except OSError:
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _status_bytes(field: str) -> int:
    line = next(line for line in _STATUS.read_text().splitlines() if line.startswith(f"{field}:"))
    return int(line.split()[1]) * 1024
