"""The typical workload: the job kinds that make up most of it, for judging what free GPU share is good for.

Weng et al., ATC'23, section 3.2: kinds are (CPU, GPU share, GPU count), jobs without GPUs included, counted, and cut
once they cover 95 % of all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from gputwin.simulation.engine.state import Floats, Ints, SmallInts
from gputwin.simulation.workload import Workload

COVERAGE = 0.95


@dataclass(frozen=True)
class Typical:
    """Kinds of instances and their share of the workload; shares sum to one."""

    cpu_milli: Ints
    gpu_milli: SmallInts
    gpu_count: SmallInts
    share: Floats


def typical_jobs(workload: Workload, jobs: slice = slice(None)) -> Typical:
    """Return the kinds of instances that cover 95 % of the given jobs' instances, most frequent first."""
    shapes, requests = workload.shapes, workload.requests
    per_shape = np.bincount(workload.jobs.shape[jobs], minlength=shapes.first.size - 1)
    per_group = np.repeat(per_shape, np.diff(shapes.first)) * shapes.size
    kinds = (
        pl.DataFrame({
            "cpu": requests.cpu[shapes.request],
            "milli": requests.gpu_milli[shapes.request],
            "count": requests.gpu_count[shapes.request],
            "instances": per_group.astype(np.int64),
        })
        .group_by("cpu", "milli", "count")
        .agg(pl.col("instances").sum())
        .sort("instances", "cpu", "milli", "count", descending=True)
    )
    counts = kinds["instances"].to_numpy()
    kept = int(np.searchsorted(np.cumsum(counts), COVERAGE * counts.sum(), side="left")) + 1
    kept = min(kept, counts.size)
    return Typical(
        kinds["cpu"].to_numpy()[:kept].astype(np.int64),
        kinds["milli"].to_numpy()[:kept].astype(np.int32),
        kinds["count"].to_numpy()[:kept].astype(np.int32),
        counts[:kept] / counts[:kept].sum(),
    )
