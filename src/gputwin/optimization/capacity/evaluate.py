"""Simulated values of a target on clusters of other sizes, in processes that keep the workload."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from typing import Any

import numpy as np

from gputwin.core.rng import stream
from gputwin.core.units import DAY, WHOLE_GPU_MILLI
from gputwin.optimization.capacity.scale import Counts, with_counts
from gputwin.optimization.capacity.target import Floats, Target
from gputwin.simulation.cluster import Cluster
from gputwin.simulation.simulate import Scheduler, cluster_models, run
from gputwin.simulation.workload import Workload, workload_of
from gputwin.traces.dataset import Trace

_RESAMPLES = 200
_LEAST_BLOCKS = 8


@dataclass(frozen=True)
class Setting:
    """What stays the same while capacity is varied: jobs, node types, rules, target."""

    workload: Workload
    cluster: Cluster
    scheduler: Scheduler
    target: Target
    seed: int = 0


def setting_of(
    trace: Trace,
    cluster: Cluster,
    scheduler: Scheduler,
    target: Target,
    *,
    growth: float = 1.0,
    speed: float = 1.0,
    share: str = "fraction",
    predict: str = "oracle",
    seed: int = 0,
) -> Setting:
    """Return the setting of a trace whose demand grows (the same jobs arrive faster) on GPUs that are so much faster."""
    workload = workload_of(trace, cluster_models(cluster), share=share, predict=predict)
    jobs = workload.jobs.copy()
    first = jobs["submit"][0]
    jobs["submit"] = first + (jobs["submit"] - first) / growth
    jobs["duration"] /= speed
    jobs["predicted"] /= speed
    return Setting(replace(workload, jobs=jobs), cluster, scheduler, target, seed)


@dataclass(frozen=True)
class Point:
    """One capacity that was simulated."""

    counts: Counts
    nodes: int
    gpus: int
    value: float
    """s; the target's figure."""
    low: float
    high: float
    """s; its 90 % interval, days drawn with replacement."""
    utilisation: float
    never_run: int
    times: Floats = field(repr=False, compare=False)
    """s; each job's wait or completion time, in order of submission, for paired comparison."""


class Evaluator:
    """Simulates capacities, each once."""

    def __init__(self, setting: Setting, pool: Executor | None) -> None:
        self.setting = setting
        self.pool = pool
        self.points: dict[Counts, Point] = {}

    def __call__(self, wanted: Sequence[Counts]) -> list[Point]:
        """Return the points of these capacities, those not yet known simulated at the same time."""
        fresh = [c for c in dict.fromkeys(wanted) if c not in self.points]
        if self.pool is None or len(fresh) < 2:
            found = [evaluate(self.setting, counts) for counts in fresh]
        else:
            # One is simulated here, so that no process is idle.
            under_way = [self.pool.submit(evaluate, self.setting, counts) for counts in fresh[1:]]
            found = [evaluate(self.setting, fresh[0]), *(f.result() for f in under_way)]
        self.points |= dict(zip(fresh, found, strict=True))
        return [self.points[c] for c in wanted]


@contextmanager
def evaluator(setting: Setting, workers: int) -> Iterator[Evaluator]:
    """Yield an evaluator that uses so many processes, this one counted."""
    if workers <= 1:
        yield Evaluator(setting, None)
        return
    with ProcessPoolExecutor(workers - 1, mp_context=get_context("spawn")) as pool:
        yield Evaluator(setting, pool)


def usable_workers() -> int:
    """Return how many processors this process may use, at most two: each holds the jobs in memory."""
    return min(len(os.sched_getaffinity(0)), 2)


def evaluate(setting: Setting, counts: Counts) -> Point:
    """Return the target's figure on a cluster of these node counts."""
    cluster = with_counts(setting.cluster, counts)
    outcome = run(setting.workload, cluster, setting.scheduler, seed=setting.seed, attribute=False)
    records = outcome.world.queue.jobs
    times = (records["start"] if setting.target.of == "wait" else records["end"]) - records["submit"]
    # Who never starts makes a target that counts them impossible to meet, not easier.
    times = np.where(np.isfinite(times), times, np.inf)
    low, high = interval(setting.target, records["submit"], times)
    first, last = float(records["submit"][0]), float(records["submit"][-1])
    started = np.isfinite(records["start"])
    held = np.clip(records["end"], first, last) - np.clip(records["start"], first, last)
    work = float((held * records["gpu_milli"])[started].sum()) / WHOLE_GPU_MILLI
    return Point(
        counts,
        cluster.node_count,
        cluster.gpu_count,
        setting.target.value(times),
        low,
        high,
        work / max(cluster.gpu_count * (last - first), 1e-9),
        int((~started).sum()),
        times,
    )


def interval(target: Target, submit: Floats, times: Floats) -> tuple[float, float]:
    """Return a 90 % interval of the figure, over days drawn with replacement."""
    low, high = np.quantile(resample(target, submit, times), [0.05, 0.95], method="inverted_cdf")
    return float(low), float(high)


def resample(target: Target, submit: Floats, times: Floats) -> list[float]:
    """Return the figure of many records whose days are drawn with replacement (Künsch, 1989), always the same ones.

    Jobs of one day share its crowds, so days and not jobs are drawn; short records are cut into eight blocks. The draws
    are the same for every capacity, so that comparisons are paired.
    """
    span = float(submit[-1] - submit[0])
    length = min(DAY, span / _LEAST_BLOCKS) or 1.0
    block = ((submit - submit[0]) / length).astype(np.int64)
    parts = np.split(times, np.flatnonzero(np.diff(block, prepend=-1))[1:])
    rng = stream(0, "blocks")
    draws = rng.integers(0, len(parts), (_RESAMPLES, len(parts)))
    return [target.value(np.concatenate([parts[i] for i in drawn])) for drawn in draws]


def describe_points(points: Mapping[Counts, Point]) -> list[dict[str, Any]]:
    """Return the simulated capacities as plain data, smallest first; what never ran has no figure."""
    rows = []
    for p in sorted(points.values(), key=lambda p: (p.gpus, p.nodes)):
        known = np.isfinite(p.value)
        rows.append(
            {
                "nodes": p.nodes,
                "gpus": p.gpus,
                "value_seconds": p.value if known else None,
                "low_seconds": p.low if np.isfinite(p.low) else None,
                "high_seconds": p.high if np.isfinite(p.high) else None,
                "utilisation": p.utilisation,
                "jobs_never_run": p.never_run,
            }
        )
    return rows
