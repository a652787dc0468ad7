"""How far online policies are from the best schedule in hindsight, over many small random cases."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from gputwin.core.rng import stream
from gputwin.optimization.schedule.optimum import BestSchedule, Goal, SmallJob, best_schedule
from gputwin.simulation.cluster import Cluster, NodeGroup
from gputwin.simulation.simulate import simulate
from gputwin.traces.dataset import Trace, TraceMeta

POLICIES: tuple[tuple[str, str, str], ...] = (
    ("fifo", "strict", "first-fit"),
    ("fifo", "greedy", "first-fit"),
    ("fifo", "easy", "best-fit"),
    ("fifo", "conservative", "best-fit"),
    ("sjf", "strict", "best-fit"),
    ("sjf", "greedy", "best-fit"),
    ("sjf", "easy", "best-fit"),
    ("gpu-time", "greedy", "fgd"),
)
"""(order, backfill, placement) of each online policy that is compared."""


@dataclass(frozen=True)
class Gaps:
    """Mean wait of each policy over all cases, next to the best in hindsight."""

    table: pl.DataFrame
    """policy, mean_wait, best_wait, mean_gap (s per job above the best), cases_optimal, cases."""
    proven: int
    cases: int


def random_case(seed: int, jobs: int = 8, nodes: int = 2, gpus: int = 4) -> tuple[SmallJob, ...]:
    """Return a few jobs that compete for so many nodes."""
    rng = stream(seed, "small case")
    submits = np.sort(rng.integers(0, 12, jobs))
    made = []
    for i in range(jobs):
        size = int(rng.choice([1, 1, 2, 4]))
        gang = int(rng.integers(1, 3)) if size < gpus else 1
        made.append(SmallJob(f"job-{i}", int(submits[i]), int(rng.integers(1, 15)), gang, size))
    return tuple(made)


def gaps(
    cases: int = 40,
    *,
    policies: Sequence[tuple[str, str, str]] = POLICIES,
    node_gpus: Sequence[int] = (4, 4),
    jobs: int = 8,
    seconds: float = 10.0,
    seed: int = 0,
    progress: Callable[[str], None] = lambda step: None,
) -> Gaps:
    """Return the mean gap of each policy to the least total wait, over random cases."""
    cluster = Cluster("small", tuple(NodeGroup(f"node-{n}", 1, g) for n, g in enumerate(node_gpus)))
    rows = []
    proven = 0
    for case in range(cases):
        progress(f"case {case + 1} of {cases}")
        made = random_case(seed + case, jobs, len(node_gpus), min(node_gpus))
        best = best_schedule(made, node_gpus, Goal(), seconds=seconds)
        proven += best.is_optimal
        least = _total_wait(made, best)
        trace = trace_of(made)
        for order, backfill, placement in policies:
            result = simulate(trace, cluster, order=order, backfill=backfill, placement=placement)
            wait = float(result.jobs["wait_seconds"].sum())
            rows.append(
                {
                    "policy": f"{order} / {backfill} / {placement}",
                    "wait": wait / len(made),
                    "best": least / len(made),
                    "is_best": wait <= least + 1e-9,
                }
            )
    table = (
        pl.DataFrame(rows)
        .group_by("policy", maintain_order=True)
        .agg(
            pl.col("wait").mean().alias("mean_wait"),
            pl.col("best").mean().alias("best_wait"),
            (pl.col("wait") - pl.col("best")).mean().alias("mean_gap"),
            pl.col("is_best").sum().alias("cases_optimal"),
            pl.len().alias("cases"),
        )
        .sort("mean_gap", maintain_order=True)
    )
    return Gaps(table, proven, cases)


def _total_wait(jobs: Sequence[SmallJob], best: BestSchedule) -> int:
    return sum((s or 0) - j.submit for j, s in zip(jobs, best.starts, strict=True))


def trace_of(jobs: Sequence[SmallJob]) -> Trace:
    """Return the jobs as a trace that can be simulated."""
    frame = pl.DataFrame(
        {
            "job_id": [j.name for j in jobs],
            "submit_time": [float(j.submit) for j in jobs],
            "start_time": [float(j.submit) for j in jobs],
            "end_time": [float(j.submit + j.duration) for j in jobs],
            "duration_seconds": [float(j.duration) for j in jobs],
            "instances": [j.instances for j in jobs],
            "gpu_count": [j.gpus for j in jobs],
            "gpu_milli": [1000] * len(jobs),
        }
    )
    return Trace.from_frames({"tasks": frame}, TraceMeta(source="small case"))
