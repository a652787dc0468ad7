"""Simulated values of a target on clusters of other sizes, in processes that keep the workload."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing import get_context
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from gputwin.core.units import WHOLE_GPU_MILLI
from gputwin.optimization.capacity.blocks import Draws, block_of, drawn, draws_of
from gputwin.optimization.capacity.scale import Counts, with_counts
from gputwin.optimization.capacity.target import Floats, Target
from gputwin.simulation.cluster import Cluster
from gputwin.simulation.engine.state.records import Records
from gputwin.simulation.run import Scheduler, cluster_models, run
from gputwin.simulation.workload import Workload, workload_of
from gputwin.traces.dataset import Trace

T = TypeVar("T")
_GRID = 2048


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
    begin, until = (float(first + (time - first) / growth) for time in workload.span)
    jobs["duration"] /= speed
    jobs["predicted"] /= speed
    return Setting(replace(workload, jobs=jobs, window=(begin, until)), cluster, scheduler, target, seed)


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
    """s; its 90 % interval, the simulated days drawn with replacement."""
    utilisation: float
    never_run: int


class Evaluator:
    """Simulates capacities, each once."""

    def __init__(self, setting: Setting, pool: Executor | None) -> None:
        self.setting = setting
        self.pool = pool
        self.points: dict[Counts, Point] = {}
        self._drawn: dict[Counts, list[float]] = {}

    def __call__(self, wanted: Sequence[Counts]) -> list[Point]:
        """Return the points of these capacities, those not yet known simulated at the same time."""
        fresh = [c for c in dict.fromkeys(wanted) if c not in self.points]
        found = spread(self.pool, evaluate, [(self.setting, counts) for counts in fresh])
        self.points |= dict(zip(fresh, found, strict=True))
        return [self.points[c] for c in wanted]

    def records(self, counts: Counts, draws: Draws) -> list[float]:
        """Return the target's figure on this capacity for each drawn record, simulated whole."""
        if counts not in self._drawn:
            calls = [(self.setting, counts, blocks) for blocks in draws]
            self._drawn[counts] = spread(self.pool, evaluate_drawn, calls)
        return self._drawn[counts]


def spread(pool: Executor | None, function: Callable[..., T], calls: Sequence[tuple[Any, ...]]) -> list[T]:
    """Return the results of all calls, every second one made by the pool where there is one."""
    if pool is None or len(calls) < 2:
        return [function(*call) for call in calls]
    under_way = [pool.submit(function, *call) for call in calls[1::2]]
    here = [function(*call) for call in calls[::2]]
    there = [future.result() for future in under_way]
    return [(there if i % 2 else here)[i // 2] for i in range(len(calls))]


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
    records = _simulated(setting, setting.workload, counts)
    submit, times = _times(setting.target, setting.workload, records)
    low, high = interval(setting.target, submit, times)
    first, last = setting.workload.span
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
    )


def evaluate_drawn(setting: Setting, counts: Counts, blocks: NDArray[np.int64]) -> float:
    """Return the target's figure of the record made of these blocks, on a cluster of these node counts."""
    workload = drawn(setting.workload, blocks)
    _, times = _times(setting.target, workload, _simulated(setting, workload, counts))
    return setting.target.value(times)


def _simulated(setting: Setting, workload: Workload, counts: Counts) -> Records:
    cluster = with_counts(setting.cluster, counts)
    outcome = run(workload, cluster, setting.scheduler, seed=setting.seed, attribute=False)
    return outcome.world.queue.jobs


def _times(target: Target, workload: Workload, records: Records) -> tuple[Floats, Floats]:
    """Return submit and wait or completion time of each job, s; who never starts makes a target impossible, not easier.

    What ran when the record began has no completion time, and a wait only where there was no room for it.
    """
    times = (records["start"] if target.of == "wait" else records["end"]) - records["submit"]
    left_out = workload.waits_not(records["start"]) if target.of == "wait" else workload.was_running
    times = np.where(np.isfinite(times), times, np.inf)
    return records["submit"][~left_out], times[~left_out]


def interval(target: Target, submit: Floats, times: Floats) -> tuple[float, float]:
    """Return a 90 % interval of the figure, over the simulated days drawn with replacement (Künsch, 1989).

    The draws are the same for every capacity. Of many jobs, quantiles are taken among 2,048 of their times.
    """
    block, draws = block_of(submit), draws_of(submit)
    count = draws.shape[1]
    weights = np.stack([np.bincount(row, minlength=count) for row in draws]).astype(np.float64)
    sizes = weights @ np.bincount(block, minlength=count)
    if target.share is None:
        figures = weights @ np.bincount(block, times, count) / np.maximum(sizes, 1.0)
    else:
        ordered = np.sort(times)
        grid = np.unique(ordered[np.linspace(0, times.size - 1, min(_GRID, times.size)).astype(np.int64)])
        cell = block * grid.size + np.searchsorted(grid, times)
        upto = np.cumsum(np.bincount(cell, minlength=count * grid.size).reshape(count, -1), axis=1)
        reached = weights @ upto >= target.share * sizes[:, None] - 1e-9
        figures = grid[np.argmax(reached, axis=1)]
    low, high = np.quantile(figures[sizes > 0], [0.05, 0.95], method="inverted_cdf")
    return float(low), float(high)


def describe_points(points: Sequence[Point], target: Target) -> list[dict[str, Any]]:
    """Return the simulated capacities as plain data, smallest first; what never ran has no figure."""
    rows = []
    for p in sorted(points, key=lambda p: (p.gpus, p.nodes)):
        known = np.isfinite(p.value)
        rows.append(
            {
                "nodes": p.nodes,
                "gpus": p.gpus,
                "value_seconds": p.value if known else None,
                "low_seconds": p.low if np.isfinite(p.low) else None,
                "high_seconds": p.high if np.isfinite(p.high) else None,
                "utilisation": p.utilisation,
                "meets": target.met(p.value),
                "jobs_never_run": p.never_run,
            }
        )
    return rows
