"""The publisher's Philly job log (`cluster_job_log`): a JSON list of jobs, each with its scheduling attempts.

A job's shape is that of its first attempt that lists GPUs, as in the publisher's own notebook. Where it spread
unevenly over nodes (4 + 2 + 2 GPUs), an instance is the largest share that divides every node's part (4 × 2).
A job ran for the sum of its attempts; time between them is not counted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import polars as pl

from gputwin.core.errors import InputError
from gputwin.traces.document import Item, read_json
from gputwin.traces.quality import QualityLog
from gputwin.traces.schema import Status
from gputwin.traces.sources import Source
from gputwin.traces.walltime import to_unix_seconds

_STATUS = {"Pass": Status.COMPLETED, "Killed": Status.CANCELLED, "Failed": Status.FAILED}
_NO_TIME = ("", "None")


@dataclass
class _Rows:
    """The log as flat rows: jobs, their attempts, and the share of each attempt on each node."""

    jobs: list[tuple[object, ...]] = field(default_factory=list)
    attempts: list[tuple[object, ...]] = field(default_factory=list)
    shares: list[tuple[object, ...]] = field(default_factory=list)


_JOBS = {
    "_row": pl.UInt32,
    "job_id": pl.String,
    "status": pl.String,
    "tenant": pl.String,
    "user": pl.String,
    "submit_time": pl.String,
    "attempts": pl.Int32,
    "instances": pl.Int64,
    "gpu_count": pl.Int64,
}
_ATTEMPTS = {"_row": pl.UInt32, "attempt": pl.Int32, "start_time": pl.String, "end_time": pl.String}
_SHARES = {"_row": pl.UInt32, "attempt": pl.Int32, "node_id": pl.String, "share": pl.Int32}


def looks_like_log(source: Source) -> bool:
    """Return whether the file starts like a list of Philly jobs."""
    head = source.head.removeprefix(b"\xef\xbb\xbf").lstrip()
    return head.startswith(b"[") and b'"jobid"' in head and b'"attempts"' in head


def read_log(source: Source, zone: str, quality: QualityLog) -> dict[str, pl.DataFrame]:
    """Return the tasks, and the instances of each attempt, of a job log whose times are wall times of `zone`."""
    jobs = read_json(source)
    if not isinstance(jobs, list) or not jobs:
        raise InputError("expected a list of jobs", file=source.label, remedy="give the publisher's cluster_job_log")
    quality.read(source.label, len(jobs))
    rows = _Rows()
    seen: set[str] = set()
    for i, job in enumerate(jobs):
        _add_job(Item.of(source.label, f"[{i}]", job), i + 1, rows, seen)
    tasks = pl.DataFrame(rows.jobs, schema=_JOBS, orient="row")
    strange = tasks.filter(pl.col("status").is_not_null() & ~pl.col("status").is_in(list(_STATUS)))
    quality.find("F08", "tasks", strange.height, detail="status", examples=strange.select("_row", "status"))
    tasks = tasks.with_columns(pl.col("status").replace_strict(_STATUS, default=Status.UNKNOWN, return_dtype=pl.String))
    tasks = to_unix_seconds(tasks, "submit_time", zone, source.label, quality)
    attempts = pl.DataFrame(rows.attempts, schema=_ATTEMPTS, orient="row")
    for column in ("start_time", "end_time"):
        attempts = to_unix_seconds(attempts, column, zone, source.label, quality)
    tasks = _with_lives(tasks, attempts)
    shares = pl.DataFrame(rows.shares, schema=_SHARES, orient="row")
    return {"tasks": tasks, "instances": _instances(tasks, attempts, shares)}


def _add_job(job: Item, row: int, rows: _Rows, seen: set[str]) -> None:
    job_id = job.text("jobid")
    # A job without an id, or with one used before, is dropped by the rules: its attempts must not remain.
    is_kept = bool(job_id) and job_id not in seen
    seen.add(job_id or "")
    shape: tuple[int, int] | None = None
    count = 0
    for attempt in job.children("attempts"):
        count += 1
        gpus: dict[str, int] = {}
        for detail in attempt.children("detail"):
            node = detail.name("ip")
            gpus[node] = gpus.get(node, 0) + len(detail.texts("gpus"))
        if gpus and shape is None:
            shape = _shape(gpus)
        rows.attempts.append((row, count, _time(attempt, "start_time"), _time(attempt, "end_time")))
        if is_kept and shape is not None:
            # A later attempt may be cut differently; it is listed in shares of the job's size where that works.
            size = shape[1] if all(n % max(shape[1], 1) == 0 for n in gpus.values()) else _shape(gpus)[1]
            for node, n in gpus.items():
                rows.shares.extend((row, count, node, k) for k in range(n // size if size else 1))
    rows.jobs.append(
        (
            row,
            job_id,
            job.text("status"),
            job.text("vc"),
            job.text("user"),
            _time(job, "submitted_time"),
            count,
            shape[0] if shape else None,
            shape[1] if shape else None,
        )
    )


def _shape(gpus: dict[str, int]) -> tuple[int, int]:
    """Return instances and GPUs of each for an attempt that has `gpus` on each node."""
    size = math.gcd(*gpus.values())
    return (sum(gpus.values()) // size, size) if size else (len(gpus), 0)


def _time(item: Item, key: str) -> str | None:
    text = item.text(key)
    return None if text in _NO_TIME else text


def _with_lives(tasks: pl.DataFrame, attempts: pl.DataFrame) -> pl.DataFrame:
    """Return the tasks with the start of the first attempt, the end of the last, and the time running over all."""
    ran = pl.col("end_time") - pl.col("start_time")
    lives = attempts.group_by("_row", maintain_order=True).agg(
        pl.col("start_time").first(),
        pl.col("end_time").last(),
        # Unknown as soon as one attempt's part is: a sum of the rest would be a guess.
        pl.when((ran >= 0).fill_null(False).all()).then(ran.sum()).alias("duration_seconds"),
        (pl.col("start_time").last().is_not_null() & pl.col("end_time").last().is_null()).alias("is_running"),
    )
    return tasks.join(lives, on="_row", how="left", maintain_order="left").with_columns(
        pl.col("is_running").fill_null(False),
        pl.when(pl.col("is_running")).then(pl.lit(Status.RUNNING)).otherwise(pl.col("status")).alias("status"),
    )


def _instances(tasks: pl.DataFrame, attempts: pl.DataFrame, shares: pl.DataFrame) -> pl.DataFrame:
    job = tasks.select("_row", "job_id", "status", "is_running", pl.col("attempts").alias("last"))
    is_last = pl.col("attempt") == pl.col("last")
    return (
        shares.join(attempts, on=["_row", "attempt"], how="left", maintain_order="left")
        .join(job, on="_row", how="left", maintain_order="left")
        .select(
            "_row",
            "job_id",
            pl.format("{}/{}/{}", "attempt", "node_id", "share").alias("instance_id"),
            pl.when(is_last).then(pl.col("status")).otherwise(pl.lit(Status.UNKNOWN)).alias("status"),
            "start_time",
            "end_time",
            (is_last & pl.col("is_running")).alias("is_running"),
            "node_id",
        )
    )
