"""Slurm accounting: the text of `sacct --parsable2` (or `--parsable`) with any of its fields, in any order.

One row becomes one task, except that
- steps (123.batch, 123.0) are folded into their job: they repeat its life and carry no request of their own;
- the parts of a heterogeneous job (123+0, 123+1) are the roles het0, het1 of one job: they start together;
- a pending array (123_[5-9]) becomes one task per number: they need not start together;
- records of one job with different submit times (`sacct --duplicates`) are its attempts after requeues; with the
  same submit time they are copies of one record, and the most advanced is kept.

An instance is a node: totals of the request are divided by the nodes it got (asked for, while pending) and rounded
up. A type of GPU that is a MIG profile (gres/gpu:1g.5gb) is a share of a GPU and no model; where only what a job was given
names the profile, that counts. The tenant is the account, or the partition where there is none; an array's number is the
group of its tasks.
`sacct` prints local time without naming its zone. It is read in the zone that is given, else as UTC: then differences are
right except across a clock change. With SLURM_TIME_FORMAT=%s the times are Unix seconds, and exact.

`squeue --Format` with "|" after each field is read alike; the start it foresees for a pending job, and the end for a
running one, are not taken for what happened.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from gputwin.core.errors import InputError
from gputwin.traces.quality import QualityLog
from gputwin.traces.reader import READERS, Clock, Draft, Input, Reader
from gputwin.traces.readers.slurm import fields
from gputwin.traces.readers.slurm.request import with_request
from gputwin.traces.schema import DEFAULT_ROLE, Status
from gputwin.traces.sources import Source

_FAILED = ("FAILED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "BOOT_FAIL", "DEADLINE", "LAUNCH_FAILED", "RECONFIG_FAIL")
_CANCELLED = ("CANCELLED", "PREEMPTED", "REVOKED")
_RUNNING = ("RUNNING", "COMPLETING", "SUSPENDED", "RESIZING", "SIGNALING", "STAGE_OUT", "STOPPED", "UPDATE_DB")
_WAITING = (
    "PENDING",
    "CONFIGURING",
    "POWER_UP_NODE",
    "REQUEUED",
    "REQUEUE_FED",
    "REQUEUE_HOLD",
    "RESV_DEL_HOLD",
    "SPECIAL_EXIT",
)
_STATUS = {
    "COMPLETED": Status.COMPLETED,
    **dict.fromkeys(_FAILED, Status.FAILED),
    **dict.fromkeys(_CANCELLED, Status.CANCELLED),
    **dict.fromkeys(_RUNNING, Status.RUNNING),
    **dict.fromkeys(_WAITING, Status.WAITING),
}
_MOST_ROWS = 20_000_000
_KEY = ("job_id", "role")
_PLACE = ("_file", "_row")


def _with_identity(frame: pl.DataFrame, source: Source, quality: QualityLog) -> pl.DataFrame:
    """Return the jobs' own rows with job, role and group; step rows are folded away."""
    is_bad = ~frame["JobID"].str.contains(fields.JOB_ID).fill_null(False)
    fields.check(frame, "JobID", is_bad, "is not a job id", source, quality)
    nameless = frame.filter(is_bad)
    quality.find("Q01", "tasks", nameless.height, examples=nameless.select("_row", "JobName", "Submit"))
    number, task, part, step = (pl.col("JobID").str.extract(fields.JOB_ID, i) for i in (1, 2, 3, 4))
    frame = frame.filter(~is_bad).with_columns(
        pl.concat_str(number, task, separator="_", ignore_nulls=True).alias("job_id"),
        (pl.lit("het") + part).fill_null(DEFAULT_ROLE).alias("role"),
        pl.when(task.is_not_null()).then(number).alias("group"),
        pl.col("JobID").str.split(".").list.first().alias("_allocation"),
        step.is_not_null().alias("_is_step"),
    )
    jobs, steps = frame.filter(~pl.col("_is_step")), frame.filter("_is_step")
    orphans = steps.join(jobs, on=["Cluster", "_allocation"], how="anti", nulls_equal=True)
    quality.find(
        "F07", "tasks", orphans.height, detail="step without its job", examples=orphans.select("_row", "JobID")
    )
    return jobs


