"""Argonne ThetaGPU 2022–2023: the job log of a DGX A100 system, as the lumos project prepared it.

`gpu_num` equals `node_num` in every row: it counts schedulable units, and whether a unit was one GPU or a whole
node of eight is not given. A unit is read as an instance with one GPU, so GPU demand is a lower bound. `cpu_num` and
`state` are constant zero. User 0 has jobs in 20 projects and project 0 is shared by 13 users: zero is no id, and is
read as unknown.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from gputwin.core.errors import InputError
from gputwin.traces.quality import QualityLog
from gputwin.traces.reader import READERS, Clock, Draft, Input, Reader
from gputwin.traces.schema import Status
from gputwin.traces.tabular import CsvKind, read_csv

JOBS = CsvKind(
    "jobs",
    {
        "job": pl.String,
        "user": pl.String,
        "project": pl.String,
        "gpu_num": pl.Float64,
        "submit_time": pl.Float64,
        "wait_time": pl.Float64,
        "run_time": pl.Float64,
        "wall_time": pl.Float64,
        "new_status": pl.String,
    },
    ignored=frozenset({"state", "cpu_num", "node_num", "node_hour"}),
)
_STATUS = {"Pass": Status.COMPLETED, "Killed": Status.CANCELLED, "Failed": Status.FAILED}


def _number(column: str) -> pl.Expr:
    """Return ids that were written as decimals ("83709710735692.0") without the decimal part; zero is unknown."""
    number = pl.col(column).str.strip_suffix(".0")
    return pl.when(number != "0").then(number)


def _tasks(frame: pl.DataFrame) -> pl.DataFrame:
    start = pl.col("submit_time") + pl.col("wait_time")
    return frame.select(
        "_row",
        "submit_time",
        _number("job").alias("job_id"),
        _number("user").alias("user"),
        _number("project").alias("tenant"),
        pl.col("new_status").replace_strict(_STATUS, default=Status.UNKNOWN, return_dtype=pl.String).alias("status"),
        start.alias("start_time"),
        (start + pl.col("run_time")).alias("end_time"),
        pl.col("run_time").alias("duration_seconds"),
        pl.col("wall_time").alias("requested_seconds"),
        pl.col("gpu_num").alias("instances"),
        pl.lit(1).alias("gpu_count"),
    )


def read(inputs: Sequence[Input], quality: QualityLog) -> Draft:
    """Return the tasks of one job log."""
    if len(inputs) > 1:
        raise InputError("a second job log", file=inputs[1].source.label, remedy="give one")
    frame = read_csv(inputs[0].source, JOBS, quality)
    strange = frame.filter(~pl.col("new_status").is_in(list(_STATUS)))
    quality.find("F08", "tasks", strange.height, detail="new_status", examples=strange.select("_row", "new_status"))
    return Draft({"tasks": _tasks(frame)}, Clock.ABSOLUTE, zone="America/Chicago")


READER = READERS.add(Reader("thetagpu", "Argonne ThetaGPU, 2022–2023", (JOBS,), read))
