"""Queues as clusters: one GPU is one server, so the engine can be asked what theory and peer libraries know."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from gputwin.core.rng import stream
from gputwin.simulation.cluster import Cluster, NodeGroup
from gputwin.simulation.engine.state.records import FREE_MODELS
from gputwin.simulation.engine.state.series import RUNNING_JOBS, USED, WAITING_JOBS
from gputwin.simulation.engine.world import FINISHED, LOST
from gputwin.simulation.machines import cluster_models
from gputwin.simulation.rules import Scheduler
from gputwin.simulation.run import run
from gputwin.simulation.workload import Workload, workload_of
from gputwin.traces.dataset import Trace, TraceMeta
from gputwin.traces.schema import TASKS, conform

Floats = NDArray[np.float64]
IN_LINE = Scheduler(backfill="strict")
"""First come, first served, as most models of queues have it."""
WARM_UP = 0.1
"""Share of a run that is not measured: thousands of jobs, where the empty start is forgotten after hundreds."""


@dataclass(frozen=True)
class Arrivals:
    """Jobs in order of arrival. An instance asks for `gpus` whole devices, or for `milli` of each."""

    submit: Floats
    service: Floats
    gpus: ArrayLike = 1
    milli: ArrayLike = 1000
    instances: ArrayLike = 1
    priority: ArrayLike = 0

    @property
    def size(self) -> Floats:
        """Return the GPUs each job takes."""
        return np.asarray(self.gpus) * np.asarray(self.milli) / 1000 * np.asarray(self.instances)

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
    world = run(workload, cluster, scheduler or IN_LINE, bin_seconds=bin_seconds).world
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
class Replicates:
    """Figures of independent replications, and by how many erlangs the load drawn in each was above the one meant."""

    name: str
    figures: dict[str, Floats]
    excess_load: Floats

    def interval(self, figure: str, confidence: float = 0.999) -> tuple[float, float]:
        """Return the mean and its half width by Student's t, with the load drawn as control variate.

        Lavenberg and Welch, "A Perspective on the Use of Control Variables", 1981: much of what replications differ
        in is the load they happened to draw, and its mean is known: the figure is read off the regression line there.
        """
        line = stats.linregress(self.excess_load, self.figures[figure])
        return line.intercept, stats.t.ppf((1 + confidence) / 2, self.excess_load.size - 2) * line.intercept_stderr

    def assert_agrees(self, figure: str, exact: float, precision: float) -> None:
        """Assert that the 99.9 % interval has the exact value in it, and is narrow enough to tell."""
        mean, half_width = self.interval(figure)
        said = f"{self.name}, {figure}: theory {exact:.5g}, simulation {mean:.5g} ± {half_width:.2g}"
        print(f"{said} ({half_width / exact:.1%})")
        assert abs(mean - exact) <= half_width, said
        assert half_width <= precision * exact, f"{said}, wider than {precision:.1%}"


def replicate(
    name: str,
    load: float,
    draw: Callable[[np.random.Generator], Arrivals],
    measure: Callable[[Arrivals, Outcome], dict[str, float]],
    cluster: Cluster,
    scheduler: Scheduler | None = None,
    count: int = 20,
) -> Replicates:
    """Return what is measured in `count` runs of independent arrivals that bring `load` erlangs on average."""
    figures, excess = [], []
    for k in range(count):
        jobs = draw(stream(0, name, k))
        done = serve(jobs, cluster, scheduler)
        figures.append(measure(jobs, done))
        work = (jobs.service * jobs.size)[done.settled].sum()
        excess.append(work / (jobs.submit[-1] - jobs.submit[done.settled][0]) - load)
    return Replicates(name, {key: np.array([f[key] for f in figures]) for key in figures[0]}, np.array(excess))
