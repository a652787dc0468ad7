"""Tasks: what the task table plans, with the submit time and user of their job and the tags of its group.

`inst_id` stands for a job, not for an instance. Here it joins group tags to jobs and nothing else: joining instances to
sensors on it makes 36.7 million rows of 1.6 million.
"""

from __future__ import annotations

import polars as pl

from gputwin.core.units import CORE_MILLI, MIB_PER_GIB, WHOLE_GPU_MILLI
from gputwin.traces.quality import QualityLog
from gputwin.traces.readers.pai2020.tables import (
    GROUP_TAG,
    IS_RUNNING,
    JOB,
    TASK,
    Published,
    gpu_model,
    with_status,
)
from gputwin.traces.schema import DEFAULT_ROLE, STATUS, Status
from gputwin.traces.tabular import CsvKind

_NAMES = ("job_name", "task_name")
_TASK = ("job_id", "role")
_TOLD_BY_JOB = ("user", "group", "workload")
_ROUNDING_MILLI = 1e-6
# A task is not over before its last instance is, and only as good as the worst of them.
_WORST_FIRST = (Status.RUNNING, Status.WAITING, Status.FAILED, Status.CANCELLED, Status.UNKNOWN)


def tasks_of(published: Published, joined: pl.DataFrame, instances: pl.DataFrame | None) -> pl.DataFrame:
    """Return the tasks. `instances` stands in for an absent task table, and for an absent job table gives `inst_id`."""
    quality = published.quality
    of_table = with_status(published.frame(TASK), TASK, quality)
    of_sample = joined.join(of_table, on=_NAMES, how="anti", maintain_order="left").unique(
        _NAMES, keep="first", maintain_order=True
    )
    tasks = pl.concat([_planned(of_table, quality), _planned(of_sample, quality)], how="diagonal")
    if instances is not None and not published.has(TASK):
        derived = _from_instances(instances).join(tasks, on=_TASK, how="anti", maintain_order="left")
        tasks = pl.concat([tasks, derived], how="diagonal")
    if published.has(JOB):
        jobs = _jobs(published)
        alone = jobs.join(tasks, on="job_id", how="anti", maintain_order="left")
        tasks = pl.concat([tasks, _from_jobs(alone)], how="diagonal")
    else:
        jobs = _jobs_behind(instances).join(tasks, on="job_id", how="semi")
    tags = _tags(published, jobs)
    told_by_job = jobs.join(tags, on="inst_id", how="left", suffix="_tag").select(
        "job_id",
        "submit_time",
        pl.coalesce("user", "user_tag").alias("job_user"),
        pl.col("group").alias("job_group"),
        pl.col("workload").alias("job_workload"),
        "gpu_models_allowed",
    )
    return (
        tasks.join(told_by_job, on="job_id", how="left", maintain_order="left")
        .with_columns(pl.coalesce(f"job_{c}", c).alias(c) for c in _TOLD_BY_JOB)
        .with_columns((pl.col("end_time") - pl.col("start_time")).alias("duration_seconds"))
        .drop(f"job_{c}" for c in _TOLD_BY_JOB)
    )


def _planned(frame: pl.DataFrame, quality: QualityLog) -> pl.DataFrame:
    """Return tasks with their requests; a GPU request that its devices cannot share evenly is rounded (rule F10)."""
    percent = pl.col("plan_gpu").fill_null(0)
    devices = pl.when(percent == 0).then(0).otherwise(pl.max_horizontal((percent / 100).ceil(), 1))
    share = pl.when(percent == 0).then(0).otherwise((percent * WHOLE_GPU_MILLI / 100 / devices).round())
    tasks = frame.select(
        "_row",
        "plan_gpu",
        pl.col("job_name").alias("job_id"),
        pl.col("task_name").alias("role"),
        *(pl.col(c) if c in frame.columns else pl.lit(None, pl.String).alias(c) for c in _TOLD_BY_JOB),
        "status",
        "start_time",
        "end_time",
        IS_RUNNING,
        pl.col("inst_num").alias("instances"),
        (pl.col("plan_cpu") * CORE_MILLI / 100).round().alias("cpu_milli"),
        (pl.col("plan_mem") * MIB_PER_GIB).round().alias("memory_mib"),
        devices.alias("gpu_count"),
        share.alias("gpu_milli"),
        gpu_model("gpu_type"),
    )
    given = pl.col("gpu_count") * pl.col("gpu_milli")
    uneven = tasks.filter((given - percent * WHOLE_GPU_MILLI / 100).abs() > _ROUNDING_MILLI)
    quality.find("F10", "tasks", uneven.height, detail="plan_gpu", examples=uneven.select("_row", *_TASK, "plan_gpu"))
    return tasks.drop("plan_gpu")


