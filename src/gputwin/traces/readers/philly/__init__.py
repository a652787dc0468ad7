"""Microsoft Philly 2017: the publisher's job log and machine list, or one of the tables others derived from them.

Published with Jeon et al., "Analysis of Large-Scale Multi-Tenant GPU Clusters for DNN Training Workloads", USENIX
ATC'19. The derived tables overlap (they count the same jobs), so one ingest takes one of them.

Zones. The publisher does not name the job log's zone. The jobs table repeats its wall times, the attempts table has
them as Unix seconds under which they are US Eastern, and so they are read here. That may only say where that table
was made: running jobs follow the node sequence best when the log is read as UTC. Differences are right either way.
The per-minute files, of which the node sequence is made, are labelled PDT and PST.

Gangs. The derived tables give a job's GPUs, not its nodes. Machines have at most 8 GPUs, so a job of up to 8 is one
instance, and a larger one is split into equal instances of the most GPUs (at most 8) that divides its total: 16 is
2 × 8, 12 is 2 × 6, 28 is 4 × 7. The total stays exact.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from gputwin.core.errors import InputError
from gputwin.core.units import MIB_PER_GIB
from gputwin.traces.quality import QualityLog
from gputwin.traces.reader import READERS, Clock, Draft, Input, Reader
from gputwin.traces.readers.philly.job_log import looks_like_log, read_log
from gputwin.traces.sources import Source
from gputwin.traces.tabular import CsvKind, read_csv
from gputwin.traces.walltime import to_unix_seconds

JOB_ZONE = "America/New_York"
MACHINE_ZONE = "America/Los_Angeles"
GPUS_PER_MACHINE = 8

MACHINES = CsvKind(
    "machine list",
    {"machineId": pl.String, "number of GPUs": pl.Float64, "single GPU mem": pl.String},
)
JOBS = CsvKind(
    "jobs by virtual cluster",
    {"timestamp": pl.String, "duration": pl.Float64, "num_gpus": pl.Float64, "cluster": pl.String},
    ignored=frozenset({"gpu_time"}),
)
ATTEMPTS = CsvKind(
    "attempts",
    {"run_time": pl.Float64, "submit_time": pl.Float64, "gpu_num": pl.Float64},
    ignored=frozenset({"wait_time"}),
)
RUNTIMES = CsvKind("runtimes", {"runtime": pl.Float64})
NODE_SEQUENCE = CsvKind("node sequence", {"time": pl.String, "active": pl.Float64, "total": pl.Float64})
LOG = "job log"


def _recognise(source: Source) -> str | None:
    """Return the kind of files whose header is too common to be known by a part of it."""
    columns = set(source.header) - {""}
    if columns == {*ATTEMPTS.columns, *ATTEMPTS.ignored}:
        return ATTEMPTS.kind
    if columns == set(RUNTIMES.columns):
        return RUNTIMES.kind
    return LOG if looks_like_log(source) else None


def _gang(total: float) -> tuple[float, float]:
    """Return instances and GPUs of each for a job of `total` GPUs on machines of 8."""
    if not GPUS_PER_MACHINE < total < math.inf or total % 1:
        return 1.0, total
    each = max(d for d in range(1, GPUS_PER_MACHINE + 1) if total % d == 0)
    return total / each, float(each)


def _with_gang(frame: pl.DataFrame, column: str) -> pl.DataFrame:
    totals = frame[column].drop_nulls().unique().sort()
    gangs = [_gang(total) for total in totals]
    shapes = pl.DataFrame(
        {column: totals, "instances": [g[0] for g in gangs], "gpu_count": [g[1] for g in gangs]},
        schema={column: pl.Float64, "instances": pl.Float64, "gpu_count": pl.Float64},
    )
    return frame.join(shapes, on=column, how="left", maintain_order="left")


def _numbered() -> pl.Expr:
    """Return ids made from the line each row stands on, as the tables carry none."""
    return pl.format("job-{}", "_row").alias("job_id")


def _jobs(source: Source, quality: QualityLog) -> pl.DataFrame:
    frame = read_csv(source, JOBS, quality)
    copies = frame.filter(~pl.struct(*JOBS.columns).is_first_distinct())
    quality.find("F05", "tasks", copies.height, examples=copies)
    frame = to_unix_seconds(frame, "timestamp", JOB_ZONE, source.label, quality)
    return _with_gang(frame, "num_gpus").select(
        "_row",
        _numbered(),
        pl.col("cluster").alias("tenant"),
        pl.col("timestamp").alias("submit_time"),
        pl.col("duration").alias("duration_seconds"),
        "instances",
        "gpu_count",
    )


def _attempts(source: Source, quality: QualityLog) -> pl.DataFrame:
    frame = read_csv(source, ATTEMPTS, quality)
    # Its mean and share of zeros contradict the published waits, and it is zero for the first 26,807 rows.
    quality.find("F04", source.label, 1, detail="wait_time looks like a simulator's output")
    return _with_gang(frame, "gpu_num").select(
        "_row",
        _numbered(),
        "submit_time",
        pl.col("run_time").alias("duration_seconds"),
        "instances",
        "gpu_count",
    )


def _runtimes(source: Source, quality: QualityLog) -> pl.DataFrame:
    frame = read_csv(source, RUNTIMES, quality)
    return frame.select("_row", _numbered(), pl.col("runtime").alias("duration_seconds"))


def _node_series(source: Source, quality: QualityLog) -> pl.DataFrame:
    frame = to_unix_seconds(read_csv(source, NODE_SEQUENCE, quality), "time", MACHINE_ZONE, source.label, quality)
    # Dropped here and counted once: below, a row of the file becomes two of the table.
    missing = frame.filter(pl.col("time").is_null())
    quality.find("Q01", "series", missing.height, examples=missing)
    named = frame.drop_nulls("time").rename({"active": "active_nodes", "total": "total_nodes"})
    return named.unpivot(
        ["active_nodes", "total_nodes"], index=["_row", "time"], variable_name="metric", value_name="value"
    )


def _machines(source: Source, quality: QualityLog) -> pl.DataFrame:
    frame = read_csv(source, MACHINES, quality)
    gib = pl.col("single GPU mem").str.extract(r"^\s*(\d+(?:\.\d+)?)\s*G(?:i?B)?\s*$").cast(pl.Float64)
    strange = frame.filter(pl.col("single GPU mem").is_not_null() & gib.is_null())
    quality.find("F08", "nodes", strange.height, detail="single GPU mem", examples=strange)
    return frame.select(
        "_row",
        pl.col("machineId").str.strip_chars().alias("node_id"),
        pl.col("number of GPUs").alias("gpu_count"),
        (gib * MIB_PER_GIB).alias("gpu_memory_mib"),
    )


_MAKERS = {
    JOBS.kind: ("tasks", _jobs),
    ATTEMPTS.kind: ("tasks", _attempts),
    RUNTIMES.kind: ("tasks", _runtimes),
    NODE_SEQUENCE.kind: ("series", _node_series),
    MACHINES.kind: ("nodes", _machines),
}


def read(inputs: Sequence[Input], quality: QualityLog) -> Draft:
    """Return tasks (with instances from the job log), nodes from a machine list and series from a node sequence."""
    tables: dict[str, pl.DataFrame] = {}
    for item in inputs:
        table, make = _MAKERS.get(item.kind, ("tasks", None))
        if table in tables:
            same = [Path(i.source.label).name for i in inputs if _MAKERS.get(i.kind, ("tasks", None))[0] == table]
            raise InputError(
                f"a second file of Philly {table}; they count the same jobs or machines",
                file=item.source.label,
                remedy=f"give one of these files, not their folder: {', '.join(same)}",
            )
        if make is None:
            tables |= read_log(item.source, JOB_ZONE, quality)
        else:
            tables[table] = make(item.source, quality)
    kinds = {item.kind for item in inputs}
    clock = Clock.RELATIVE if kinds <= {RUNTIMES.kind, MACHINES.kind} else Clock.ABSOLUTE
    return Draft(tables, clock, zone=MACHINE_ZONE if kinds <= {NODE_SEQUENCE.kind, MACHINES.kind} else JOB_ZONE)


READER = READERS.add(Reader("philly", "Microsoft Philly, 2017", (MACHINES, JOBS, NODE_SEQUENCE), read, _recognise))
