"""Queues as clusters: one GPU is one server, so what theory and peer libraries know of queues can be asked of the engine."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from gputwin.core.rng import stream
from gputwin.simulation.cluster import Cluster, NodeGroup
from gputwin.simulation.engine.series import RUNNING_JOBS, USED, WAITING_JOBS
from gputwin.simulation.engine.state import FREE_MODELS
from gputwin.simulation.engine.world import FINISHED, LOST
from gputwin.simulation.simulate import Scheduler, cluster_models, run
from gputwin.simulation.workload import Workload, workload_of
from gputwin.traces.dataset import Trace, TraceMeta
from gputwin.traces.schema import TASKS, conform

Floats = NDArray[np.float64]
WARM_UP = 0.1
"""Share of a run that is not measured: thousands of jobs, where at a load of 0.8 the start is forgotten after hundreds."""


@dataclass(frozen=True)
class Arrivals:
    """Jobs in order of arrival. An instance asks for `gpus` whole devices, or for `milli` of each."""

    submit: Floats
    service: Floats
    gpus: ArrayLike = 1
    milli: ArrayLike = 1000
    instances: ArrayLike = 1
    priority: ArrayLike = 0

    def workload(self) -> Workload:
        """Return the jobs as the engine's arrays, by way of a trace."""
        count = self.submit.size
        columns = {
            "job_id": pl.int_range(count, eager=True).cast(pl.String).str.zfill(9),
            "submit_time": self.submit,
            "duration_seconds": self.service,
            "gpu_count": np.broadcast_to(self.gpus, count),
            "gpu_milli": np.broadcast_to(self.milli, count),
            "instances": np.broadcast_to(self.instances, count),
            "priority": np.broadcast_to(self.priority, count),
        }
        tasks = conform(TASKS, pl.DataFrame(columns).lazy()).collect()
        return workload_of(Trace(TraceMeta("queue"), {"tasks": tasks}), cluster_models(servers(1)))


def servers(nodes: int, gpus: int = 1) -> Cluster:
    """Return nodes × gpus servers."""
    return Cluster("servers", (NodeGroup("node", nodes, gpus),))


@dataclass(frozen=True)
class Outcome:
    """What became of each job, in order of arrival, and the exact integrals per bin of time."""

    submit: Floats
    service: Floats
    start: Floats
    end: Floats
    lost: NDArray[np.bool_]
    causes: Floats
    """[job, cause] s."""
    edges: Floats
    """Of the bins, s."""
    waiting: Floats
    """Job-seconds waited in each bin."""
    running: Floats
    """Job-seconds run in each bin."""
    busy: Floats
    """GPU-seconds in use in each bin."""

    @property
    def wait(self) -> Floats:
        return self.start - self.submit

    @property
    def settled(self) -> slice:
        """Return the jobs after the warm-up."""
        return slice(int(self.submit.size * WARM_UP), None)

    def time_average(self, integral: Floats) -> float:
        """Return the mean level between the warm-up and the last arrival."""
        first, last = int(self.edges.size * WARM_UP), int(np.searchsorted(self.edges, self.submit[-1], "right")) - 1
        return float(integral[first:last].sum() / (self.edges[last] - self.edges[first]))


def serve(
    jobs: Arrivals | Workload, cluster: Cluster, scheduler: Scheduler | None = None, *, bin_seconds: float | None = None
) -> Outcome:
    """Return what the engine makes of the jobs; each of them is over."""
    workload = jobs.workload() if isinstance(jobs, Arrivals) else jobs
    world = run(workload, cluster, scheduler, bin_seconds=bin_seconds).world
    records, values = world.queue.jobs, world.series.values
    assert np.isin(records["outcome"], (FINISHED, LOST)).all()
    begin, width = world.series.clock[:2]
    return Outcome(
        submit=records["submit"],
        service=records["duration"],
        start=records["start"],
        end=records["end"],
        lost=records["outcome"] == LOST,
        causes=world.causes.share,
        edges=begin + width * np.arange(len(values) + 1),
        waiting=values[:, WAITING_JOBS],
        running=values[:, RUNNING_JOBS],
        busy=values[:, USED + FREE_MODELS :].sum(axis=1) / 1000,
    )


@dataclass(frozen=True)
class Interval:
    """A confidence interval of a mean."""

    mean: float
    half_width: float

    def __contains__(self, value: float) -> bool:
        return abs(value - self.mean) <= self.half_width

    def __str__(self) -> str:
        return f"{self.mean:.5g} ± {self.half_width:.2g}"


def interval(replicates: ArrayLike, confidence: float = 0.999) -> Interval:
    """Return Student's interval of the mean of independent replicates."""
    values = np.asarray(replicates, np.float64)
    quantile = stats.t.ppf((1 + confidence) / 2, values.size - 1)
    return Interval(float(values.mean()), float(quantile * values.std(ddof=1) / np.sqrt(values.size)))


def replicate(name: str, count: int, once: Callable[[np.random.Generator], dict[str, float]]) -> dict[str, Floats]:
    """Return each figure of `once` in independent replications; the streams are the name's own."""
    figures = [once(stream(zlib.crc32(name.encode()), k)) for k in range(count)]
    return {key: np.array([f[key] for f in figures]) for key in figures[0]}


def assert_agrees(replicates: ArrayLike, exact: float, precision: float, what: Any = "") -> None:
    """Assert that the exact value is in the 99.9 % interval, and that the interval is narrow enough to tell."""
    found = interval(replicates)
    print(f"{what:<48} {exact:10.5g}   {found}  ({found.half_width / exact:.2%})")
    assert exact in found, f"{what}: theory says {exact:.6g}, simulation {found}"
    assert found.half_width < precision * exact, f"{what}: {found} is wider than {precision:.1%} of {exact:.6g}"
