"""SenseTime Helios 2020: job logs of four clusters, and GPUs and queue of their virtual clusters over time.

Published with Hu et al., "Characterization and Prediction of Deep Learning Workloads in Large-Scale GPU Datacenters",
SC'21: `cluster_log.csv` and `cluster_gpu_number.csv` in one folder per cluster (HeliosData), and a sequence of minutes
per virtual cluster (HeliosArtifact), whose name or folder gives the virtual cluster. The publisher names no time zone;
the clusters are in China, so wall time is taken as Asia/Shanghai, which has no clock changes.

Job ids and names of virtual clusters are unique within a cluster only: where several clusters come together, the
cluster's name goes before them. `gpu_num` and `cpu_num` are for the whole job, over `node_num` nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import PurePath

import polars as pl

from gputwin.core.units import CORE_MILLI, WHOLE_GPU_MILLI
from gputwin.traces.longform import entity_rows, metric_rows, with_time
from gputwin.traces.quality import QualityLog
from gputwin.traces.reader import READERS, Clock, Draft, Input, Reader
from gputwin.traces.schema import Status
from gputwin.traces.sources import Source
from gputwin.traces.tabular import CsvKind, read_csv
from gputwin.traces.walltime import to_unix_seconds

ZONE = "Asia/Shanghai"
_TIMES = ("submit_time", "start_time", "end_time")
JOBS = CsvKind(
    "cluster_log",
    {
        **dict.fromkeys(("job_id", "user", "vc", "state", *_TIMES), pl.String),
        **dict.fromkeys(("gpu_num", "cpu_num", "node_num", "duration"), pl.Float64),
        "jobname": pl.String,
        "cluster": pl.String,
    },
    optional=frozenset({"jobname", "cluster"}),
    # The time from submit to start.
    ignored=frozenset({"queue"}),
    nulls=("NaT", "Unknown", "None"),
)
_STATUS = {
    "COMPLETED": Status.COMPLETED,
    "CANCELLED": Status.CANCELLED,
    "FAILED": Status.FAILED,
    "TIMEOUT": Status.FAILED,
    "NODE_FAIL": Status.FAILED,
    "RUNNING": Status.RUNNING,
    "SUSPENDED": Status.RUNNING,
    "PENDING": Status.WAITING,
}

# `total` means running and pending, except in total_gpu_num, which is what the virtual cluster has.
METRICS = {
    "total_job_num": "total_jobs",
    "running_job_num": "running_jobs",
    "pending_job_num": "pending_jobs",
    "total_gpujob_num": "total_gpu_jobs",
    "running_gpujob_num": "running_gpu_jobs",
    "pending_gpujob_num": "pending_gpu_jobs",
    "total_gpu_num": "total_gpus",
    "running_gpu_num": "running_gpus",
    "pending_gpu_num": "pending_gpus",
    "idle_gpu_num": "idle_gpus",
    "gpu_utilization": "allocation_ratio",
    "running_gpu_num_noless_8": "running_gpus_of_large_jobs",
    "running_gpu_num_less_8": "running_gpus_of_small_jobs",
    "pending_gpu_num_noless_8": "pending_gpus_of_large_jobs",
    "pending_gpu_num_less_8": "pending_gpus_of_small_jobs",
    "total_gpu_num_noless_8": "requested_gpus_of_large_jobs",
    "total_gpu_num_less_8": "requested_gpus_of_small_jobs",
    "running_job_num_noless_8": "running_large_jobs",
    "running_job_num_less_8": "running_small_jobs",
    "pending_job_num_noless_8": "pending_large_jobs",
    "pending_job_num_less_8": "pending_small_jobs",
    "total_job_num_noless_8": "total_large_jobs",
    "total_job_num_less_8": "total_small_jobs",
}
"""Column of a sequence -> metric; a large job has 8 GPUs or more."""
SEQUENCE = CsvKind("sequence", {"time": pl.String, **dict.fromkeys(METRICS, pl.Float64)})
GPU_NUMBER = "gpu_number"


def recognise(source: Source) -> str | None:
    """Return the kind of the table of GPUs per day, whose columns are the virtual clusters."""
    date, *vcs = source.header
    if date == "date" and len(vcs) > 1 and all(v.startswith("vc") or v == "total" for v in vcs):
        return GPU_NUMBER
    return None


def _folder(source: Source) -> str:
    return PurePath(source.label).parent.name.rsplit(":", 1)[-1]


def _cluster(source: Source) -> str:
    """Return the cluster a file is of: the start of its name, or its folder where the name says just "cluster"."""
    name = source.path.name.split("_", 1)[0]
    return _folder(source) if name.lower() in ("cluster", "all") else name


def _tasks(source: Source, prefix: str, quality: QualityLog) -> pl.DataFrame:
    frame = read_csv(source, JOBS, quality)
    for column in _TIMES:
        frame = to_unix_seconds(frame, column, ZONE, source.label, quality)
    state = pl.col("state")
    strange = frame.filter(~state.is_in(list(_STATUS)))
    quality.find("F08", source.label, strange.height, detail="state", examples=strange.select("_row", "state"))
    status = state.replace_strict(_STATUS, default=Status.UNKNOWN, return_dtype=pl.String)
    alive = status == Status.RUNNING
    within = pl.concat_str(pl.lit(prefix), pl.col("cluster") + "/", ignore_nulls=True)
    gpus, cpus, nodes = pl.col("gpu_num"), pl.col("cpu_num"), pl.col("node_num").fill_null(1).clip(1)
    # GPUs that do not spread evenly over the nodes become a gang of single GPUs: the sum is right, the shape is lost.
    uneven = (gpus > 0) & (gpus % nodes != 0) & (gpus % 1 == 0)
    size = pl.when(uneven).then(gpus).otherwise(nodes)
    return frame.select(
        "_row",
        "user",
        "submit_time",
        "start_time",
        (within + pl.col("job_id")).alias("job_id"),
        (within + pl.col("vc")).alias("tenant"),
        pl.col("jobname").alias("group"),
        status.alias("status"),
        pl.when(~alive).then("end_time").alias("end_time"),
        pl.when(~alive).then("duration").alias("duration_seconds"),
        alive.alias("is_running"),
        size.alias("instances"),
        (cpus * CORE_MILLI / size).alias("cpu_milli"),
        (gpus / size).alias("gpu_count"),
        pl.when(gpus > 0).then(WHOLE_GPU_MILLI).when(gpus == 0).then(0).alias("gpu_milli"),
    )


def _sequence(source: Source, prefix: str, quality: QualityLog) -> pl.DataFrame:
    frame = to_unix_seconds(read_csv(source, SEQUENCE, quality), "time", ZONE, source.label, quality)
    frame = with_time(frame, source.label, quality)
    # The publisher caps running GPUs at what the virtual cluster has, but not its split by job size.
    split = pl.col("running_gpu_num_noless_8") + pl.col("running_gpu_num_less_8")
    odd = frame.filter(split != pl.col("running_gpu_num"))
    quality.find(
        "F12",
        source.label,
        odd.height,
        detail="split by job size is not running_gpu_num",
        examples=odd.select("_row", "running_gpu_num", "running_gpu_num_noless_8", "running_gpu_num_less_8"),
    )
    name = source.path.name.removesuffix(".csv")
    vc = _folder(source) if name == "cluster_sequence_vc" else name.removesuffix("_sequence")
    return metric_rows(frame, METRICS, pl.lit(prefix + vc))


def _gpu_number(source: Source, prefix: str, quality: QualityLog) -> pl.DataFrame:
    vcs = tuple(dict.fromkeys(source.header[1:]))
    kind = CsvKind(GPU_NUMBER, {"date": pl.String, **dict.fromkeys(vcs, pl.Float64)})
    frame = to_unix_seconds(read_csv(source, kind, quality), "date", ZONE, source.label, quality, "%Y-%m-%d")
    rows = entity_rows(with_time(frame.rename({"date": "time"}), source.label, quality), "quota_gpus", vcs)
    whole = pl.lit(prefix.rstrip("/") or None, pl.String)
    entity = pl.when(pl.col("entity") == "total").then(whole).otherwise(pl.lit(prefix) + pl.col("entity"))
    return rows.with_columns(entity.alias("entity"))


_MAKERS: dict[str, tuple[str, Callable[[Source, str, QualityLog], pl.DataFrame]]] = {
    JOBS.kind: ("tasks", _tasks),
    SEQUENCE.kind: ("series", _sequence),
    GPU_NUMBER: ("series", _gpu_number),
}


def read(inputs: Sequence[Input], quality: QualityLog) -> Draft:
    """Return tasks of job logs, and series of virtual clusters; GPUs of a whole cluster have no entity."""
    several = any(len({_cluster(i.source) for i in inputs if i.kind == kind}) > 1 for kind in (JOBS.kind, GPU_NUMBER))
    parts: dict[str, list[pl.DataFrame]] = {}
    for item in inputs:
        table, make = _MAKERS[item.kind]
        prefix = f"{_cluster(item.source)}/" if several and item.kind != SEQUENCE.kind else ""
        parts.setdefault(table, []).append(make(item.source, prefix, quality))
    return Draft({table: pl.concat(frames) for table, frames in parts.items()}, Clock.ABSOLUTE, ZONE)


READER = READERS.add(Reader("helios", "SenseTime Helios clusters, 2020", (JOBS, SEQUENCE), read, recognise))
