"""Alibaba DLRM 2025: instances of 156 recommendation services whose CPU and GPU parts run on separate nodes.

Published with Yang et al., "GPU-Disaggregated Serving for Deep Learning Recommendation Models at Scale", NSDI'25.
Times are seconds from the start of the trace, on no stated day. What happened before the trace or after it is
empty: 7,280 rows have no creation and no scheduled time, so they ran when it began; 8,878 have no deletion time, so they
ran when it ended. All rows stay.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from gputwin.core.units import CORE_MILLI, MIB_PER_GIB, WHOLE_GPU_MILLI
from gputwin.traces.quality import QualityLog
from gputwin.traces.reader import READERS, Clock, Draft, Input, Reader
from gputwin.traces.schema import Status
from gputwin.traces.tabular import CsvKind, read_csv

_RESOURCES = ("cpu", "gpu", "rdma", "memory", "disk")
_AMOUNTS = tuple(f"{what}_{bound}" for what in _RESOURCES for bound in ("request", "limit"))
_TIMES = ("creation_time", "scheduled_time", "deletion_time")
INSTANCES = CsvKind(
    "instances",
    {
        "instance_sn": pl.String,
        "role": pl.String,
        "app_name": pl.String,
        **dict.fromkeys((*_AMOUNTS, "max_instance_per_node", *_TIMES), pl.Float64),
    },
    nulls=("NaN",),
)
_NO_LIMIT = -1


def _tasks(frame: pl.DataFrame) -> pl.DataFrame:
    start, end = pl.col("scheduled_time"), pl.col("deletion_time")
    gpus = pl.col("gpu_request")
    per_node = pl.col("max_instance_per_node")
    return frame.select(
        "_row",
        "role",
        pl.col("instance_sn").alias("job_id"),
        pl.col("app_name").alias("application"),
        # The publisher calls all of them latency-sensitive.
        pl.lit("LS").alias("qos"),
        pl.when(end.is_null()).then(pl.lit(Status.RUNNING)).otherwise(pl.lit(Status.UNKNOWN)).alias("status"),
        pl.col("creation_time").alias("submit_time"),
        start.alias("start_time"),
        end.alias("end_time"),
        (end - start).alias("duration_seconds"),
        end.is_null().alias("is_running"),
        (pl.col("creation_time").is_null() & start.is_null()).alias("was_running"),
        (pl.col("cpu_request") * CORE_MILLI).alias("cpu_milli"),
        (pl.col("memory_request") * MIB_PER_GIB).alias("memory_mib"),
        gpus.alias("gpu_count"),
        pl.when(gpus > 0).then(WHOLE_GPU_MILLI).when(gpus == 0).then(0).alias("gpu_milli"),
        (pl.col("disk_request") * MIB_PER_GIB).alias("disk_mib"),
        pl.col("rdma_request").alias("rdma_percent"),
        (pl.col("cpu_limit") * CORE_MILLI).alias("cpu_limit_milli"),
        (pl.col("memory_limit") * MIB_PER_GIB).alias("memory_limit_mib"),
        (pl.col("gpu_limit") * WHOLE_GPU_MILLI).alias("gpu_limit_milli"),
        (pl.col("disk_limit") * MIB_PER_GIB).alias("disk_limit_mib"),
        pl.col("rdma_limit").alias("rdma_limit_percent"),
        pl.when(per_node != _NO_LIMIT).then(per_node).alias("max_per_node"),
    )


def read(inputs: Sequence[Input], quality: QualityLog) -> Draft:
    """Return one task per instance; each asks for at most one whole GPU."""
    return Draft({"tasks": pl.concat(_tasks(read_csv(i.source, INSTANCES, quality)) for i in inputs)}, Clock.RELATIVE)


READER = READERS.add(Reader("dlrm2025", "Alibaba GPU-disaggregated recommendation serving, 2025", (INSTANCES,), read))
