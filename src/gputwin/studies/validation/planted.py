"""Planted models: jobs drawn as a queueing model says, run by the engine on GPUs that are its servers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from gputwin.core.units import WHOLE_GPU_MILLI
from gputwin.simulation.cluster import Cluster, NodeGroup
from gputwin.simulation.engine.state.records import GROUP, JOB, REQUEST, SHAPE
from gputwin.simulation.result import OUTCOMES
from gputwin.simulation.run import Scheduler, run
from gputwin.simulation.workload import Workload

Floats = NDArray[np.float64]
_LOST = OUTCOMES.index("lost")


@dataclass(frozen=True)
class Jobs:
    """Jobs in order of arrival. A job is `instances` that take `gpus` whole devices and `cpu_milli` each."""

    submit: Floats
    service: Floats
    gpus: ArrayLike = 1
    milli: ArrayLike = WHOLE_GPU_MILLI
    instances: ArrayLike = 1
    cpu_milli: ArrayLike = 0
    priority: ArrayLike = 0.0

    @property
    def size(self) -> Floats:
        """Return the GPUs each job takes."""
        units = np.asarray(self.gpus) * np.asarray(self.milli) * np.asarray(self.instances)
        return np.asarray(units / WHOLE_GPU_MILLI, np.float64)


def servers(count: int, gpus: int = 1, cpu_milli: int | None = None) -> Cluster:
    """Return `count` nodes of so many GPUs, each GPU a server."""
    return Cluster("servers", (NodeGroup("node", count, gpus, cpu_milli=cpu_milli),))


def workload_of_jobs(jobs: Jobs) -> Workload:
    """Return the jobs as the engine's arrays."""
    count = jobs.submit.size
    columns = np.column_stack(
        [
            np.broadcast_to(np.asarray(c, np.int64), count)
            for c in (jobs.gpus, jobs.milli, jobs.instances, jobs.cpu_milli)
        ]
    )
    kinds, kind = np.unique(columns, axis=0, return_inverse=True)
    records = np.zeros(count, JOB)
    records["submit"] = jobs.submit
    records["duration"] = records["predicted"] = jobs.service
    records["deadline"] = np.inf
    records["priority"] = jobs.priority
    records["gpu_milli"] = jobs.size * WHOLE_GPU_MILLI
    records["shape"] = kind.reshape(-1)
    instances = columns[:, 2]
    records["first_slot"] = np.cumsum(instances) - instances
    shapes, groups, requests = (np.zeros(len(kinds), dtype) for dtype in (SHAPE, GROUP, REQUEST))
    shapes["first_group"] = groups["request"] = np.arange(len(kinds))
    shapes["groups"] = 1
    shapes["instances"] = groups["size"] = kinds[:, 2]
    requests["gpu_count"] = kinds[:, 0]
    requests["gpu_milli"] = kinds[:, 1]
    requests["cpu"] = kinds[:, 3]
    requests["max_per_node"] = requests["application"] = -1
    anywhere = np.ones((len(kinds), 1), np.bool_)
    return Workload(records, shapes, groups, requests, anywhere, pl.Series(dtype=pl.String), ("everyone",), ("",), {})


@dataclass(frozen=True)
class Outcome:
    """What became of each job, in order of arrival."""

    submit: Floats
    start: Floats
    end: Floats
    lost: NDArray[np.bool_]

    @property
    def wait(self) -> Floats:
        """Return the wait of each job, s; NaN for those lost."""
        return self.start - self.submit


def serve(jobs: Jobs, cluster: Cluster, scheduler: Scheduler | None = None) -> Outcome:
    """Return what the engine makes of the jobs."""
    records = run(workload_of_jobs(jobs), cluster, scheduler, attribute=False).world.queue.jobs
    return Outcome(records["submit"], records["start"], records["end"], records["outcome"] == _LOST)


def poisson(rng: np.random.Generator, rate: float, count: int) -> Floats:
    """Return the times of so many Poisson arrivals."""
    return np.cumsum(rng.exponential(1 / rate, count))