def _with_life(jobs: pl.DataFrame, source: Source, quality: QualityLog, zone: str) -> pl.DataFrame:
    """Return the records with status, times and the time each ran."""
    state = jobs["State"].str.extract("^([A-Za-z_]+)").str.to_uppercase()
    strange = jobs.filter(state.is_not_null() & ~state.is_in(list(_STATUS)))
    quality.find("F08", "tasks", strange.height, detail="State", examples=strange.select("_row", "State"))
    jobs = jobs.with_columns(
        state.replace_strict(_STATUS, default=Status.UNKNOWN, return_dtype=pl.String).alias("status")
    )
    for name in ("Submit", "Start", "End"):
        jobs = jobs.with_columns(fields.times(jobs, name, source, quality, zone).alias(name))
    is_running = pl.col("status") == Status.RUNNING
    # A record that ended in a requeue is waiting again, but it has run.
    is_waiting = (pl.col("status") == Status.WAITING) & ~pl.col("State").str.starts_with("REQUEUED")
    # Older Slurm gives a job cancelled in the queue a start: the moment it was cancelled.
    began = ~is_waiting & (pl.col("NodeList") != "None assigned").fill_null(True)
    elapsed = pl.coalesce("ElapsedRaw", "Elapsed", pl.col("End") - pl.col("Start"))
    return jobs.with_columns(
        fields.numbers(jobs, "ElapsedRaw", source, quality),
        fields.durations(jobs, "Elapsed", source, quality),
    ).with_columns(
        pl.col("Submit").alias("submit_time"),
        pl.when(began).then("Start").alias("start_time"),
        pl.when(~is_running & ~is_waiting).then("End").alias("end_time"),
        pl.when(began & ~is_running).then(elapsed).alias("duration_seconds"),
        (is_running & pl.col("Start").is_not_null()).alias("is_running"),
    )


def _without_copies(records: pl.DataFrame, quality: QualityLog) -> pl.DataFrame:
    """Return one record per job, role and submit time: the most advanced one."""
    ranked = records.sort(
        pl.col("end_time").is_not_null(), pl.col("start_time").is_not_null(), "_file", "_row", maintain_order=True
    ).with_columns(pl.coalesce("submit_time", "start_time").alias("_since"))
    kept = ranked.unique((*_KEY, "_since"), keep="last", maintain_order=True)
    # A pending array is one row of the file: it is lost only when none of its tasks is left.
    lost = records.unique(_PLACE, maintain_order=True).join(kept, on=_PLACE, how="anti")
    quality.find("Q02", "tasks", lost.height, detail="copies of a record", examples=lost.select("_row", "JobID"))
    return kept


def _with_array_tasks(jobs: pl.DataFrame, source: Source, quality: QualityLog) -> pl.DataFrame:
    """Return the records with each pending array in the form of its tasks."""
    is_range = jobs["job_id"].str.contains("[", literal=True).fill_null(False)
    ranges = jobs.filter(is_range)
    if ranges.is_empty():
        return jobs
    names, cut = fields.array_numbers(ranges, source, quality)
    unread = ranges.filter(names.is_null())
    quality.find("Q01", "tasks", unread.height, examples=unread.select("_row", "JobID"))
    quality.find("F24", "tasks", int(cut.sum()), examples=ranges.filter(cut).select("_row", "JobID"))
    _check_size(names, source)
    stem = pl.col("job_id").str.extract(r"^([^\[]*)", 1)
    tasks = ranges.with_columns(names.alias("_task")).drop_nulls("_task").explode("_task")
    tasks = tasks.with_columns((stem + pl.col("_task")).alias("job_id"))
    return pl.concat([jobs.filter(~is_range), tasks.select(jobs.columns)])


