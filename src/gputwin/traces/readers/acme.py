"""Shanghai AI Laboratory Acme 2023: the job logs of two LLM clusters, Seren (Slurm) and Kalos (Kubernetes).

Published with Hu et al., "Characterization of Large Language Model Development in the Datacenter", NSDI'24. A file's
name gives the cluster, which becomes the tenant. `gpu_num` and `cpu_num` are for the whole job, over `node_num` nodes.
Times carry their offset. The publisher defines `duration` as the time from start to end, but in Kalos it is the time
from submit to end (its own example: 18 s for a run of 8 s), so the runtime is taken from the times.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from gputwin.core.units import CORE_MILLI, MIB_PER_GIB, WHOLE_GPU_MILLI
from gputwin.traces.cells import Column, known, times
from gputwin.traces.quality import QualityLog
from gputwin.traces.reader import READERS, Clock, Draft, Input, Reader
from gputwin.traces.schema import Status
from gputwin.traces.sources import Source
from gputwin.traces.tabular import CsvKind, read_csv

_TIMES = ("submit_time", "start_time", "end_time")
JOBS = CsvKind(
    "job_trace",
    {
        **dict.fromkeys(("job_id", "user", "type", "state", *_TIMES), pl.String),
        **dict.fromkeys(("node_num", "gpu_num", "cpu_num", "duration", "mem_per_pod_GB"), pl.Float64),
    },
    optional=frozenset({"mem_per_pod_GB"}),
    # Differences and products of other columns, and when a failure was noticed.
    ignored=frozenset({"queue", "gpu_time", "shared_mem_per_pod", "fail_time", "stop_time"}),
)
_STATUS = {
    "COMPLETED": Status.COMPLETED,
    "CANCELLED": Status.CANCELLED,
    "FAILED": Status.FAILED,
    "TIMEOUT": Status.FAILED,
    "NODE_FAIL": Status.FAILED,
    "RUNNING": Status.RUNNING,
    "PENDING": Status.WAITING,
}


def _tasks(source: Source, quality: QualityLog) -> pl.DataFrame:
    frame = read_csv(source, JOBS, quality)
    for name in _TIMES:
        column = Column(known(frame.select("_row", pl.col(name).alias("cell"))), name, source.label, quality)
        frame = frame.with_columns(times(column, "", "Asia/Shanghai").seconds.alias(name))
    state = pl.col("state")
    strange = frame.filter(~state.is_in(list(_STATUS)))
    quality.find("F08", source.label, strange.height, detail="state", examples=strange.select("_row", "state"))
    ran = pl.col("end_time") - pl.col("start_time")
    odd = frame.filter((pl.col("duration") - ran).abs() > 1)
    quality.find(
        "F12",
        source.label,
        odd.height,
        detail="duration is not end_time less start_time",
        examples=odd.select("_row", "duration", *_TIMES),
    )
    status = state.replace_strict(_STATUS, default=Status.UNKNOWN, return_dtype=pl.String)
    alive = status == Status.RUNNING
    gpus, nodes = pl.col("gpu_num"), pl.col("node_num").fill_null(1).clip(1)
    # GPUs that do not spread evenly over the nodes become a gang of single GPUs: the sum is right, the shape is lost.
    uneven = (gpus > 0) & (gpus % nodes != 0) & (gpus % 1 == 0)
    size = pl.when(uneven).then(gpus).otherwise(nodes)
    return frame.select(
        "_row",
        "job_id",
        "user",
        "submit_time",
        "start_time",
        pl.when(~alive).then("end_time").alias("end_time"),
        pl.lit(source.name.removesuffix(".csv").removeprefix("trace_")).alias("tenant"),
        pl.col("type").alias("workload"),
        status.alias("status"),
        alive.alias("is_running"),
        size.alias("instances"),
        (pl.col("cpu_num") * CORE_MILLI / size).alias("cpu_milli"),
        (pl.col("mem_per_pod_GB") * MIB_PER_GIB * nodes / size).alias("memory_mib"),
        (gpus / size).alias("gpu_count"),
        pl.when(gpus > 0).then(WHOLE_GPU_MILLI).when(gpus == 0).then(0).alias("gpu_milli"),
        pl.when(gpus > 0).then(pl.lit("A100")).alias("gpu_model"),
    )


def read(inputs: Sequence[Input], quality: QualityLog) -> Draft:
    """Return the tasks of one job log or both."""
    return Draft({"tasks": pl.concat([_tasks(i.source, quality) for i in inputs])}, Clock.ABSOLUTE, "Asia/Shanghai")


READER = READERS.add(Reader("acme", "Shanghai AI Laboratory Acme clusters, 2023", (JOBS,), read))
