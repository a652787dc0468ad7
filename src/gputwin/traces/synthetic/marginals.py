"""What a trace is measured by: the distributions and single figures that published studies report of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from gputwin.core.units import DAY, HOUR, WHOLE_GPU_MILLI
from gputwin.traces.measures import ARRIVAL, RUNTIME, WAIT
from gputwin.traces.synthetic.distributions import Floats

Tables = Mapping[str, pl.DataFrame]
_ON_GPU = pl.col("gpu_count") > 0
_GPU_MILLI = pl.col("gpu_count").cast(pl.Int64) * pl.col("gpu_milli").fill_null(WHOLE_GPU_MILLI)


@dataclass(frozen=True)
class Marginal:
    """One quantity of a trace: its unit and the rows it is read from."""

    name: str
    unit: str
    value: pl.Expr
    where: pl.Expr | None = None
    per_job: bool = False

    def values(self, tables: Tables, utc_offset: float = 0.0) -> Floats:
        """Return the known values; times of day are read `utc_offset` s east of the trace's clock."""
        tasks = tables["tasks"].lazy().with_columns((ARRIVAL + utc_offset).alias("local_time"))
        if self.where is not None:
            tasks = tasks.filter(self.where)
        if self.per_job:
            tasks = tasks.group_by("job_id").agg(pl.col("start_time").min(), pl.col("end_time").max())
        return tasks.select(self.value.cast(pl.Float64).alias("v")).collect()["v"].drop_nulls().to_numpy()


MARGINALS: Mapping[str, Marginal] = {
    m.name: m
    for m in (
        Marginal("job runtime", "s", pl.col("end_time") - pl.col("start_time"), per_job=True),
        Marginal("task runtime", "s", RUNTIME),
        Marginal("wait", "s", WAIT),
        Marginal("GPU per instance", "milli-GPU", _GPU_MILLI, _ON_GPU),
        Marginal("GPU per task", "milli-GPU", _GPU_MILLI * pl.col("instances"), _ON_GPU),
        Marginal("CPU per instance", "milli-core", pl.col("cpu_milli")),
        Marginal("CPU per GPU instance", "milli-core", pl.col("cpu_milli"), _ON_GPU),
        Marginal("memory per instance", "MiB", pl.col("memory_mib")),
        Marginal("memory per GPU instance", "MiB", pl.col("memory_mib"), _ON_GPU),
        Marginal("instances per task", "instance", pl.col("instances")),
        Marginal("arrival hour", "h", pl.col("local_time") % DAY // HOUR),
        Marginal("arrival weekday", "day from Monday", (pl.col("local_time") // DAY + 3) % 7),
    )
}


def _instance_runtime(tables: Tables, share: float) -> float | None:
    """Return the run time in s that the share of instances does not exceed; None where none is known."""
    tasks = tables["tasks"].select(RUNTIME, "instances").drop_nulls().sort("runtime_seconds")
    if tasks.is_empty():
        return None
    cumulative = tasks["instances"].cast(pl.Int64).cum_sum().to_numpy()
    return float(tasks["runtime_seconds"][int(np.searchsorted(cumulative, share * cumulative[-1]))])


def _of_tasks(expression: pl.Expr) -> Callable[[Tables], float | None]:
    return lambda tables: tables["tasks"].select(expression.cast(pl.Float64).alias("v"))["v"][0]


def _top_users(tables: Tables) -> float:
    """Return the share of instances that the largest 5 % of users submit."""
    per_user = tables["tasks"].group_by("user").agg(pl.col("instances").sum()).sort("instances", descending=True)
    largest = per_user["instances"].head(max(1, round(0.05 * per_user.height)))
    return int(largest.sum()) / int(per_user["instances"].sum())


def _recurring(tables: Tables) -> float:
    """Return the share of tasks that belong to groups of five or more tasks."""
    sizes = tables["tasks"].group_by("group").len()
    return int(sizes.filter(pl.col("len") >= 5)["len"].sum()) / int(sizes["len"].sum())


def _mean_job_runtime(tables: Tables) -> float | None:
    values = MARGINALS["job runtime"].values(tables)
    return float(values.mean()) if len(values) else None


STATISTICS: Mapping[str, Callable[[Tables], float | None]] = {
    "median task runtime": _of_tasks(RUNTIME.median()),
    "mean task runtime": _of_tasks(RUNTIME.mean()),
    "mean job runtime": _mean_job_runtime,
    "median instance runtime": lambda tables: _instance_runtime(tables, 0.5),
    "p90 instance runtime": lambda tables: _instance_runtime(tables, 0.9),
    "median wait": _of_tasks(WAIT.median()),
    "mean wait": _of_tasks(WAIT.mean()),
    "share of waits of zero": _of_tasks((WAIT == 0).mean()),
    "mean GPU per instance": _of_tasks(_GPU_MILLI.filter(_ON_GPU).mean()),
    "mean GPU per task": _of_tasks((_GPU_MILLI * pl.col("instances")).filter(_ON_GPU).mean()),
    "tasks per job": _of_tasks(pl.len() / pl.col("job_id").n_unique()),
    "instances per task": _of_tasks(pl.col("instances").mean()),
    "share of GPU tasks": _of_tasks(_ON_GPU.mean()),
    "share of GPU tasks that share a GPU": _of_tasks((pl.col("gpu_milli") < WHOLE_GPU_MILLI).filter(_ON_GPU).mean()),
    "share of instances in gangs": _of_tasks(
        pl.col("instances").filter(pl.col("instances") > 1).sum() / pl.col("instances").sum()
    ),
    "share of instances by top 5 % of users": _top_users,
    "share of tasks in groups of 5 or more": _recurring,
    "share of tasks that failed": _of_tasks((pl.col("status") == "failed").mean()),
    "share of tasks without end": _of_tasks(pl.col("end_time").is_null().mean()),
}