def _check_size(names: pl.Series, source: Source) -> None:
    if int(names.list.len().sum() or 0) > _MOST_ROWS:
        raise InputError(
            f"its ranges name more than {_MOST_ROWS:,} tasks or hosts", file=source.label, remedy="check the export"
        )


def _tasks(records: pl.DataFrame) -> pl.DataFrame:
    """Return one row per job and role from its records, which are its attempts in order."""
    starts = pl.col("start_time").count()
    is_over = ~pl.col("is_running").last() & (pl.col("status").last() != Status.WAITING)
    of_the_last = (
        "application",
        "group",
        "user",
        "tenant",
        "qos",
        "priority",
        "status",
        "end_time",
        "requested_seconds",
        "is_running",
        "instances",
        "cpu_milli",
        "memory_mib",
        "gpu_count",
        "gpu_milli",
        "gpu_memory_mib",
        "gpu_models_allowed",
        "gpu_model",
    )
    return records.group_by(*_KEY, maintain_order=True).agg(
        pl.col("_row").first(),
        pl.col("submit_time").first(),
        pl.col("start_time").drop_nulls().first(),
        pl.when(is_over & pl.col("duration_seconds").is_not_null().any())
        .then(pl.col("duration_seconds").sum())
        .alias("duration_seconds"),
        pl.when(starts > 0).then(pl.max_horizontal(starts, pl.col("Restarts").last() + 1)).alias("attempts"),
        *(pl.col(name).last() for name in of_the_last),
    )


def _instances(records: pl.DataFrame) -> pl.DataFrame:
    """Return the nodes of each attempt; a node of a job that ran more than once is named after its attempt too."""
    attempt = pl.int_range(1, pl.len() + 1, dtype=pl.Int64).over(*_KEY)
    named_after_attempt = pl.format("{}/{}", "_attempt", "node_id")
    return (
        records.rename({"hosts": "node_id"})
        .filter(pl.col("start_time").is_not_null())
        .with_columns(attempt.alias("_attempt"), pl.len().over(*_KEY).alias("_attempts"))
        .drop_nulls("node_id")
        .explode("node_id")
        .select(
            "_row",
            *_KEY,
            pl.when(pl.col("_attempts") > 1).then(named_after_attempt).otherwise("node_id").alias("instance_id"),
            "status",
            "submit_time",
            "start_time",
            "end_time",
            "is_running",
            "node_id",
        )
    )


def _records(source: Source, number: int, quality: QualityLog, zone: str) -> pl.DataFrame:
    """Return the records of one file in canonical columns, and the nodes of each as `hosts`."""
    jobs = _with_life(_with_identity(fields.read_table(source, quality), source, quality), source, quality, zone)
    jobs = jobs.with_columns(fields.hosts(jobs, source, quality).alias("hosts"), pl.lit(number).alias("_file"))
    _check_size(jobs["hosts"], source)
    return _with_array_tasks(with_request(jobs, source, quality), source, quality)


def read(inputs: Sequence[Input], quality: QualityLog, zone: str = "UTC") -> Draft:
    """Return the tasks and, where the files list nodes, the instances of one or more `sacct` texts."""
    records = pl.concat([_records(item.source, i, quality, zone) for i, item in enumerate(inputs)])
    if records.is_empty():
        raise InputError(
            "steps but no jobs", file=inputs[0].source.label, remedy="export the jobs, with or without their steps"
        )
    if records["Cluster"].n_unique() > 1:
        qualified = pl.concat_str("Cluster", "job_id", separator="/", ignore_nulls=True)
        records = records.with_columns(qualified.alias("job_id"))
    in_order = _without_copies(records, quality).sort("_since", "_file", "_row", nulls_last=True)
    tables = {"tasks": _tasks(in_order)}
    if any("NodeList" in fields.present(item.source) for item in inputs):
        tables["instances"] = _instances(in_order)
    return Draft(tables, Clock.ABSOLUTE, zone)


READER = READERS.add(Reader("slurm", "Slurm accounting (sacct)", (), read, fields.recognise, read))
