"""Usage: what sensors saw of each instance, then how its machine stood meanwhile. One source row is one usage row."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from gputwin.core.units import CORE_MILLI, MIB_PER_GIB, WHOLE_GPU_MILLI
from gputwin.traces.readers.pai2020.tables import MACHINE_METRIC, SENSOR, Published

_WHO = {"job_name": "job_id", "task_name": "role", "worker_name": "instance_id", "machine": "node_id"}
_NETWORK = {
    "read": "network_receive_bytes",
    "write": "network_send_bytes",
    "read_count": "network_receive_count",
    "write_count": "network_send_count",
}
_MEMORY = {
    "avg_mem": "memory_mib",
    "max_mem": "memory_max_mib",
    "avg_gpu_wrk_mem": "gpu_memory_mib",
    "max_gpu_wrk_mem": "gpu_memory_max_mib",
}
_MACHINE = {
    "worker_name": "instance_id",
    "machine": "node_id",
    "machine_cpu": "cpu_percent",
    "machine_cpu_usr": "cpu_user_percent",
    "machine_cpu_kernel": "cpu_kernel_percent",
    "machine_cpu_iowait": "cpu_iowait_percent",
    "machine_gpu": "gpu_percent",
    "machine_load_1": "load_1min",
    "machine_net_receive": "network_receive_bytes",
    "machine_num_worker": "workers",
}


def usage_of(published: Published, joined: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Yield the usage table in parts: sensors, sensors of the joined sample, machine metrics, each in file order."""
    for part in published.parts(SENSOR):
        yield _of_instances(part)
    if joined.height:
        yield _of_instances(joined)
    for part in published.parts(MACHINE_METRIC):
        yield _of_machines(part)


def _of_instances(frame: pl.DataFrame) -> pl.DataFrame:
    """Return what instances used. Sensors give the mean over an instance's life and do not say when that was."""
    return frame.select(
        "_row",
        pl.lit("instance").alias("scope"),
        *(pl.col(theirs).alias(ours) for theirs, ours in (_WHO | _NETWORK).items()),
        pl.col("gpu_name").alias("device"),
        (pl.col("cpu_usage") * (CORE_MILLI // 100)).alias("cpu_milli"),
        (pl.col("gpu_wrk_util") * (WHOLE_GPU_MILLI // 100)).alias("gpu_milli"),
        *((pl.col(theirs) * MIB_PER_GIB).alias(ours) for theirs, ours in _MEMORY.items()),
    )


def _of_machines(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.select(
        "_row",
        pl.lit("node").alias("scope"),
        "start_time",
        "end_time",
        *(pl.col(theirs).alias(ours) for theirs, ours in _MACHINE.items()),
    )
