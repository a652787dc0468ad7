"""The jobs to run, as arrays: made from a trace for one cluster.

A job is all tasks of one job id: its groups start together (gang) and it ends when the longest ends. Requests and job
shapes are numbered; jobs of one shape ask for the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from gputwin.core.errors import UserError
from gputwin.core.units import WHOLE_GPU_MILLI
from gputwin.simulation.engine.state import Jobs, Requests, Shapes
from gputwin.traces.dataset import Trace
from gputwin.traces.measures import ARRIVAL, RUNTIME

_AMOUNTS = ("cpu_milli", "memory_mib", "disk_mib", "rdma_percent", "gpu_count", "gpu_milli", "gpu_memory_mib")
_REQUEST = (*_AMOUNTS, "gpu_models_allowed", "max_per_node", "limited_application")
_NO_LIMIT = -1


@dataclass(frozen=True)
class Workload:
    """Jobs in order of submission with their shapes and requests, and the names behind the numbers."""

    jobs: Jobs
    shapes: Shapes
    requests: Requests
    job_ids: pl.Series
    tenants: tuple[str, ...]
    models: tuple[str, ...]
    left_out: dict[str, int]
    """Why tasks of the trace are not simulated, and how many."""

    @property
    def size(self) -> int:
        """Return the number of jobs."""
        return int(self.jobs.submit.size)

    @property
    def slots(self) -> int:
        """Return the number of instances of all jobs."""
        return int(self.jobs.first_slot[-1] + self.instances[-1]) if self.size else 0

    @property
    def instances(self) -> np.ndarray[Any, Any]:
        """Return the number of instances of each job."""
        per_shape = np.add.reduceat(self.shapes.size, self.shapes.first[:-1])
        return np.asarray(per_shape[self.jobs.shape], np.int64)


def workload_of(
    trace: Trace, models: tuple[str, ...], *, share: str = "fraction", predict: str = "oracle"
) -> Workload:
    """Return the trace's jobs as arrays, for a cluster with these GPU models.

    `share` 'exclusive' rounds shares of a GPU up to whole devices. `predict` says what the scheduler believes:
    'oracle' (the truth) or 'requested' (the time limit asked for, the truth where none was).
    """
    tasks, left_out = _simulated(trace.tasks)
    if tasks.is_empty():
        raise UserError("the trace has no task with a known arrival and duration, so there is nothing to simulate")
    tasks = _with_requests(tasks, share, predict)
    requests, tasks = _number_requests(tasks, models)
    return _assemble(tasks, requests, models, left_out)


def _simulated(tasks: pl.DataFrame) -> tuple[pl.DataFrame, dict[str, int]]:
    """Return the tasks that can be simulated; ones alive at the end run until then."""
    last = tasks.select(pl.max_horizontal(pl.col("end_time").max(), (ARRIVAL + RUNTIME).max())).item()
    begun = pl.coalesce("start_time", "submit_time")
    tasks = tasks.with_columns(
        ARRIVAL,
        pl.when(pl.col("is_running") & RUNTIME.is_null())
        .then((pl.lit(last, pl.Float64) - begun).clip(0.0))
        .otherwise(RUNTIME)
        .alias("runtime"),
    )
    no_arrival = pl.col("arrival_time").is_null()
    no_runtime = pl.col("runtime").is_null() & ~no_arrival
    counts = tasks.select(no_arrival.sum().alias("no arrival time"), no_runtime.sum().alias("no duration"))
    left_out = {k: int(v) for k, v in counts.row(0, named=True).items() if v}
    return tasks.filter(~no_arrival & ~no_runtime), left_out


def _with_requests(tasks: pl.DataFrame, share: str, predict: str) -> pl.DataFrame:
    if share not in ("fraction", "exclusive"):
        raise UserError(f"unknown way of sharing '{share}'; known: fraction, exclusive")
    if predict not in ("oracle", "requested"):
        raise UserError(f"unknown prediction '{predict}'; known: oracle, requested")
    whole = pl.lit(WHOLE_GPU_MILLI, pl.Int64)
    milli = pl.col("gpu_milli").cast(pl.Int64).fill_null(whole)
    if share == "exclusive":
        milli = whole
    count = pl.col("gpu_count").fill_null(0).cast(pl.Int64)
    milli = pl.when((count > 0) & (milli > 0)).then(milli).otherwise(0)
    return tasks.with_columns(
        pl.when(milli > 0).then(count).otherwise(0).alias("gpu_count"),
        milli.alias("gpu_milli"),
        *(
            pl.col(c).cast(pl.Int64).fill_null(0)
            for c in ("cpu_milli", "memory_mib", "disk_mib", "rdma_percent", "gpu_memory_mib")
        ),
        pl.col("gpu_models_allowed").fill_null(""),
        pl.col("max_per_node").fill_null(_NO_LIMIT).cast(pl.Int64),
        pl.when(pl.col("max_per_node").is_not_null())
        .then(pl.coalesce("application", "job_id"))
        .otherwise(pl.lit(""))
        .alias("limited_application"),
        (pl.coalesce("requested_seconds", "runtime") if predict == "requested" else pl.col("runtime")).alias(
            "predicted"
        ),
    )


def _number_requests(tasks: pl.DataFrame, models: tuple[str, ...]) -> tuple[Requests, pl.DataFrame]:
    kinds = tasks.select(_REQUEST).unique(maintain_order=True).with_row_index("request")
    tasks = tasks.join(kinds, on=list(_REQUEST), how="left", maintain_order="left")
    allowed = np.ones((kinds.height, len(models)), np.bool_)
    for row, text in enumerate(kinds["gpu_models_allowed"]):
        if text:
            names = set(text.split("|"))
            # GPUs of no stated model count as any model.
            allowed[row] = [m in names or m == "" for m in models]
    applications = {name: i for i, name in enumerate(kinds["limited_application"].unique(maintain_order=True).drop_nulls())
                    if name}
    numbering = {name: i for i, name in enumerate(applications)}
    column = {name: kinds[name].to_numpy().astype(np.int64) for name in (*_AMOUNTS, "max_per_node")}
    return (
        Requests(
            cpu=column["cpu_milli"],
            memory=column["memory_mib"],
            disk=column["disk_mib"],
            rdma=column["rdma_percent"],
            gpu_count=column["gpu_count"].astype(np.int32),
            gpu_milli=column["gpu_milli"].astype(np.int32),
            gpu_memory=column["gpu_memory_mib"],
            allowed=allowed,
            max_per_node=column["max_per_node"].astype(np.int32),
            application=np.array([numbering.get(a, -1) for a in kinds["limited_application"]], np.int32),
        ),
        tasks,
    )


def _assemble(tasks: pl.DataFrame, requests: Requests, models: tuple[str, ...], left_out: dict[str, int]) -> Workload:
    size = pl.col("instances").cast(pl.Int64)
    tasks = tasks.with_columns((pl.col("request").cast(pl.Int64) * (1 << 32) + size).alias("group_code"))
    if tasks["job_id"].n_unique() == tasks.height:
        jobs = tasks.with_columns(pl.concat_list("group_code").alias("groups"))
    else:
        jobs = tasks.group_by("job_id", maintain_order=True).agg(
            pl.col("arrival_time").min(), pl.col("runtime").max(), pl.col("predicted").max(),
            pl.col("priority").max(), pl.coalesce("tenant", "user").first().alias("tenant"),
            pl.col("user").first(), pl.col("group_code").sort().alias("groups"),
            (size * pl.col("gpu_count") * pl.col("gpu_milli")).sum().alias("gpu_total"),
        )
    if "gpu_total" not in jobs.columns:
        jobs = jobs.with_columns((size * pl.col("gpu_count") * pl.col("gpu_milli")).alias("gpu_total"))
    jobs = jobs.sort("arrival_time", "job_id", maintain_order=True)
    kinds = jobs.select("groups").unique(maintain_order=True).with_row_index("shape")
    jobs = jobs.join(kinds, on="groups", how="left", maintain_order="left")
    lengths = kinds["groups"].list.len().to_numpy()
    codes = kinds["groups"].explode().to_numpy()
    shapes = Shapes(
        first=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32),
        request=(codes >> 32).astype(np.int32),
        size=(codes & 0xFFFFFFFF).astype(np.int32),
    )
    shape = jobs["shape"].to_numpy().astype(np.int32)
    per_shape = np.add.reduceat(shapes.size.astype(np.int64), shapes.first[:-1])
    first_slot = np.concatenate([[0], np.cumsum(per_shape[shape])[:-1]]).astype(np.int64)
    tenant = jobs.select(pl.coalesce("tenant", "user", pl.lit("everyone")).alias("tenant"))["tenant"]
    names = tenant.unique(maintain_order=True)
    numbering = pl.DataFrame({"tenant": names}).with_row_index("number")
    tenant_number = tenant.to_frame().join(numbering, on="tenant", how="left", maintain_order="left")["number"]
    floats = {c: jobs[c].cast(pl.Float64).to_numpy().copy() for c in ("arrival_time", "runtime", "predicted", "gpu_total")}
    arrays = Jobs(
        submit=floats["arrival_time"], duration=floats["runtime"], predicted=floats["predicted"],
        priority=jobs["priority"].cast(pl.Float64).fill_null(0.0).to_numpy().copy(),
        deadline=np.full(jobs.height, np.inf), gpu_milli=floats["gpu_total"],
        tenant=tenant_number.to_numpy().astype(np.int32), shape=shape, first_slot=first_slot,
        attained=np.zeros(jobs.height),
    )
    return Workload(arrays, shapes, requests, jobs["job_id"], tuple(names.to_list()), models, left_out)
