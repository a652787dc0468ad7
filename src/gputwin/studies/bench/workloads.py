"""The benchmark workloads: jobs of one instance in few shapes on a thousand-node cluster, and gangs in thousands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import polars as pl

from gputwin.core.rng import stream
from gputwin.core.units import WHOLE_GPU_MILLI
from gputwin.simulation.cluster import Cluster, NodeGroup, open_cluster
from gputwin.simulation.machines import cluster_models
from gputwin.simulation.plain_jobs import Kinds, workload_of_kinds
from gputwin.simulation.workload import Workload, workload_of
from gputwin.traces.dataset import Trace
from gputwin.traces.locate import open_trace

NODES, GPUS_PER_NODE = 1_800, 8
_CPU_MILLI_PER_GPU, _MEMORY_MIB_PER_GPU = 12_000, 50_000
_LOG_MEAN, _LOG_DEVIATION = 6.5, 1.2
"""Of job durations in seconds: a median of 11 minutes and a mean of 23."""


class Kind(NamedTuple):
    """One request and its share of all jobs; amounts are of one GPU."""

    gpus: int
    share: float
    cpu_milli: int = 8_000
    memory_mib: int = 30_000


FOUR_SIZES = (Kind(1, 0.70), Kind(2, 0.12), Kind(4, 0.10), Kind(8, 0.08))
MANY_SIZES = tuple(
    Kind(gpus, share / 4, cpu, memory)
    for gpus, share in enumerate((0.30, 0.16, 0.08, 0.14, 0.06, 0.07, 0.04, 0.15), start=1)
    for cpu, memory in ((4_000, 16_000), (8_000, 30_000), (10_000, 40_000), (12_000, 50_000))
)


def whole_gpu_cluster() -> Cluster:
    """Return 1,800 nodes of 8 GPUs."""
    cpu, memory = GPUS_PER_NODE * _CPU_MILLI_PER_GPU, GPUS_PER_NODE * _MEMORY_MIB_PER_GPU
    return Cluster("bench", (NodeGroup("node", NODES, GPUS_PER_NODE, cpu_milli=cpu, memory_mib=memory),))


def whole_gpu_jobs(jobs: int, kinds: Sequence[Kind], load: float, seed: int) -> Workload:
    """Return jobs for `whole_gpu_cluster`: Poisson arrivals that offer `load` of its GPUs, lognormal durations."""
    rng = stream(seed, "bench")
    kind = rng.choice(len(kinds), jobs, p=[k.share for k in kinds])
    gpus = np.array([k.gpus for k in kinds])[kind]
    duration = rng.lognormal(_LOG_MEAN, _LOG_DEVIATION, jobs)
    rate = load * NODES * GPUS_PER_NODE / (gpus.mean() * duration.mean())
    each = np.array(kinds, np.float64)
    asked = Kinds(each[:, 0], cpu_milli=each[:, 0] * each[:, 2], memory_mib=each[:, 0] * each[:, 3])
    return workload_of_kinds(np.cumsum(rng.exponential(1 / rate, jobs)), duration, asked, kind)


def over(seconds: float, workload: Workload, longest: float) -> Workload:
    """Return the same jobs, stretched so that the last is submitted after `seconds`; none runs for more than `longest`."""
    jobs = workload.jobs.copy()
    factor = seconds / jobs["submit"][-1]
    for name in ("submit", "duration", "predicted"):
        jobs[name] *= factor
    for name in ("duration", "predicted"):
        jobs[name] = np.minimum(jobs[name], longest)
    return replace(workload, jobs=jobs)


def with_tenants(workload: Workload, tenants: int, seed: int) -> Workload:
    """Return the same jobs, of so many tenants: the k-th has a part of them like 1/k^0.8."""
    parts = 1.0 / np.arange(1, tenants + 1) ** 0.8
    jobs = workload.jobs.copy()
    jobs["tenant"] = stream(seed, "bench tenants").choice(tenants, jobs.size, p=parts / parts.sum())
    return replace(workload, jobs=jobs, tenants=tuple(f"tenant-{t}" for t in range(tenants)))


def pai_jobs(jobs: int, load: float, seed: int) -> tuple[Workload, Cluster]:
    """Return jobs like those of Alibaba's PAI cluster, gangs of thousands of shapes, that offer `load` of its GPUs."""
    cluster = open_cluster("pai2020")
    workload = workload_of(open_trace(f"synthetic:pai2020?jobs={jobs}&seed={seed}"), cluster_models(cluster))
    submit, gpu_seconds = workload.jobs["submit"], workload.jobs["gpu_milli"] * workload.jobs["duration"]
    capacity = WHOLE_GPU_MILLI * int(cluster.nodes()["gpu_count"].sum())
    # They come as they did, only faster or slower.
    seconds = gpu_seconds.sum() / (load * capacity)
    workload.jobs["submit"] = (submit - submit[0]) * (seconds / max(submit[-1] - submit[0], 1.0))
    return workload, cluster


def openb_pods(jobs: int, seed: int) -> tuple[Workload, Cluster]:
    """Return pods like those of Alibaba's openb cluster that arrive one a second and never leave, and its nodes."""
    cluster = open_cluster("openb2023")
    trace = open_trace(f"synthetic:openb2023?jobs={jobs}&seed={seed}")
    pods = trace.tasks.with_columns(
        pl.int_range(pl.len()).cast(pl.Float64).alias("submit_time"),
        pl.lit(None, pl.Float64).alias("start_time"),
        pl.lit(None, pl.Float64).alias("end_time"),
        pl.lit(np.inf).alias("duration_seconds"),
        pl.lit(False).alias("is_running"),
    )
    return workload_of(Trace(trace.meta, {"tasks": pods}), cluster_models(cluster)), cluster
