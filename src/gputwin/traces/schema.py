"""The canonical trace: its tables, columns, types and units. This file is the one definition.

Times are float seconds from the trace's origin. Amounts are integers in the unit the name carries, so that sums
are exact. `docs/schema.md` is generated from here.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import polars as pl

SCHEMA_VERSION = 2


class Status(StrEnum):
    """How a task or instance ended, or where it stood when the trace ended."""

    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    RUNNING = "running"
    WAITING = "waiting"
    UNKNOWN = "unknown"


STATUS = pl.Enum([s.value for s in Status])
SCOPE = pl.Enum(["instance", "node"])
DEFAULT_ROLE = "main"


@dataclass(frozen=True)
class Column:
    """One column: its type, what it means, and the value a row has when the source says nothing (None: null)."""

    name: str
    dtype: pl.DataType | type[pl.DataType]
    meaning: str
    default: str | int | bool | None = None
    required: bool = False

    @property
    def nullable(self) -> bool:
        """True where a null is allowed."""
        return not self.required and self.default is None


@dataclass(frozen=True)
class Table:
    """One table: what a row is, the columns that identify it, and all its columns in order."""

    name: str
    row: str
    key: tuple[str, ...]
    columns: tuple[Column, ...]

    @property
    def schema(self) -> pl.Schema:
        """Return names and types, in order."""
        return pl.Schema({c.name: c.dtype for c in self.columns})

    @property
    def time_columns(self) -> tuple[str, ...]:
        """Return the columns that hold points in time (shifted together when the origin moves)."""
        return tuple(c.name for c in self.columns if c.name == "time" or c.name.endswith("_time"))

    def empty(self) -> pl.DataFrame:
        """Return the table with no rows."""
        return pl.DataFrame(schema=self.schema)


_IDENTITY = (
    Column("job_id", pl.String, "the job; a job has one task per role", required=True),
    Column("role", pl.String, "what the task does in its job: ps, worker, CN, HN, …", default=DEFAULT_ROLE),
)
_LIFE = (
    Column("status", STATUS, "how it ended, or where it stood when the trace ended", default="unknown"),
    Column("submit_time", pl.Float64, "s; when it was asked for"),
    Column("start_time", pl.Float64, "s; when it was placed and began"),
    Column("end_time", pl.Float64, "s; when it ended"),
)
_IS_RUNNING = Column(
    "is_running", pl.Boolean, "still alive when the trace ended: its runtime is right-censored", default=False
)

TASKS = Table(
    "tasks",
    "a task: a gang of identical instances that start together",
    ("job_id", "role"),
    (
        *_IDENTITY,
        Column("application", pl.String, "the service or program, where jobs are its replicas"),
        Column("group", pl.String, "jobs with the same inputs: repetitions of one another"),
        Column("user", pl.String, "who submitted it"),
        Column("tenant", pl.String, "virtual cluster, queue, organisation, project or namespace"),
        Column("workload", pl.String, "kind of model or program: bert, ctr, …"),
        Column("qos", pl.String, "quality-of-service class as the source names it"),
        Column("priority", pl.Int32, "higher goes first"),
        *_LIFE,
        Column("duration_seconds", pl.Float64, "s; time it ran, where the source has it"),
        Column("requested_seconds", pl.Float64, "s; time limit asked for at submit"),
        _IS_RUNNING,
        Column(
            "was_running",
            pl.Boolean,
            "ran already when the trace began: its runtime is left-censored, submit and start are unknown",
            default=False,
        ),
        Column("attempts", pl.Int32, "times it was started"),
        Column("instances", pl.Int32, "gang size: instances that must start together", default=1),
        Column("cpu_milli", pl.Int64, "request per instance; 1000 = one core"),
        Column("memory_mib", pl.Int64, "request per instance"),
        Column("gpu_count", pl.Int32, "devices per instance"),
        Column("gpu_milli", pl.Int32, "share of each device; 1000 = the whole GPU"),
        Column("gpu_memory_mib", pl.Int64, "GPU memory per device"),
        Column("disk_mib", pl.Int64, "request per instance"),
        Column("rdma_percent", pl.Int32, "request per instance; 100 = one RNIC"),
        Column("cpu_limit_milli", pl.Int64, "limit per instance"),
        Column("memory_limit_mib", pl.Int64, "limit per instance"),
        Column("gpu_limit_milli", pl.Int64, "limit per instance, over all its devices"),
        Column("disk_limit_mib", pl.Int64, "limit per instance"),
        Column("rdma_limit_percent", pl.Int32, "limit per instance"),
        Column("gpu_models_allowed", pl.String, "GPU models it may run on, joined by '|'; null = any"),
        Column("gpu_model", pl.String, "GPU model it was given"),
        Column("max_per_node", pl.Int32, "instances of its application allowed on one node; null = no limit"),
    ),
)

INSTANCES = Table(
    "instances",
    "one instance of a task",
    ("job_id", "role", "instance_id"),
    (
        *_IDENTITY,
        Column("instance_id", pl.String, "the instance (worker, pod, container)", required=True),
        *_LIFE,
        _IS_RUNNING,
        Column("node_id", pl.String, "where it ran"),
    ),
)

NODES = Table(
    "nodes",
    "one machine",
    ("node_id",),
    (
        Column("node_id", pl.String, "the machine", required=True),
        Column("gpu_model", pl.String, "model of its GPUs; null for none"),
        Column("gpu_count", pl.Int32, "devices", default=0),
        Column("gpu_memory_mib", pl.Int64, "memory of one device"),
        Column("cpu_milli", pl.Int64, "capacity; 1000 = one core"),
        Column("memory_mib", pl.Int64, "capacity"),
        Column("disk_mib", pl.Int64, "capacity"),
        Column("rdma_percent", pl.Int32, "capacity; 100 = one RNIC"),
        Column("rack", pl.String, "nodes under one top-of-rack switch"),
        Column("network_domain", pl.String, "nodes under one aggregation switch or in one RDMA domain"),
        Column("tenant", pl.String, "whom the node is set aside for"),
        Column("is_spot", pl.Boolean, "may be taken away", default=False),
    ),
)

USAGE = Table(
    "usage",
    "what one instance used, or how one machine stood, on average between two times",
    (),
    (
        Column(
            "scope",
            SCOPE,
            "'instance': what an instance used; 'node': the whole machine at that time",
            default="instance",
        ),
        Column("job_id", pl.String, "the job"),
        Column("role", pl.String, "the task's role"),
        Column("instance_id", pl.String, "the instance"),
        Column("node_id", pl.String, "where"),
        Column("device", pl.String, "the GPU, as the machine names it"),
        Column("start_time", pl.Float64, "s; start of the interval averaged over"),
        Column("end_time", pl.Float64, "s; its end; equal to the start for a single sample"),
        Column("cpu_milli", pl.Float64, "mean CPU used; 1000 = one core"),
        Column("cpu_percent", pl.Float64, "mean CPU busy, % of the machine"),
        Column("cpu_user_percent", pl.Float64, "mean, user mode"),
        Column("cpu_kernel_percent", pl.Float64, "mean, kernel mode"),
        Column("cpu_iowait_percent", pl.Float64, "mean, waiting for I/O"),
        Column("load_1min", pl.Float64, "mean 1-minute load average"),
        Column("memory_mib", pl.Float64, "mean memory used"),
        Column("memory_max_mib", pl.Float64, "most memory used"),
        Column("memory_percent", pl.Float64, "mean memory used, % of what it may use"),
        Column("gpu_milli", pl.Float64, "mean GPU busy; 1000 = one whole GPU"),
        Column("gpu_percent", pl.Float64, "mean GPU busy, % of the machine's GPUs"),
        Column("gpu_memory_mib", pl.Float64, "mean GPU memory used"),
        Column("gpu_memory_max_mib", pl.Float64, "most GPU memory used"),
        Column("network_receive_bytes", pl.Float64, "received, as the source counts it"),
        Column("network_send_bytes", pl.Float64, "sent, as the source counts it"),
        Column("network_receive_count", pl.Float64, "reads"),
        Column("network_send_count", pl.Float64, "writes"),
        Column("workers", pl.Float64, "mean number of instances on the machine"),
    ),
)

REQUESTS = Table(
    "requests",
    "one request to a model-serving system",
    ("request_id",),
    (
        Column("request_id", pl.String, "the request", required=True),
        Column("application", pl.String, "the service"),
        Column("user", pl.String, "the client"),
        Column("model", pl.String, "base model asked for"),
        Column("kind", pl.String, "kind of request"),
        Column("status", STATUS, "how it ended", default="unknown"),
        Column("submit_time", pl.Float64, "s; arrival"),
        Column("duration_seconds", pl.Float64, "s; time to serve it"),
        Column("input_tokens", pl.Int64, "tokens (or characters, for image prompts) in"),
        Column("output_tokens", pl.Int64, "tokens out"),
        Column("prefix_blocks", pl.List(pl.Int64), "hashes of the prompt's prefix blocks, for cache studies"),
        Column("images", pl.Int32, "images asked for"),
        Column("inference_steps", pl.Int32, "denoising steps"),
        Column("adapters", pl.Int32, "adapters (LoRA) applied"),
    ),
)

SERIES = Table(
    "series",
    "one sample of one quantity that was measured over time",
    (),
    (
        Column("time", pl.Float64, "s; when (start of the window, where it is one)", required=True),
        Column(
            "metric",
            pl.String,
            "what, unit in the name: running_gpus, queue_length, model_load_ms, …",
            required=True,
        ),
        Column("entity", pl.String, "of whom: a container, a virtual cluster, a client; null = the whole system"),
        Column("value", pl.Float64, "how much"),
    ),
)

TABLES: dict[str, Table] = {t.name: t for t in (NODES, TASKS, INSTANCES, USAGE, REQUESTS, SERIES)}


def conform(table: Table, frame: pl.LazyFrame) -> pl.LazyFrame:
    """Return `frame` with exactly the table's columns, types and defaults, plus `_row` where the reader kept it.

    `_row` is the line of the source file a row came from; it lets a finding point at it.
    """
    types = frame.collect_schema()
    have = set(types.names())
    unknown = have - {c.name for c in table.columns} - {"_row"}
    if unknown:
        raise ValueError(f"reader made columns the {table.name} table does not have: {sorted(unknown)}")
    columns = []
    for column in table.columns:
        if column.name in have:
            expression = pl.col(column.name)
            if types[column.name].is_float() and column.dtype.is_integer():
                # A cast alone cuts 434.999…, which is 4.35 × 100, to 434.
                expression = expression.round()
            expression = expression.cast(column.dtype, strict=False)
            if column.default is not None:
                expression = expression.fill_null(pl.lit(column.default, column.dtype))
        else:
            expression = pl.lit(column.default, column.dtype)
        columns.append(expression.alias(column.name))
    if "_row" in have:
        columns.append(pl.col("_row").cast(pl.UInt32))
    return frame.select(columns)


def markdown() -> str:
    """Return the schema as the Markdown page `docs/schema.md`."""
    lines = [
        "# The canonical trace",
        "",
        "Generated from `src/gputwin/traces/schema.py` by `make docs`; do not edit by hand.",
        "",
        "A trace is a directory: one Parquet file per table that the source has, and `trace.json`. Times are float",
        "seconds from the trace's origin; amounts are integers in the unit their name carries.",
    ]
    for table in TABLES.values():
        lines += ["", f"## {table.name}", "", f"A row is {table.row}."]
        if table.key:
            lines[-1] += f" Key: {', '.join(f'`{k}`' for k in table.key)}."
        lines += ["", "| column | type | if unknown | meaning |", "|---|---|---|---|"]
        for c in table.columns:
            absent = "required" if c.required else "null" if c.default is None else f"`{c.default}`"
            dtype = "enum" if isinstance(c.dtype, pl.Enum) else str(c.dtype).replace("|", "\\|")
            meaning = c.meaning.replace("|", "\\|")
            lines.append(f"| `{c.name}` | {dtype} | {absent} | {meaning} |")
    return "\n".join(lines) + "\n"
