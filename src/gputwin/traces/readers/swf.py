"""Standard Workload Format 2.2 of the Parallel Workloads Archive: 18 numbers per job, `;` header comments.

Defined at https://www.cs.huji.ac.il/labs/parallel/workload/swf.html; −1 means unknown. A job of P processors is a
gang of P one-core instances: the format says nothing about nodes, and such a job may span them. Memory is per
processor there as here. MaxNodes and MaxProcs of the header give the node table (left-over cores go to the first
nodes). Lines of status 2, 3 and 4 are parts of a job that was swapped out or checkpointed: they count as its
attempts, the job's own line gives the rest. Partition, preceding job and think time are not used.
"""

from __future__ import annotations

import re
import zoneinfo
from collections.abc import Sequence

import polars as pl

from gputwin.core.errors import InputError, shorten
from gputwin.core.units import CORE_MILLI
from gputwin.traces.quality import QualityLog
from gputwin.traces.reader import READERS, Clock, Draft, Input, Reader
from gputwin.traces.schema import Status
from gputwin.traces.sources import Source
from gputwin.traces.tabular import LARGEST_NUMBER

FIELDS = (
    "job",
    "submit",
    "wait",
    "run",
    "allocated_processors",
    "cpu_time",
    "used_memory_kib",
    "requested_processors",
    "requested_time",
    "requested_memory_kib",
    "status",
    "user",
    "group",
    "executable",
    "queue",
    "partition",
    "preceding_job",
    "think_time",
)
_CANCELLED = 5.0
_STATUS = {0.0: Status.FAILED, 1.0: Status.COMPLETED, _CANCELLED: Status.CANCELLED}
_PARTIAL = [2.0, 3.0, 4.0]
_UNKNOWN = -1.0
_MOST_NODES = 1_000_000
_NUMBER = re.compile(rb"-?\d+(\.\d+)?")
_COMMENT = re.compile(r";\s*(\w+)\s*:\s*(.*)")


def _recognise(source: Source) -> str | None:
    """Return "log" for a file of that name, or whose first line that is no comment consists of 18 numbers."""
    lines = (line for line in source.head.splitlines() if line.strip() and not line.lstrip().startswith(b";"))
    fields = next(lines, b"").split()
    is_job = len(fields) == len(FIELDS) and all(map(_NUMBER.fullmatch, fields))
    return "log" if is_job or source.name.endswith(".swf") else None


def _read_lines(source: Source, quality: QualityLog) -> tuple[dict[str, str], pl.DataFrame]:
    """Return the header's labels and the 18 numbers of each job, with the line it stands on."""
    source.check_text()
    # Comments of the archive's older logs are in Latin-1; the numbers are ASCII in any case.
    text = source.path.read_bytes().decode("utf-8", errors="replace")
    lines = pl.DataFrame({"line": text.split("\n")}).with_row_index("_row", offset=1)
    lines = lines.with_columns(pl.col("line").str.strip_chars()).filter(pl.col("line") != "")
    is_comment = lines["line"].str.starts_with(";")
    header: dict[str, str] = {}
    for comment in lines.filter(is_comment)["line"]:
        if match := _COMMENT.match(comment):
            header.setdefault(match[1].lower(), match[2].strip())
    jobs = lines.filter(~is_comment).with_columns(pl.col("line").str.replace_all(r"\s+", " ").str.split(" "))
    if jobs.is_empty():
        raise InputError("the file has no jobs", file=source.label, remedy="give a file with job lines")
    quality.read(source.label, jobs.height)
    return header, _numbers(_complete(jobs, source, quality), source, quality)


def _complete(jobs: pl.DataFrame, source: Source, quality: QualityLog) -> pl.DataFrame:
    """Return the lines that have 18 fields; another one is an error, or dropped where that is allowed."""
    width = jobs["line"].list.len()
    odd = jobs.filter(width != len(FIELDS))
    if odd.height and not quality.lenient:
        raise InputError(
            f"{odd['line'].list.len()[0]} fields instead of {len(FIELDS)}",
            file=source.label,
            row=int(odd["_row"][0]),
            remedy="fix the line, or pass --lenient to drop such lines",
        )
    quality.find("F20", source.label, odd.height, examples=odd.select("_row", pl.col("line").list.join(" ")))
    return jobs.filter(width == len(FIELDS))


def _numbers(jobs: pl.DataFrame, source: Source, quality: QualityLog) -> pl.DataFrame:
    """Return the fields as numbers, −1 as unknown."""
    frame = jobs.select("_row", *(pl.col("line").list.get(i).alias(name) for i, name in enumerate(FIELDS)))
    for name in FIELDS:
        number = frame[name].cast(pl.Float64, strict=False)
        bad = frame.filter(number.is_null()).select("_row", name)
        if bad.height and not quality.lenient:
            raise InputError(
                f"'{shorten(bad[name][0])}' is not a number",
                file=source.label,
                row=int(bad["_row"][0]),
                field=name,
                remedy="fix the field, or pass --lenient to treat such fields as unknown",
            )
        quality.find("F03", source.label, bad.height, detail=name, examples=bad)
        wild = frame.filter(~(number.abs() <= LARGEST_NUMBER)).select("_row", name)
        quality.find("F11", source.label, wild.height, detail=name, examples=wild)
        known = (number.abs() <= LARGEST_NUMBER) & (number != _UNKNOWN)
        frame = frame.with_columns(pl.when(known).then(number).alias(name))
    return frame


