"""The jobs to run, as record arrays: made from a trace for one cluster.

A job is all tasks of one job id: its groups start together (gang) and it ends when the longest ends. Requests and job
shapes are numbered; jobs of one shape ask for the same.

Lives follow `gputwin.traces.lifetimes`. What ran when the record began is submitted at its beginning, before all others,
and runs for as long as it was seen to from then on: where there is room it holds its place from the first instant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from gputwin.core.errors import UserError
from gputwin.core.units import WHOLE_GPU_MILLI
from gputwin.simulation.engine.state.records import APPLICATIONS, GROUP, JOB, REQUEST, SHAPE, Flags, Records
from gputwin.simulation.predictions import believed
from gputwin.traces.dataset import Trace
from gputwin.traces.lifetimes import observed, with_lives

_AMOUNTS = {
    "cpu": "cpu_milli",
    "memory": "memory_mib",
    "disk": "disk_mib",
    "rdma": "rdma_percent",
    "gpu_count": "gpu_count",
    "gpu_milli": "gpu_milli",
    "gpu_memory": "gpu_memory_mib",
    "max_per_node": "max_per_node",
}
_REQUEST = (*_AMOUNTS.values(), "gpu_models_allowed", "limited_application")
_NO_LIMIT = -1
_EVERYONE, _UNKNOWN = "everyone", "unknown"
"""Who has jobs without a tenant: all, where no job has one."""


@dataclass(frozen=True)
class Workload:
    """Jobs in order of submission with their shapes and requests, and the names behind the numbers."""

    jobs: Records
    shapes: Records
    groups: Records
    requests: Records
    allowed: Flags
    """[request, model]: where it may run."""
    job_ids: pl.Series
    tenants: tuple[str, ...]
    models: tuple[str, ...]
    left_out: dict[str, int]
    """Why tasks of the trace are not simulated, and how many."""
    older: Flags | None = None
    """[job]: it ran when the record began; None: no job did."""
    window: tuple[float, float] | None = None
    """s; averages over time are taken between these; None: from the first to the last submission."""
    constraints: tuple[str, ...] = ()
    """What each request says of GPU models, as written; none: nothing was written."""
    kinds: NDArray[np.int64] | None = None
    """[job]: type of job, where speeds depend on it."""
    forms: Records | None = None
    """[shape] FORM, where jobs may take several shapes; None: each job has one."""
    asked_instances: NDArray[np.int64] | None = None
    """[job]: instances it asked for, where its shape says something else."""
    most_instances: NDArray[np.int64] | None = None
    """[job]: instances it may have at most, where its shape says something else."""
    tenants_are: str = "tenant"
    """Column of the trace that names its tenants: user, where it names no tenant at all."""

    @property
    def size(self) -> int:
        """Return the number of jobs."""
        return int(self.jobs.size)

    @property
    def slots(self) -> int:
        """Return the number of instances of all jobs."""
        most = self.shapes["instances"][self.jobs["shape"]] if self.most_instances is None else self.most_instances
        return int(most.sum(dtype=np.int64))

    @property
    def span(self) -> tuple[float, float]:
        """Return the two times between which averages over time are taken, s."""
        submit = self.jobs["submit"]
        return (float(submit[0]), float(submit[-1])) if self.window is None else self.window

    @property
    def was_running(self) -> Flags:
        """Return which jobs ran when the record began; they come first."""
        flags = np.zeros(self.size, np.bool_)
        if self.older is not None:
            count = min(self.size, self.older.size)
            flags[:count] = self.older[:count]
        return flags

    def waits_not(self, start: NDArray[np.float64]) -> Flags:
        """Return which jobs have no wait to speak of: they ran when the record began and hold their place from then on."""
        return np.asarray(self.was_running & (start <= self.jobs["submit"]))


def workload_of(
    trace: Trace, models: Sequence[str], *, share: str = "fraction", predict: str | pl.DataFrame = "oracle"
) -> Workload:
    """Return the trace's jobs as arrays, for a cluster with these GPU models.

    `share` 'exclusive' rounds shares of a GPU up to whole devices. `predict` says what the scheduler believes:
    'oracle' (the truth), 'requested' (the time limit asked for; a task without one is believed to run as long as the
    longest limit of the trace), or a frame of predictions (`job_id`, `role`, `predicted_seconds`) that has a row for
    every task.
    """
    window = observed(trace.tasks)
    tasks, left_out = _simulated(with_lives(trace.tasks, window))
    if tasks.is_empty():
        raise UserError("the trace has no task with a known arrival and duration, so there is nothing to simulate")
    tasks = _with_requests(tasks, share, predict)
    # Numbered by what they ask for, so that neither names nor the order of rows matter.
    kinds = tasks.select(_REQUEST).unique().sort(_REQUEST).with_row_index("request")
    tasks = tasks.join(kinds, on=list(_REQUEST), how="left", maintain_order="left")
    requests, allowed = _requests(kinds, tuple(models))
    jobs, groups = _jobs(tasks)
    shapes = _shapes(groups)
    names = jobs["tenant"].unique(maintain_order=True)
    return Workload(
        _job_records(jobs, names, shapes),
        shapes,
        _group_records(groups),
        requests,
        allowed,
        jobs["job_id"],
        tuple(names.to_list()),
        tuple(models),
        left_out,
        jobs["was_running"].to_numpy() if jobs["was_running"].any() else None,
        (window.begin, window.until),
        tuple(kinds["gpu_models_allowed"]),
        tenants_are=tenant_column(trace.tasks),
    )


def _simulated(tasks: pl.DataFrame) -> tuple[pl.DataFrame, dict[str, int]]:
    """Return the tasks that can be simulated; ones alive at the end run until then."""
    no_arrival = pl.col("asked_from").is_null()
    no_runtime = pl.col("held_seconds").is_null() & ~no_arrival
    counts = tasks.select(no_arrival.sum().alias("no arrival time"), no_runtime.sum().alias("no duration"))
    left_out = {k: int(v) for k, v in counts.row(0, named=True).items() if v}
    known = tasks.filter(~no_arrival & ~no_runtime)
    return known.rename({"asked_from": "arrival_time", "held_seconds": "runtime"}), left_out


def with_load(workload: Workload, scale: float) -> Workload:
    """Return the same jobs arriving `scale` times as fast, and the window of averages drawn together with them."""
    if scale == 1.0:
        return workload
    jobs = workload.jobs.copy()
    first = jobs["submit"][0]
    jobs["submit"] = first + (jobs["submit"] - first) / scale
    begin, until = (float(first + (time - first) / scale) for time in workload.span)
    return replace(workload, jobs=jobs, window=(begin, until))


def tenant_column(tasks: pl.DataFrame) -> str:
    """Return the column that names the tenants: user where no task names a tenant, never a mixture of both."""
    named = (name for name in ("tenant", "user") if tasks[name].is_not_null().any())
    return next(named, "tenant")


def _with_requests(tasks: pl.DataFrame, share: str, predict: str | pl.DataFrame) -> pl.DataFrame:
    if share not in ("fraction", "exclusive"):
        raise UserError(f"unknown way of counting shares '{share}'; known: fraction, exclusive")
    whole = pl.lit(WHOLE_GPU_MILLI, pl.Int64)
    count = pl.col("gpu_count").fill_null(0).cast(pl.Int64)
    milli = whole if share == "exclusive" else pl.col("gpu_milli").cast(pl.Int64).fill_null(whole)
    asks = (count > 0) & (pl.col("gpu_milli").fill_null(WHOLE_GPU_MILLI) > 0)
    column = tenant_column(tasks)
    nobody = _UNKNOWN if tasks[column].is_not_null().any() else _EVERYONE
    return tasks.with_columns(
        pl.when(asks).then(count).otherwise(0).alias("gpu_count"),
        pl.when(asks).then(milli).otherwise(0).alias("gpu_milli"),
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
        believed(tasks, predict).alias("predicted"),
        pl.col(column).fill_null(nobody).alias("tenant"),
        pl.col("priority").cast(pl.Float64).fill_null(0.0),
    )


def _requests(kinds: pl.DataFrame, models: tuple[str, ...]) -> tuple[Records, Flags]:
    """Return the numbered requests and where each may run; applications with a limit get a column of residents."""
    requests = np.zeros(kinds.height, REQUEST)
    for name, column in _AMOUNTS.items():
        requests[name] = kinds[column].to_numpy()
    applications = [a for a in kinds["limited_application"].unique(maintain_order=True) if a]
    column_of = {name: APPLICATIONS + i for i, name in enumerate(applications)}
    requests["application"] = [column_of.get(a, -1) for a in kinds["limited_application"]]
    allowed = np.ones((kinds.height, len(models)), np.bool_)
    for row, text in enumerate(kinds["gpu_models_allowed"]):
        if text:
            names = set(text.split("|"))
            # GPUs of no stated model count as any model.
            allowed[row] = [m in names or m == "" for m in models]
    return requests, allowed


def _jobs(tasks: pl.DataFrame) -> tuple[pl.DataFrame, pl.Series]:
    """Return one row per job in order of submission, numbered by shape, and the groups of each shape."""
    size = pl.col("instances").cast(pl.Int64)
    tasks = tasks.with_columns(
        (pl.col("request").cast(pl.Int64) * (1 << 32) + size).alias("groups"),
        (size * pl.col("gpu_count") * pl.col("gpu_milli")).alias("gpu_total"),
    )
    if tasks["job_id"].n_unique() == tasks.height:
        # Grouping by equal lists is slow, so jobs of one task are numbered by their code.
        jobs = _in_order(tasks)
        kinds = jobs.select("groups").unique(maintain_order=True).with_row_index("shape")
        jobs = jobs.join(kinds, on="groups", how="left", maintain_order="left")
        return jobs, kinds.select(pl.concat_list("groups"))["groups"]
    jobs = (
        tasks.group_by("job_id", maintain_order=True)
        .agg(
            pl.col("arrival_time").min(),
            pl.col("runtime", "predicted", "priority").max(),
            pl.col("was_running").any(),
            pl.col("tenant").first(),
            pl.col("groups").sort(),
            pl.col("gpu_total").sum(),
        )
        .pipe(_in_order)
        .with_columns(pl.col("groups").cast(pl.List(pl.String)).list.join(",").alias("code"))
    )
    kinds = jobs.select("code", "groups").unique("code", maintain_order=True).with_row_index("shape")
    jobs = jobs.join(kinds.select("code", "shape"), on="code", how="left", maintain_order="left")
    return jobs, kinds["groups"]


def _in_order(jobs: pl.DataFrame) -> pl.DataFrame:
    """Return the jobs in order of submission; what ran already goes before what comes at the same time."""
    return jobs.sort("arrival_time", ~pl.col("was_running"), "job_id", maintain_order=True)


def _shapes(groups: pl.Series) -> Records:
    shapes = np.zeros(groups.len(), SHAPE)
    shapes["groups"] = groups.list.len().to_numpy()
    shapes["first_group"] = np.cumsum(shapes["groups"]) - shapes["groups"]
    sizes = groups.explode().to_numpy() & 0xFFFFFFFF
    shapes["instances"] = np.add.reduceat(sizes, shapes["first_group"])
    return shapes


def _group_records(groups: pl.Series) -> Records:
    codes = groups.explode().to_numpy()
    records = np.zeros(codes.size, GROUP)
    records["request"] = codes >> 32
    records["size"] = codes & 0xFFFFFFFF
    return records


def _job_records(jobs: pl.DataFrame, tenants: pl.Series, shapes: Records) -> Records:
    records = np.zeros(jobs.height, JOB)
    for name, column in (
        ("submit", "arrival_time"),
        ("duration", "runtime"),
        ("predicted", "predicted"),
        ("priority", "priority"),
        ("gpu_milli", "gpu_total"),
        ("shape", "shape"),
    ):
        records[name] = jobs[column].to_numpy()
    numbered = pl.DataFrame({"tenant": tenants}).with_row_index("number")
    records["tenant"] = jobs.select("tenant").join(numbered, on="tenant", how="left", maintain_order="left")["number"]
    records["deadline"] = np.inf
    instances = shapes["instances"][records["shape"]].astype(np.int64)
    records["first_slot"] = np.cumsum(instances) - instances
    return records
