"""Alibaba spot GPU 2026: nodes and jobs of a cluster that lends idle GPUs to spot jobs.

Published with Duan et al., "GFS: A Preemptive Scheduling Framework for GPU Clusters with Predictive Spot Management",
ASPLOS'26. `node_info_df.csv` and `job_info_df.csv` are the publisher's; lists of selected jobs and hourly tables come
from a third party (sultanul-ovi/GPU-Cluster-Spot-Resource-Dataset-Analysis) and lack the GPU model. Requests are per
worker. Times are seconds from the first submit: a submit time of 0 means the job ran when the trace began, so its
duration is counted from then on and neither its submit nor its whole runtime is known; a job that reaches the last second
of the 184 days was still running. Neither start nor wait is known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import polars as pl

from gputwin.core.units import CORE_MILLI, DAY, HOUR, WHOLE_GPU_MILLI
from gputwin.traces.longform import entity_rows, metric_rows, with_time
from gputwin.traces.quality import QualityLog
from gputwin.traces.reader import READERS, Clock, Draft, Input, Reader
from gputwin.traces.schema import Status
from gputwin.traces.sources import Source
from gputwin.traces.tabular import CsvKind, read_csv

LAST_SECOND = 184 * DAY - 1
PRIORITY = {"HP": 1, "Spot": 0}

NODES = CsvKind(
    "nodes",
    {"node_name": pl.String, "gpu_model": pl.String, "gpu_capacity_num": pl.Float64, "cpu_num": pl.Float64},
)
JOBS = CsvKind(
    "jobs",
    {
        "job_name": pl.String,
        "organization": pl.String,
        "gpu_model": pl.String,
        "cpu_request": pl.Float64,
        "gpu_request": pl.Float64,
        "worker_num": pl.Float64,
        "submit_time": pl.Float64,
        "duration": pl.Float64,
        "job_type": pl.String,
    },
    optional=frozenset({"gpu_model"}),
    ignored=frozenset({"gpu_seconds", "gpu_demand"}),
)
CONCURRENCY = CsvKind(
    "hourly concurrency",
    dict.fromkeys(
        ("hour", "jobs_active", "gpus_active_requested", "capacity_gpus", "demand_capacity_ratio"), pl.Float64
    ),
)
ARRIVALS = CsvKind("hourly summary", dict.fromkeys(("submit_hour", "jobs", "gpu_seconds", "gpu_demand"), pl.Float64))
MODELS = "hourly concurrency by model"

_CONCURRENCY_METRICS = {
    "jobs_active": "active_jobs",
    "gpus_active_requested": "active_gpus",
    "capacity_gpus": "capacity_gpus",
    "demand_capacity_ratio": "demand_ratio",
}
_ARRIVAL_METRICS = {
    "jobs": "submitted_jobs_per_hour",
    "gpu_demand": "submitted_gpus_per_hour",
    "gpu_seconds": "submitted_gpu_seconds_per_hour",
}


def recognise(source: Source) -> str | None:
    """Return the kind of the hourly table whose columns are GPU models, known by its name."""
    if source.name.startswith("hourly_concurrency_top_models") and source.header[0] == "hour":
        return MODELS
    return None


def _nodes(source: Source, quality: QualityLog) -> pl.DataFrame:
    return read_csv(source, NODES, quality).select(
        "_row",
        "gpu_model",
        pl.col("node_name").alias("node_id"),
        pl.col("gpu_capacity_num").alias("gpu_count"),
        (pl.col("cpu_num") * CORE_MILLI).alias("cpu_milli"),
    )


def _tasks(source: Source, quality: QualityLog) -> pl.DataFrame:
    frame = read_csv(source, JOBS, quality)
    submit, gpus = pl.col("submit_time"), pl.col("gpu_request")
    devices = gpus.ceil()
    alive = (submit + pl.col("duration") >= LAST_SECOND).fill_null(False)
    older = (submit == 0).fill_null(False)
    _report(quality, "F13", source, frame.filter(submit == 0))
    _report(quality, "F08", source, frame.filter(~pl.col("job_type").is_in(list(PRIORITY))), "job_type")
    return frame.select(
        "_row",
        "gpu_model",
        pl.when(~older).then(submit).alias("submit_time"),
        pl.when(older & ~alive).then("duration").alias("end_time"),
        pl.col("job_name").alias("job_id"),
        pl.col("organization").alias("tenant"),
        pl.col("job_type").alias("qos"),
        pl.col("job_type").replace_strict(PRIORITY, default=None, return_dtype=pl.Int32).alias("priority"),
        pl.when(alive).then(pl.lit(Status.RUNNING)).otherwise(pl.lit(Status.UNKNOWN)).alias("status"),
        pl.when(~alive & ~older).then("duration").alias("duration_seconds"),
        alive.alias("is_running"),
        older.alias("was_running"),
        pl.col("worker_num").alias("instances"),
        (pl.col("cpu_request") * CORE_MILLI).alias("cpu_milli"),
        devices.alias("gpu_count"),
        # A fraction is a share of each device, so that shares times devices is what was asked for.
        pl.when(devices > 0).then(gpus * WHOLE_GPU_MILLI / devices).when(devices == 0).then(0).alias("gpu_milli"),
        pl.col("gpu_model").alias("gpu_models_allowed"),
    )


def _concurrency(source: Source, quality: QualityLog) -> pl.DataFrame:
    frame = _hourly(source, CONCURRENCY, quality)
    # The table lets every job run from its submit on, so that it needs more GPUs at times than there are.
    over = frame.filter(pl.col("gpus_active_requested") > pl.col("capacity_gpus"))
    _report(quality, "F12", source, over, "gpus_active_requested above capacity_gpus")
    return metric_rows(frame, _CONCURRENCY_METRICS, pl.lit(None, pl.String))


def _concurrency_by_model(source: Source, quality: QualityLog) -> pl.DataFrame:
    models = [name for name in dict.fromkeys(source.header) if name not in ("hour", "")]
    kind = CsvKind(MODELS, dict.fromkeys(("hour", *models), pl.Float64))
    return entity_rows(_hourly(source, kind, quality), "active_gpus", models)


def _arrivals(source: Source, quality: QualityLog) -> pl.DataFrame:
    frame = _hourly(source, ARRIVALS, quality)
    _report(quality, "F13", source, frame.filter(pl.col("time") == 0), "hour 0 holds all jobs already there")
    return metric_rows(frame, _ARRIVAL_METRICS, pl.lit(None, pl.String))


def _hourly(source: Source, kind: CsvKind, quality: QualityLog) -> pl.DataFrame:
    hour = next(iter(kind.columns))
    frame = read_csv(source, kind, quality).with_columns((pl.col(hour) * HOUR).alias("time"))
    return with_time(frame, source.label, quality)


def _report(quality: QualityLog, rule: str, source: Source, rows: pl.DataFrame, detail: str = "") -> None:
    quality.find(rule, source.label, rows.height, detail=detail, examples=rows)


_MAKERS: Mapping[str, tuple[str, Callable[[Source, QualityLog], pl.DataFrame]]] = {
    NODES.kind: ("nodes", _nodes),
    JOBS.kind: ("tasks", _tasks),
    CONCURRENCY.kind: ("series", _concurrency),
    ARRIVALS.kind: ("series", _arrivals),
    MODELS: ("series", _concurrency_by_model),
}


def read(inputs: Sequence[Input], quality: QualityLog) -> Draft:
    """Return nodes, jobs and hourly series; a job that stands in several lists is kept once."""
    parts: dict[str, list[pl.DataFrame]] = {}
    # The list that says most comes first, since of a job in several lists the first row stays.
    for item in sorted(inputs, key=lambda i: "gpu_model" not in i.source.header):
        table, make = _MAKERS[item.kind]
        parts.setdefault(table, []).append(make(item.source, quality))
    return Draft({table: pl.concat(frames) for table, frames in parts.items()}, Clock.RELATIVE)


READER = READERS.add(
    Reader("spot2026", "Alibaba spot GPU cluster, 2026", (NODES, JOBS, CONCURRENCY, ARRIVALS), read, recognise)
)
