"""The typical workload: the job kinds that make up most of it, for judging what free GPU share is good for.

Weng et al., ATC'23, section 3.2: kinds are (CPU, GPU share, GPU count, allowed models), jobs without GPUs included,
counted, and cut once they cover 95 % of all. As with the authors, allowed models count as they are written: a list that
names a model twice is a kind of its own.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from gputwin.simulation.engine.state.records import TYPICAL, Records, models_of
from gputwin.simulation.workload import Workload

COVERAGE = 0.95
_KIND = ("cpu", "milli", "count", "written", "models")


def typical_jobs(workload: Workload) -> Records:
    """Return the kinds of instances that cover 95 % of the workload's instances, most frequent first.

    Ties go to the larger CPU, GPU share, count, then the later name of models. Shares of those kept sum to one.
    """
    groups, shapes, requests = workload.groups, workload.shapes, workload.requests
    per_shape = np.bincount(workload.jobs["shape"], minlength=shapes.size)
    per_group = np.repeat(per_shape, shapes["groups"]) * groups["size"].astype(np.int64)
    kind = requests[groups["request"]]
    kinds = (
        pl.DataFrame(
            {
                "cpu": kind["cpu"],
                "milli": kind["gpu_milli"],
                "count": kind["gpu_count"],
                "written": np.array(workload.constraints or [""] * requests.size, object)[groups["request"]],
                "models": models_of(workload.allowed)[groups["request"]],
                "instances": per_group,
            }
        )
        .with_columns(pl.col("written").cast(pl.String))
        .group_by(_KIND)
        .agg(pl.col("instances").sum())
        .sort("instances", *_KIND, descending=True)
    )
    counts = kinds["instances"].to_numpy()
    kept = min(int(np.searchsorted(np.cumsum(counts), COVERAGE * counts.sum(), side="left")) + 1, counts.size)
    typical = np.zeros(kept, TYPICAL)
    for name in ("cpu", "milli", "count", "models"):
        typical[name] = kinds[name].to_numpy()[:kept]
    total = counts.sum()
    typical["share"] = counts[:kept] / total / (counts[:kept].sum() / total)
    return typical
