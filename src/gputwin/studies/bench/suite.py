"""The suite: which benchmarks there are, each measured in a process of its own, and how long a warm start takes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from gputwin.core.errors import GputwinError, UserError
from gputwin.simulation.cluster import Cluster
from gputwin.simulation.interruptions import Checkpoints, Faults
from gputwin.simulation.rules import Changes, Scheduler
from gputwin.simulation.tenants import Fairness
from gputwin.simulation.workload import Workload
from gputwin.studies.bench.commands import COMMANDS, CommandMeasurement, cpu_of, measure_commands
from gputwin.studies.bench.measure import Benchmark, Measurement, measure
from gputwin.studies.bench.scaling import SCALING, ScalingMeasurement, measure_scaling
from gputwin.studies.bench.workloads import (
    FOUR_SIZES,
    MANY_SIZES,
    Kind,
    openb_pods,
    over,
    pai_jobs,
    whole_gpu_cluster,
    whole_gpu_jobs,
    with_tenants,
)

# Compiled code would hear of Ctrl-C only at its end: the system itself ends the process.
_CHILD = (
    "import signal; signal.signal(signal.SIGINT, signal.SIG_DFL);from gputwin.studies.bench.suite import child; child()"
)
_SMALL_RUN = ("simulate", "synthetic:pai2020?jobs=1000", "--cluster", "pai2020", "--json")


def _whole_gpus(kinds: Sequence[Kind], load: float) -> Callable[[int, int], tuple[Workload, Cluster]]:
    return lambda jobs, seed: (whole_gpu_jobs(jobs, kinds, load, seed), whole_gpu_cluster())


def _many_tenants(jobs: int, seed: int) -> tuple[Workload, Cluster]:
    return with_tenants(whole_gpu_jobs(jobs, MANY_SIZES, 0.95, seed), 500, seed), whole_gpu_cluster()


def _fair(rule: str, **parameters: float) -> Scheduler:
    return Scheduler("fifo", "greedy", "first-fit", fairness=Fairness(rule, parameters))


def _overloaded_pai(jobs: int, seed: int) -> tuple[Workload, Cluster]:
    return pai_jobs(jobs, _OVERLOAD, seed)


def _year(jobs: int, seed: int) -> tuple[Workload, Cluster]:
    """No job runs for more than 60 days, so that the run ends soon after the year."""
    return over(_DAY * 365, whole_gpu_jobs(jobs, FOUR_SIZES, 0.92, seed), 60 * _DAY), whole_gpu_cluster()


_DAY = 86_400.0
_FAILURES = Changes(
    faults=Faults(mtbf_seconds=30 * _DAY, repair_seconds=4 * 3600.0), checkpoints=Checkpoints(interval_seconds=3600.0)
)
"""Each node fails every 30 days; jobs go on from their last checkpoint, which they save every hour."""
_OVERLOAD = 1.5
"""Of the GPUs: enough that jobs of hundreds of shapes wait at once."""
_FIRST_FIT, _GREEDY = Scheduler("fifo", "strict", "first-fit"), Scheduler("fifo", "greedy", "first-fit")
_MILLION, _STEADY = 1_000_000, _whole_gpus(FOUR_SIZES, 0.92)
_BURST, _MIXED = _whole_gpus(FOUR_SIZES, 2.2), _whole_gpus(MANY_SIZES, 0.95)
_BENCHMARKS = (
    Benchmark("fifo first-fit", _FIRST_FIT, _MILLION, 20_000, _STEADY),
    Benchmark("fifo best-fit", Scheduler("fifo", "strict", "best-fit"), _MILLION, 5_000, _STEADY),
    Benchmark("sjf greedy, queue of 100,000", Scheduler("sjf", "greedy", "first-fit"), _MILLION, 20_000, _BURST),
    Benchmark("fifo easy", Scheduler("fifo", "easy", "first-fit"), _MILLION, 20_000, _MIXED),
    Benchmark("srtf greedy", Scheduler("srtf", "greedy", "first-fit"), 200_000, 0, _STEADY),
    Benchmark("las greedy", Scheduler("las", "greedy", "first-fit"), 200_000, 0, _STEADY),
    Benchmark("a year", _GREEDY, 500_000, 0, _year),
    Benchmark("a year of failures", _GREEDY, 500_000, 0, _year, pair="a year", changes=_FAILURES),
    Benchmark("drf greedy, 500 tenants", _fair("drf"), 200_000, 0, _many_tenants),
    Benchmark("quota greedy, 500 tenants", _fair("quota", share=0.02), 200_000, 0, _many_tenants),
    Benchmark("quota with reclaim, 500 tenants", _fair("quota", reclaim=1), 200_000, 0, _many_tenants),
    Benchmark("fair-share greedy, 500 tenants", _fair("fair-share"), 200_000, 0, _many_tenants),
    Benchmark("lottery greedy, 500 tenants", _fair("lottery"), 200_000, 0, _many_tenants),
    Benchmark("themis greedy, 500 tenants", _fair("themis"), 200_000, 0, _many_tenants),
    Benchmark("hdrf greedy, 500 tenants", _fair("hdrf"), 200_000, 0, _many_tenants),
    Benchmark(
        "slurm-multifactor greedy, 500 tenants",
        Scheduler("slurm-multifactor", "greedy", "first-fit"),
        200_000,
        0,
        _many_tenants,
    ),
    Benchmark(
        "fifo strict, many shapes",
        _FIRST_FIT,
        50_000,
        0,
        _overloaded_pai,
        pair="fifo first-fit",
    ),
    Benchmark(
        "fifo greedy, many shapes",
        _GREEDY,
        50_000,
        0,
        _overloaded_pai,
        pair="sjf greedy, queue of 100,000",
    ),
    Benchmark(
        "fifo easy, many shapes",
        Scheduler("fifo", "easy", "first-fit"),
        50_000,
        0,
        _overloaded_pai,
        pair="fifo easy",
    ),
    Benchmark("fgd openb", Scheduler("fifo", "loss", "fgd"), 12_000, 50, openb_pods),
    Benchmark("fifo first-fit, 10 M", _FIRST_FIT, 10 * _MILLION, 20_000, _STEADY, large=True),
)
BENCHMARKS = {b.name: b for b in _BENCHMARKS}


@dataclass(frozen=True)
class Figures:
    """What the suite measured; starts are user and system CPU of a fresh `gputwin simulate` of 1,000 jobs."""

    benchmarks: tuple[Measurement, ...]
    commands: tuple[CommandMeasurement, ...]
    warm_start_cpu_seconds: float
    scaling: tuple[ScalingMeasurement, ...] = ()
    first_start_cpu_seconds: float | None = None
    """With nothing compiled before; None: not measured."""

    def to_json(self) -> dict[str, Any]:
        """Return the figures as plain data."""
        return {
            "benchmarks": [asdict(b) for b in self.benchmarks],
            "commands": [asdict(c) for c in self.commands],
            "warm_start_cpu_seconds": self.warm_start_cpu_seconds,
            "first_start_cpu_seconds": self.first_start_cpu_seconds,
            "scaling": [asdict(s) for s in self.scaling],
        }


def run_suite(
    *,
    only: Sequence[str] = (),
    jobs: int | None = None,
    large: bool = False,
    seed: int = 0,
    progress: Callable[[str], None] = lambda step: None,
) -> Figures:
    """Return the figures of all benchmarks, or `only` those named; `jobs` replaces each one's own number of jobs."""
    for name in only:
        if name not in (known := (*BENCHMARKS, *COMMANDS, *SCALING)):
            raise UserError(f"unknown benchmark '{name}'; known: {'; '.join(known)}")
    chosen = [b for b in _BENCHMARKS if (b.name in only if only else large or not b.large)]
    measured = []
    for benchmark in chosen:
        count = jobs or benchmark.jobs
        progress(f"{benchmark.name}: {count:,} jobs")
        measured.append(_in_process_of_its_own(benchmark.name, count, seed))
    commands = measure_commands([c for c in COMMANDS if (c in only if only else large)], jobs, seed, progress)
    scaling = measure_scaling([s for s in SCALING if not only or s in only], jobs, seed, progress)
    progress("warm start")
    warm = warm_start_cpu_seconds()
    first = None
    if large and not only:
        progress("first start, which compiles the engine")
        first = first_start_cpu_seconds()
    return Figures(_beside_pairs(measured), commands, warm, scaling, first)


