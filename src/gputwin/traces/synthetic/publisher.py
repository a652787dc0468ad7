"""A synthetic PAI trace as its publisher would ship it: seven CSV tables without headers.

Columns and units are those of the README of cluster-trace-gpu-v2020: percent of a core and of a GPU, GB of memory,
seconds on the shifted clock. Reading the tables back gives the canonical tables they were written from.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import polars as pl

from gputwin.core.atomic import atomic_directory
from gputwin.core.errors import UserError
from gputwin.core.units import CORE_MILLI, MIB_PER_GIB
from gputwin.traces.schema import Status
from gputwin.traces.synthetic.generator import Synthetic

MARKER = ".synthetic"
"""Tells a folder of these tables, which may be written again, from one of the publisher's own."""
_ROWS_AT_ONCE = 1 << 20
_MILLI_PER_PERCENT = 10.0
_STATUS = {
    Status.COMPLETED: "Terminated",
    Status.FAILED: "Failed",
    Status.RUNNING: "Running",
    Status.WAITING: "Waiting",
    Status.CANCELLED: "Interrupted",
}
_JOB_NAME = pl.col("job_id").alias("job_name")
# The tables join on inst_id, a second name of the job that canonical tables do without.
_INST_ID = (pl.col("job_id") + pl.col("job_id").str.reverse() + pl.col("job_id").str.head(12)).alias("inst_id")
_STATUS_NAME = pl.col("status").cast(pl.String).replace_strict(_STATUS).alias("status")


def write_pai2020(synthetic: Synthetic, directory: Path) -> list[Path]:
    """Write the publisher's tables into `directory` and return their paths; without instances, those that need none."""
    if synthetic.name != "pai2020":
        raise UserError(f"only pai2020 has a publisher's form, not '{synthetic.name}'")
    # Not synced: the same tables can be made again.
    with atomic_directory(directory, marker=MARKER, sync=False) as folder:
        names = [path.name for path in _write_tables(synthetic, folder)]
        (folder / MARKER).write_text(f"{synthetic.name}?jobs={synthetic.jobs}&seed={synthetic.seed}\n")
    return [directory / name for name in names]


def _write_tables(synthetic: Synthetic, folder: Path) -> list[Path]:
    tasks, nodes = synthetic.tables["tasks"], synthetic.tables["nodes"]
    written = [
        _write(folder / "pai_job_table.csv", [_jobs(tasks)]),
        _write(folder / "pai_task_table.csv", [_tasks(tasks)]),
        _write(folder / "pai_group_tag_table.csv", [_group_tags(tasks)]),
        _write(folder / "pai_machine_spec.csv", [_machine_spec(nodes)]),
    ]
    if "instances" in synthetic.tables:
        instances = synthetic.tables["instances"]
        pieces = (_instances(piece) for piece in instances.iter_slices(_ROWS_AT_ONCE))
        written.append(_write(folder / "pai_instance_table.csv", pieces))
        written += _write_usage(folder, synthetic.iter_usage())
    return written


def _write(path: Path, pieces: Iterable[pl.DataFrame]) -> Path:
    with path.open("wb") as file:
        for piece in pieces:
            piece.write_csv(file, include_header=False)
    return path


def _write_usage(directory: Path, pieces: Iterable[pl.DataFrame]) -> list[Path]:
    """Write sensor and machine tables in one pass over the usage table."""
    sensor, machine = directory / "pai_sensor_table.csv", directory / "pai_machine_metric.csv"
    with sensor.open("wb") as sensors, machine.open("wb") as machines:
        for piece in pieces:
            _sensors(piece.filter(pl.col("scope") == "instance")).write_csv(sensors, include_header=False)
            _machine_metrics(piece.filter(pl.col("scope") == "node")).write_csv(machines, include_header=False)
    return [sensor, machine]


def _jobs(tasks: pl.DataFrame) -> pl.DataFrame:
    jobs = tasks.group_by("job_id", maintain_order=True).agg(
        pl.col("user", "status", "submit_time").first(), pl.col("end_time").max()
    )
    return jobs.select(_JOB_NAME, _INST_ID, "user", _STATUS_NAME, "submit_time", "end_time")


def _tasks(tasks: pl.DataFrame) -> pl.DataFrame:
    gpu = pl.col("gpu_count") * pl.col("gpu_milli") / _MILLI_PER_PERCENT
    return tasks.select(
        _JOB_NAME,
        "role",
        pl.col("instances").cast(pl.Float64),
        _STATUS_NAME,
        "start_time",
        "end_time",
        pl.col("cpu_milli") / _MILLI_PER_PERCENT,
        pl.col("memory_mib") / MIB_PER_GIB,
        pl.when(pl.col("gpu_count") > 0).then(gpu).alias("plan_gpu"),
        "gpu_model",
    )


def _group_tags(tasks: pl.DataFrame) -> pl.DataFrame:
    jobs = tasks.group_by("job_id", maintain_order=True).agg(
        pl.col("user", "gpu_models_allowed", "group", "workload").first()
    )
    return jobs.select(_INST_ID, "user", "gpu_models_allowed", "group", "workload")


def _machine_spec(nodes: pl.DataFrame) -> pl.DataFrame:
    return nodes.select(
        "node_id",
        pl.col("gpu_model").fill_null("CPU"),
        pl.col("cpu_milli") // CORE_MILLI,
        pl.col("memory_mib") // MIB_PER_GIB,
        "gpu_count",
    )


def _instances(instances: pl.DataFrame) -> pl.DataFrame:
    return instances.select(
        _JOB_NAME,
        "role",
        pl.col("instance_id").str.reverse().alias("inst_name"),
        pl.col("instance_id").alias("worker_name"),
        _INST_ID,
        _STATUS_NAME,
        "start_time",
        "end_time",
        "node_id",
    )


def _sensors(usage: pl.DataFrame) -> pl.DataFrame:
    return usage.select(
        _JOB_NAME,
        "role",
        "instance_id",
        _INST_ID,
        "node_id",
        "device",
        pl.col("cpu_milli") / _MILLI_PER_PERCENT,
        pl.col("gpu_milli") / _MILLI_PER_PERCENT,
        pl.col("memory_mib") / MIB_PER_GIB,
        pl.col("memory_max_mib") / MIB_PER_GIB,
        pl.col("gpu_memory_mib") / MIB_PER_GIB,
        pl.col("gpu_memory_max_mib") / MIB_PER_GIB,
        "network_receive_bytes",
        "network_send_bytes",
        "network_receive_count",
        "network_send_count",
    )


def _machine_metrics(usage: pl.DataFrame) -> pl.DataFrame:
    return usage.select(
        "instance_id",
        "node_id",
        pl.col("start_time", "end_time").cast(pl.Int64),
        "cpu_iowait_percent",
        "cpu_kernel_percent",
        "cpu_user_percent",
        "gpu_percent",
        "load_1min",
        "network_receive_bytes",
        "workers",
        "cpu_percent",
    )
