"""Alibaba openb 2023: the node list and one of the pod lists of a Kubernetes cluster that shares GPUs.

Published with Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient
Descent", USENIX ATC'23. Some pod lists carry the first five columns only: requests without times.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from gputwin.core.errors import InputError
from gputwin.traces.quality import QualityLog
from gputwin.traces.reader import READERS, Clock, Draft, Input, Reader
from gputwin.traces.schema import Status
from gputwin.traces.tabular import CsvKind, read_csv

NODES = CsvKind(
    "nodes",
    {
        "sn": pl.String,
        "cpu_milli": pl.Float64,
        "memory_mib": pl.Float64,
        "gpu": pl.Float64,
        "model": pl.String,
    },
)
PODS = CsvKind(
    "pods",
    {
        "name": pl.String,
        "cpu_milli": pl.Float64,
        "memory_mib": pl.Float64,
        "num_gpu": pl.Float64,
        "gpu_milli": pl.Float64,
        "gpu_spec": pl.String,
        "qos": pl.String,
        "pod_phase": pl.String,
        "creation_time": pl.Float64,
        "deletion_time": pl.Float64,
        "scheduled_time": pl.Float64,
    },
    optional=frozenset({"gpu_spec", "qos", "pod_phase", "creation_time", "deletion_time", "scheduled_time"}),
)
_STATUS = {
    "Succeeded": Status.COMPLETED,
    "Failed": Status.FAILED,
    "Running": Status.RUNNING,
    "Pending": Status.WAITING,
}


def _nodes(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.select(
        "_row",
        "cpu_milli",
        "memory_mib",
        pl.col("sn").alias("node_id"),
        pl.col("gpu").alias("gpu_count"),
        pl.col("model").alias("gpu_model"),
    )


def _pods(frame: pl.DataFrame) -> pl.DataFrame:
    start, end = pl.col("scheduled_time"), pl.col("deletion_time")
    return frame.select(
        "_row",
        "cpu_milli",
        "memory_mib",
        "qos",
        "gpu_milli",
        pl.col("name").alias("job_id"),
        pl.col("num_gpu").alias("gpu_count"),
        pl.col("gpu_spec").alias("gpu_models_allowed"),
        pl.col("pod_phase").replace_strict(_STATUS, default=Status.UNKNOWN, return_dtype=pl.String).alias("status"),
        pl.col("creation_time").alias("submit_time"),
        start.alias("start_time"),
        end.alias("end_time"),
        (end - start).alias("duration_seconds"),
        (start.is_not_null() & end.is_null()).alias("is_running"),
    )


def read(inputs: Sequence[Input], quality: QualityLog) -> Draft:
    """Return nodes from a node list and tasks from a pod list; at most one file of each."""
    makers = {"nodes": (NODES, "nodes", _nodes), "pods": (PODS, "tasks", _pods)}
    tables: dict[str, pl.DataFrame] = {}
    for item in inputs:
        kind, table, make = makers[item.kind]
        if table in tables:
            raise InputError(
                f"a second {item.kind} list; the lists are variants of one another",
                file=item.source.label,
                remedy="give one pod list and one node list",
            )
        tables[table] = make(read_csv(item.source, kind, quality))
    return Draft(tables, clock=Clock.RELATIVE)


READER = READERS.add(Reader("openb2023", "Alibaba GPU-sharing Kubernetes cluster, 2023", (NODES, PODS), read))
