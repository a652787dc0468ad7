"""From theory to the trace in steps: simulations that drop one assumption of M/M/c after the other.

Where the wait jumps from one step to the next, the assumption dropped there is the one that does not hold.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputwin.core.percentiles import percentile
from gputwin.core.rng import stream
from gputwin.core.units import WHOLE_GPU_MILLI
from gputwin.queueing.fit.offered import Offered
from gputwin.queueing.operational import Record
from gputwin.simulation.batch import Batch, workers_for
from gputwin.simulation.cluster import Cluster, NodeGroup
from gputwin.simulation.run import run
from gputwin.simulation.scenario import Scenario
from gputwin.simulation.waits import job_times
from gputwin.simulation.workload import Workload
from gputwin.studies.validation.queue_workload import Jobs, arrays_of
from gputwin.studies.validation.theory import Figures

Floats = NDArray[np.float64]
SEEDS = 3
ON_NODES = "real nodes"


class AssumptionStep(NamedTuple):
    """The assumption dropped since the one before, and what the simulation then says."""

    name: str
    dropped: str
    figures: Figures
    spread: float
    """s; half the range of the mean wait over seeds; 0 where nothing is drawn."""


@dataclass(frozen=True)
class StepInput:
    """What the steps are simulated from: the trace's jobs as the engine's arrays, the cluster, and the rules."""

    workload: Workload
    jobs: Offered
    cluster: Cluster
    scenario: Scenario

    @property
    def gpus(self) -> int:
        """Return the cluster's GPUs."""
        return self.cluster.gpu_count

    @property
    def gpu_jobs(self) -> int:
        """Return how many jobs take GPUs."""
        return int((self.workload.jobs["gpu_milli"] > 0).sum())


def simulate_steps(given: StepInput, *, workers: int | None = None) -> tuple[list[AssumptionStep], Record]:
    """Return the steps from a simulation of M/M/c to that of the trace on its nodes, and the last one's jobs."""
    # The last step takes longest: it begins first.
    tasks = [(ON_NODES, 0), *((step, k) for step, _, seeds in STEPS for k in range(seeds))]
    jobs = given.workload.size * len(tasks)
    with Batch(workers=workers_for(jobs) if workers is None else workers) as batch:
        shared = batch.share(given)
        last, *found = batch.map(simulate_step, [(shared, given.cluster, step, k) for step, k in tasks])
    steps, at = [], 0
    for name, dropped, seeds in STEPS:
        part = found[at : at + seeds]
        at += seeds
        means = [f.mean_wait or 0.0 for f in part]
        average = Figures(*(float(np.mean([getattr(f, field) for f in part])) for field in Figures._fields))
        steps.append(AssumptionStep(name, dropped, average, (max(means) - min(means)) / 2))
    steps.append(
        AssumptionStep(
            ON_NODES, "any free GPU will do (no nodes, GPU models, CPU or memory)", _measured(given, last), 0.0
        )
    )
    return steps, last


def measure(record: Record, capacity: float, begin: float, until: float) -> Figures:
    """Return the figures of a record: waits of all jobs whose wait is known, and what jobs held between two times."""
    span = until - begin
    submit, start, end, gpus = record
    known = np.isfinite(start)
    wait = (start - submit)[known & np.isfinite(submit)]
    held = (np.clip(end, begin, until) - np.clip(start, begin, until))[known]
    # Who never started waits to the end.
    left = np.where(known, start, np.inf)
    queued = np.nan_to_num(np.clip(left, begin, until) - np.clip(submit, begin, until))
    return Figures(
        float(wait.mean()) if wait.size else None,
        percentile(wait, 0.95) if wait.size else None,
        float(held @ gpus[known]) / span / capacity,
        float(queued.sum()) / span,
    )


def simulate_step(given: StepInput, cluster: Cluster, step: str, k: int) -> Any:
    """Return the figures of one step on a cluster in its k-th draw; of the last step, what became of the jobs."""
    on_it = replace(given, cluster=cluster)
    if step == ON_NODES:
        return _on_nodes(on_it)
    return _SIMULATE[step](on_it, stream(given.scenario.seed, "ladder", k))


def _poisson(jobs: Offered, rng: np.random.Generator) -> Floats:
    """Return as many arrivals as there are jobs, uniform over the same time: Poisson given their number."""
    return np.sort(rng.uniform(jobs.begin, jobs.until, jobs.submit.size))


