"""The seven published tables, header-less CSV files known by their names, and the joined sample others made of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from gputwin.traces.quality import QualityLog
from gputwin.traces.reader import Input
from gputwin.traces.schema import STATUS, Status
from gputwin.traces.sources import Source
from gputwin.traces.tabular import CsvKind, Dtype, read_csv, read_csv_parts


def _text(*names: str) -> dict[str, Dtype]:
    return dict.fromkeys(names, pl.String)


def _number(*names: str) -> dict[str, Dtype]:
    return dict.fromkeys(names, pl.Float64)


_PLAN = {**_number("plan_cpu", "plan_mem", "plan_gpu"), **_text("gpu_type")}
_SENSORS = _number(
    "cpu_usage", "gpu_wrk_util", "avg_mem", "max_mem", "avg_gpu_wrk_mem", "max_gpu_wrk_mem",
    "read", "write", "read_count", "write_count",
)  # fmt: skip

JOB = CsvKind(
    "job",
    {**_text("job_name", "inst_id", "user", "status"), **_number("start_time", "end_time")},
    header=False,
    stem="pai_job_table",
)
TASK = CsvKind(
    "task",
    {
        **_text("job_name", "task_name"),
        **_number("inst_num"),
        **_text("status"),
        **_number("start_time", "end_time"),
        **_PLAN,
    },
    header=False,
    stem="pai_task_table",
)
INSTANCE = CsvKind(
    "instance",
    {
        **_text("job_name", "task_name", "inst_name", "worker_name", "inst_id", "status"),
        **_number("start_time", "end_time"),
        **_text("machine"),
    },
    header=False,
    stem="pai_instance_table",
)
SENSOR = CsvKind(
    "sensor",
    {**_text("job_name", "task_name", "worker_name", "inst_id", "machine", "gpu_name"), **_SENSORS},
    header=False,
    stem="pai_sensor_table",
)
GROUP_TAG = CsvKind(
    "group_tag",
    _text("inst_id", "user", "gpu_type_spec", "group", "workload"),
    header=False,
    stem="pai_group_tag_table",
)
MACHINE_SPEC = CsvKind(
    "machine_spec",
    {**_text("machine", "gpu_type"), **_number("cap_cpu", "cap_mem", "cap_gpu")},
    header=False,
    stem="pai_machine_spec",
)
MACHINE_METRIC = CsvKind(
    "machine_metric",
    {
        **_text("worker_name", "machine"),
        **_number(
            "start_time", "end_time", "machine_cpu_iowait", "machine_cpu_kernel", "machine_cpu_usr", "machine_gpu",
            "machine_load_1", "machine_net_receive", "machine_num_worker", "machine_cpu",
        ),
    },
    header=False,
    stem="pai_machine_metric",
)  # fmt: skip
JOINED = CsvKind(
    "joined",
    {
        **_text("job_name", "inst_id", "user", "task_name"),
        **_number("inst_num"),
        **_text("status"),
        **_number("start_time", "end_time"),
        **_PLAN,
        **_text("group", "workload", "inst_name", "worker_name", "machine", "gpu_type_machine_spec"),
        **_number("cap_cpu_machine_spec", "cap_mem_machine_spec", "cap_gpu_machine_spec"),
        **_text("gpu_name"),
        **_SENSORS,
    },
    ignored=frozenset({"index"}),
)
KINDS = (JOB, TASK, INSTANCE, SENSOR, GROUP_TAG, MACHINE_SPEC, MACHINE_METRIC, JOINED)

_STATUS: Mapping[str, Status] = {
    "Terminated": Status.COMPLETED,
    "Failed": Status.FAILED,
    "Running": Status.RUNNING,
    "Waiting": Status.WAITING,
    "Interrupted": Status.CANCELLED,
}


IS_RUNNING = (pl.col("end_time").is_null() & (pl.col("status") == Status.RUNNING)).alias("is_running")
"""True where the end is unknown because it had not come."""


@dataclass(frozen=True)
class Published:
    """The files at hand, by table; any of the tables may be absent. Each table must be read once: reading counts."""

    sources: Mapping[str, Sequence[Source]]
    quality: QualityLog

    @classmethod
    def of(cls, inputs: Sequence[Input], quality: QualityLog) -> Published:
        """Return the inputs sorted by table."""
        kinds = dict.fromkeys(i.kind for i in inputs)
        return cls({kind: [i.source for i in inputs if i.kind == kind] for kind in kinds}, quality)

    def has(self, *kinds: CsvKind) -> bool:
        """Return whether any of the tables is there."""
        return any(kind.kind in self.sources for kind in kinds)

    def frame(self, kind: CsvKind) -> pl.DataFrame:
        """Return a table's rows, those of several files one after the other; none where it is absent."""
        files = [read_csv(source, kind, self.quality) for source in self.sources.get(kind.kind, ())]
        return pl.concat(files) if files else pl.DataFrame(schema={"_row": pl.UInt32, **kind.columns})

    def parts(self, kind: CsvKind) -> Iterator[pl.DataFrame]:
        """Yield the same rows in parts."""
        for source in self.sources.get(kind.kind, ()):
            yield from read_csv_parts(source, kind, self.quality)


def with_status(frame: pl.DataFrame, kind: CsvKind, quality: QualityLog) -> pl.DataFrame:
    """Return the frame with canonical statuses; words the publisher does not list become unknown (rule F08)."""
    strange = frame.filter(~pl.col("status").is_in(list(_STATUS)))
    quality.find(
        "F08", kind.stem or kind.kind, strange.height, detail="status", examples=strange.select("_row", "status")
    )
    status = pl.col("status").replace_strict(_STATUS, default=Status.UNKNOWN, return_dtype=STATUS)
    return frame.with_columns(status)


def gpu_model(column: str) -> pl.Expr:
    """Return the GPU model; a machine or task without GPUs says CPU, or nothing."""
    return pl.when(~pl.col(column).is_in(["CPU", ""])).then(pl.col(column)).alias("gpu_model")