def _fold_partial_lines(frame: pl.DataFrame, quality: QualityLog) -> pl.DataFrame:
    """Return one line per job, with the number of its partial executions as `attempts`."""
    is_part = pl.col("status").is_in(_PARTIAL).fill_null(False)
    parts, jobs = frame.filter(is_part), frame.filter(~is_part)
    if parts.is_empty():
        return frame.with_columns(pl.lit(None).alias("attempts"))
    orphans = parts.join(jobs, on="job", how="anti")
    quality.find("F07", "tasks", orphans.height, examples=orphans.select("_row", "job", "status"))
    counts = parts.group_by("job").agg(pl.len().alias("attempts"))
    return jobs.join(counts, on="job", how="left", maintain_order="left")


def _text(column: str) -> pl.Expr:
    return pl.col(column).cast(pl.Int64).cast(pl.String)


def _tasks(frame: pl.DataFrame, start_of_log: float) -> pl.DataFrame:
    submit = pl.col("submit") + start_of_log
    used = pl.max_horizontal(pl.col("run").fill_null(0), pl.col("allocated_processors").fill_null(0))
    # Cancelled while it waited: its wait ended, but not with a start.
    ran = ~((pl.col("status") == _CANCELLED) & (used <= 0)).fill_null(False)
    start = pl.when(ran).then(submit + pl.col("wait"))
    processors = pl.when(pl.col("requested_processors") > 0).then(pl.col("requested_processors"))
    return frame.select(
        "_row",
        "attempts",
        _text("job").alias("job_id"),
        _text("executable").alias("application"),
        _text("user").alias("user"),
        _text("group").alias("tenant"),
        _text("queue").alias("qos"),
        pl.col("status").replace_strict(_STATUS, default=Status.UNKNOWN, return_dtype=pl.String).alias("status"),
        submit.alias("submit_time"),
        start.alias("start_time"),
        (start + pl.col("run")).alias("end_time"),
        pl.when(ran).then("run").alias("duration_seconds"),
        pl.col("requested_time").alias("requested_seconds"),
        pl.coalesce(processors, "allocated_processors").alias("instances"),
        pl.lit(CORE_MILLI).alias("cpu_milli"),
        (pl.col("requested_memory_kib") / 1024).ceil().alias("memory_mib"),
        pl.lit(0).alias("gpu_count"),
    )


def _count(header: dict[str, str], label: str) -> int:
    """Return the number that starts a header comment's text; 0 where there is none."""
    match = re.match(r"\d{1,15}", header.get(label, "").replace(",", ""))
    return int(match[0]) if match else 0


def _nodes(header: dict[str, str], source: Source, quality: QualityLog) -> pl.DataFrame | None:
    """Return the machines the header names; without MaxNodes, each processor is one."""
    processors = _count(header, "maxprocs")
    count = _count(header, "maxnodes") or processors
    if count > _MOST_NODES:
        quality.find("F11", source.label, 1, detail="MaxNodes of the header")
        return None
    if not count:
        return None
    each, left_over = divmod(max(processors, count), count)
    return pl.DataFrame(
        {
            "node_id": [f"node-{i}" for i in range(count)],
            "cpu_milli": [CORE_MILLI * (each + (i < left_over)) for i in range(count)],
        }
    )


def _zone(header: dict[str, str], source: Source, quality: QualityLog) -> str:
    name = header.get("timezonestring", "")
    if not name:
        return "UTC"
    try:
        return zoneinfo.ZoneInfo(name).key
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        quality.find("F08", source.label, 1, detail=f"TimeZoneString {shorten(name)}, read as UTC")
        return "UTC"


def read(inputs: Sequence[Input], quality: QualityLog) -> Draft:
    """Return the tasks of one log, and the nodes its header names."""
    if len(inputs) > 1:
        raise InputError("a second log", file=inputs[1].source.label, remedy="give one")
    source = inputs[0].source
    header, jobs = _read_lines(source, quality)
    strange = jobs.filter(pl.col("status").is_not_null() & ~pl.col("status").is_in([*_STATUS, *_PARTIAL]))
    quality.find("F08", "tasks", strange.height, detail="status", examples=strange.select("_row", "status"))
    start_of_log = float(_count(header, "unixstarttime"))
    tables = {"tasks": _tasks(_fold_partial_lines(jobs, quality), start_of_log)}
    if (nodes := _nodes(header, source, quality)) is not None:
        tables["nodes"] = nodes
    clock = Clock.ABSOLUTE if start_of_log else Clock.RELATIVE
    return Draft(tables, clock, _zone(header, source, quality))


READER = READERS.add(Reader("swf", "Standard Workload Format 2.2", (), read, _recognise))