def _from_instances(instances: pl.DataFrame) -> pl.DataFrame:
    """Return the tasks that instances belong to; what they asked for is unknown."""
    named = instances.filter(pl.col("job_id").is_not_null())
    worst = [pl.when((pl.col("status") == s).any()).then(pl.lit(s, STATUS)) for s in _WORST_FIRST]
    all_ended = pl.col("end_time").is_not_null().all()
    return (
        named.group_by(_TASK, maintain_order=True)
        .agg(
            pl.coalesce(*worst, pl.lit(Status.COMPLETED, STATUS)).alias("status"),
            pl.col("start_time").min(),
            pl.when(all_ended).then(pl.col("end_time").max()),
            pl.col("instance_id").n_unique().cast(pl.Float64).alias("instances"),
        )
        .with_columns(IS_RUNNING)
    )


def _from_jobs(jobs: pl.DataFrame) -> pl.DataFrame:
    """Return a task for each job that has none in the trace. A job's end is not used: nobody knows when it started."""
    return jobs.select("job_id", pl.lit(DEFAULT_ROLE).alias("role"), "status", IS_RUNNING)


def _jobs(published: Published) -> pl.DataFrame:
    """Return the jobs of the job table. What it calls a job's start is when it was submitted."""
    quality = published.quality
    jobs = _distinct(published.frame(JOB), "job_name", JOB, quality)
    return with_status(jobs, JOB, quality).rename({"job_name": "job_id", "start_time": "submit_time"}).drop("_row")


def _jobs_behind(instances: pl.DataFrame | None) -> pl.DataFrame:
    """Return the jobs that instances name, with nothing but their `inst_id`."""
    names = pl.DataFrame(schema={"job_id": pl.String, "inst_id": pl.String})
    if instances is not None:
        names = instances.select("job_id", "inst_id").drop_nulls().unique("job_id", keep="first", maintain_order=True)
    return names.with_columns(pl.lit(None, pl.Float64).alias("submit_time"), pl.lit(None, pl.String).alias("user"))


def _tags(published: Published, jobs: pl.DataFrame) -> pl.DataFrame:
    """Return the group tags of `jobs`, one row per `inst_id`; tags of other jobs are dropped (rule F07)."""
    tags = published.frame(GROUP_TAG)
    strays = tags.join(jobs, on="inst_id", how="anti", maintain_order="left")
    published.quality.find("F07", GROUP_TAG.stem, strays.height, examples=strays.select("_row", "inst_id"))
    ours = tags.join(jobs, on="inst_id", how="semi", maintain_order="left") if strays.height else tags
    return _distinct(ours, "inst_id", GROUP_TAG, published.quality).select(
        "inst_id", "user", "group", "workload", pl.col("gpu_type_spec").alias("gpu_models_allowed")
    )


def _distinct(frame: pl.DataFrame, key: str, kind: CsvKind, quality: QualityLog) -> pl.DataFrame:
    """Return the frame with one row per key: rows without one (rule Q01) and later rows of the same (Q02) go."""
    nameless = frame[key].is_null()
    quality.find("Q01", kind.stem, int(nameless.sum()), detail=key, examples=frame.select("_row").filter(nameless))
    named = frame.filter(~nameless) if nameless.any() else frame
    first = named[key].is_first_distinct()
    quality.find("Q02", kind.stem, int((~first).sum()), detail=key, examples=named.select("_row", key).filter(~first))
    return named.filter(first) if not first.all() else named
