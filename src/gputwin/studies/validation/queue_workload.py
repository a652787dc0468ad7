"""Workloads of queueing models: jobs drawn as a queueing model says, run by the engine on GPUs that are its servers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gputwin.core.units import WHOLE_GPU_MILLI
from gputwin.simulation.cluster import Cluster, NodeGroup
from gputwin.simulation.plain_jobs import Kinds, workload_of_kinds
from gputwin.simulation.result import OUTCOMES
from gputwin.simulation.rules import Scheduler
from gputwin.simulation.run import run
from gputwin.simulation.workload import Workload

Floats = NDArray[np.float64]
_LOST = OUTCOMES.index("lost")
IN_LINE = Scheduler(backfill="strict")
"""First come, first served, as most models of queues have it."""


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


def arrays_of(jobs: Jobs) -> Workload:
    """Return the jobs as the engine's arrays."""
    count = jobs.submit.size
    columns = np.column_stack(
        [
            np.broadcast_to(np.asarray(c, np.int64), count)
            for c in (jobs.gpus, jobs.milli, jobs.instances, jobs.cpu_milli)
        ]
    )
    kinds, kind = np.unique(columns, axis=0, return_inverse=True)
    return workload_of_kinds(jobs.submit, jobs.service, Kinds(*kinds.T), kind.reshape(-1), jobs.priority)


@dataclass(frozen=True)
class ServedJobs:
    """What became of each job, in order of arrival."""

    submit: Floats
    start: Floats
    end: Floats
    lost: NDArray[np.bool_]

    @property
    def wait(self) -> Floats:
        """Return the wait of each job, s; NaN for those lost."""
        return self.start - self.submit


def serve(jobs: Jobs, cluster: Cluster, scheduler: Scheduler | None = None) -> ServedJobs:
    """Return what the engine makes of the jobs, in line where no other rule is given."""
    records = run(arrays_of(jobs), cluster, scheduler or IN_LINE, attribute=False).world.queue.jobs
    return ServedJobs(records["submit"], records["start"], records["end"], records["outcome"] == _LOST)


def poisson(rng: np.random.Generator, rate: float, count: int) -> Floats:
    """Return the times of so many Poisson arrivals."""
    return np.cumsum(rng.exponential(1 / rate, count))