def _beside_pairs(measured: Sequence[Measurement]) -> tuple[Measurement, ...]:
    """Return the measurements, with the ratio to the one each is compared with, where that was measured too."""
    speed = {m.name: m.jobs_per_cpu_second for m in measured}
    beside = []
    for m in measured:
        pair = BENCHMARKS[m.name].pair
        beside.append(replace(m, ratio_to_pair=m.jobs_per_cpu_second / speed[pair]) if pair in speed else m)
    return tuple(beside)


def _in_process_of_its_own(name: str, jobs: int, seed: int) -> Measurement:
    command = [sys.executable, "-c", _CHILD, name, str(jobs), str(seed)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise GputwinError(f"benchmark '{name}' failed with exit code {done.returncode}")
    return Measurement(**json.loads(done.stdout))


def child() -> None:
    """Print the measurement of the benchmark named on the command line: name, jobs, seed."""
    name, jobs, seed = sys.argv[1:]
    json.dump(asdict(measure(BENCHMARKS[name], int(jobs), int(seed))), sys.stdout)


def warm_start_cpu_seconds() -> float:
    """Return the CPU seconds of a fresh `gputwin simulate` of 1,000 jobs with the engine in the cache."""
    with TemporaryDirectory() as folder:
        for _ in range(2):
            usage, _printed = cpu_of(_SMALL_RUN, Path(folder))
    return usage.ru_utime + usage.ru_stime


def first_start_cpu_seconds() -> float:
    """Return the CPU seconds of a fresh `gputwin simulate` of 1,000 jobs that finds nothing compiled."""
    with TemporaryDirectory() as folder:
        usage, _printed = cpu_of(_SMALL_RUN, Path(folder), Path(folder, "machine-code"))
    return usage.ru_utime + usage.ru_stime