def _slots(given: StepInput, submit: Floats, service: Floats) -> Figures:
    """Return the figures of single-slot jobs on as many slots as the cluster has for the mean job."""
    jobs = given.jobs
    count = max(round(given.gpus / jobs.gpus_per_job), 1)
    drawn = Jobs(submit, service)
    return _figures(given, arrays_of(drawn), pool_of(count), np.ones(submit.size), count)


def _memoryless(given: StepInput, rng: np.random.Generator) -> Figures:
    jobs = given.jobs
    service = rng.exponential(1.0, jobs.submit.size)
    return _slots(given, _poisson(jobs, rng), service * jobs.mean_run / service.mean())


def _real_times(given: StepInput, rng: np.random.Generator) -> Figures:
    return _slots(given, _poisson(given.jobs, rng), rng.permutation(given.jobs.run))


def _real_sizes(given: StepInput, rng: np.random.Generator) -> Figures:
    jobs = given.jobs
    order = rng.permutation(jobs.submit.size)
    return _pooled(given, _poisson(jobs, rng), jobs.run[order], jobs.gpus[order])


def _real_arrivals(given: StepInput, rng: np.random.Generator) -> Figures:
    takes = given.workload.jobs["gpu_milli"] > 0
    jobs, older = given.workload.jobs[takes], given.workload.older
    gpus = jobs["gpu_milli"] / WHOLE_GPU_MILLI
    return _pooled(given, jobs["submit"], jobs["duration"], gpus, None if older is None else older[takes])


def _pooled(
    given: StepInput, submit: Floats, service: Floats, gpus: Floats, older: NDArray[np.bool_] | None = None
) -> Figures:
    """Return the figures on one pool of single GPUs: whole ones as a gang, the rest as a share of one more."""
    order = np.argsort(submit, kind="stable")
    submit, service, gpus = submit[order], service[order], gpus[order]
    whole = gpus >= 1
    # A job of 2.5 GPUs takes three: only jobs below one GPU share.
    drawn = Jobs(
        submit,
        service,
        milli=np.where(whole, WHOLE_GPU_MILLI, np.maximum(np.rint(gpus * WHOLE_GPU_MILLI), 1)).astype(np.int64),
        instances=np.where(whole, np.ceil(gpus - 1e-9), 1).astype(np.int64),
    )
    workload = replace(arrays_of(drawn), older=None if older is None else older[order])
    return _figures(given, workload, pool_of(given.gpus), drawn.size, given.gpus)


def _on_nodes(given: StepInput) -> Record:
    takes = given.workload.jobs["gpu_milli"] / WHOLE_GPU_MILLI
    return _record(given, given.workload, given.cluster, takes, given.scenario.seed)


def _figures(given: StepInput, workload: Workload, cluster: Cluster, gpus: Floats, capacity: float) -> Figures:
    record = _record(given, workload, cluster, gpus)
    return measure(record, capacity, given.jobs.begin, given.jobs.until)


def _measured(given: StepInput, record: Record) -> Figures:
    return measure(record, given.gpus, given.jobs.begin, given.jobs.until)


def _record(given: StepInput, workload: Workload, cluster: Cluster, gpus: Floats, seed: int = 0) -> Record:
    """Return what became of the jobs that take GPUs."""
    rules = given.scenario
    done = run(workload, cluster, rules.scheduler, seed=seed, attribute=False, changes=rules.changes)
    times, takes = job_times(done), gpus > 0
    submit = np.where(times.has_wait, times.submit, np.nan)
    return Record(submit[takes], times.start[takes], times.end[takes], gpus[takes])


def pool_of(count: int) -> Cluster:
    """Return so many GPUs on nodes of their own: a pool in which any free one will do."""
    return Cluster("pool", (NodeGroup("gpu", count, 1),))


_SIMULATE: dict[str, Callable[[StepInput, np.random.Generator], Figures]] = {
    "M/M/c, simulated": _memoryless,
    "real run times": _real_times,
    "real sizes": _real_sizes,
    "real arrivals": _real_arrivals,
}
STEPS: tuple[tuple[str, str, int], ...] = (
    ("M/M/c, simulated", "", SEEDS),
    ("real run times", "run times are exponential", SEEDS),
    ("real sizes", "all jobs are of one size, whatever their length", SEEDS),
    ("real arrivals", "arrivals are Poisson (no bursts, no days and nights)", 1),
)
