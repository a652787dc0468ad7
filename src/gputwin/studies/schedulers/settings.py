"""Where schedulers are compared: jobs, and a cluster sized so that these jobs keep it busy."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from gputwin.core.errors import UserError
from gputwin.simulation.cluster import Cluster, cluster_for
from gputwin.simulation.offered import ANY, offered_loads
from gputwin.simulation.priorities import USUAL, draw, shares_words
from gputwin.traces.dataset import Trace
from gputwin.traces.locate import open_trace

LOAD = 0.9
_WARM_UP = 0.3
"""Share of a recorded trace that is passed over: its first weeks are thin."""


@dataclass(frozen=True)
class Setting:
    """Jobs on a cluster; `load` is the offered GPU load, `gpus` those of each model."""

    name: str
    trace: Trace
    cluster: Cluster
    load: float
    notes: tuple[str, ...]


def synthetic_setting(name: str, jobs: int, seed: int, load: float = LOAD) -> Setting:
    """Return jobs drawn like those of a public trace, on a smaller cluster with the same mix of nodes."""
    trace = open_trace(f"synthetic:{name}?jobs={jobs}&seed={seed}")
    return _setting(name, trace, cluster_for(trace, None), load, seed)


def recorded_setting(name: str, path: str, jobs: int, seed: int, load: float = LOAD) -> Setting:
    """Return so many jobs in a row of a recorded trace, on nodes of eight GPUs."""
    whole = open_trace(path)
    if whole.tasks.is_empty():
        raise UserError(f"{path} has no jobs")
    submits = whole.tasks["submit_time"].drop_nulls().sort()
    first = int(submits.len() * _WARM_UP) if submits.len() > jobs else 0
    last = first + jobs
    end = float(submits[last]) if last < submits.len() else np.inf
    return _setting(
        name, whole.between(float(submits[first]), end), cluster_for(whole, "homogeneous:1000x8"), load, seed
    )


def _setting(name: str, trace: Trace, cluster: Cluster, load: float, seed: int) -> Setting:
    trace, noted = _with_priorities(trace, seed)
    target = sized_for(trace, cluster, load)
    return Setting(name, trace, target, gpu_load(trace, target), noted)


def gpu_load(trace: Trace, cluster: Cluster) -> float:
    """Return the mean offered load of all GPUs."""
    found = offered_loads(trace.tasks, cluster.nodes()).loads
    return next(x.mean for x in found if x.resource == "gpu_milli" and x.models == ANY)


def sized_for(trace: Trace, cluster: Cluster, load: float) -> Cluster:
    """Return the cluster with each node group shrunk or grown alike, so that the trace offers its GPUs this load."""
    factor = gpu_load(trace, cluster) / load
    groups = tuple(replace(g, count=max(round(g.count * factor), 1)) for g in cluster.groups)
    return Cluster(f"{cluster.name} × {factor:.3g}", groups)


def _with_priorities(trace: Trace, seed: int) -> tuple[Trace, tuple[str, ...]]:
    """Return the trace with a priority for each job, drawn where it has none, and a note that says so."""
    if trace.tasks["priority"].n_unique() > 1:
        return trace, ()
    names = trace.tasks["job_id"].unique(maintain_order=True)
    drawn = draw(names.len(), USUAL, seed)
    frame = pl.DataFrame({"job_id": names, "priority": pl.Series(drawn).cast(trace.tasks.schema["priority"])})
    tasks = trace.tasks.drop("priority").join(frame, on="job_id", how="left", maintain_order="left")
    tables = {name: trace.frame(name) for name in ("instances", "nodes") if trace.has(name)}
    given = Trace.from_frames({"tasks": tasks.select(trace.tasks.columns), **tables}, trace.meta)
    return given, (shares_words(USUAL, seed),)
